"""200 KB of generated tool results become JSON and files without an error."""

from __future__ import annotations

import json
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from google.genai import types
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sluicegate import ToolResult
from sluicegate.core.json_values import json_safe
from sluicegate.errors import SluicegateError
from sluicegate.media import Attachment
from sluicegate.media.storable_results import from_outcome
from tests.media.history import Server

LONG = st.builds(lambda text, times: text * times, st.text(max_size=40), st.integers(0, 100))
BYTES = st.builds(lambda data, times: data * times, st.binary(max_size=40), st.integers(0, 100))
MEDIA_TYPES = st.sampled_from(["image/png", "application/pdf", "text/plain", "", "a", "audio/pcm"])
ODD = st.sampled_from(
    [object(), date(2026, 1, 2), timedelta(1), Decimal("NaN"), Path("/etc/passwd"), 1j, {1, 2}, int]
)
FILES = st.one_of(
    st.builds(types.Blob, data=BYTES, mime_type=MEDIA_TYPES),
    st.builds(types.FileData, file_uri=st.text(max_size=20), mime_type=MEDIA_TYPES),
    st.builds(lambda text: types.Part(text=text), LONG),
    st.builds(
        lambda data, kind: types.Part(inline_data=types.Blob(data=data, mime_type=kind)),
        BYTES,
        MEDIA_TYPES,
    ),
    st.builds(
        lambda data: {"content": [{"type": "image", "data": data, "mimeType": "image/png"}]}, LONG
    ),
    BYTES.filter(bool).map(lambda data: Attachment(data=data)),
)
RESULTS: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | LONG | BYTES | ODD | FILES,
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(st.text(max_size=9) | st.integers(), inner, max_size=5)
        | st.tuples(inner, inner)
    ),
    max_leaves=12,
)
SETTINGS = settings(
    max_examples=300,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    database=None,
)


async def test_200_kb_of_generated_results_become_json_and_files() -> None:
    server, seen = Server(), 0
    found: list[Any] = []

    @SETTINGS
    @given(RESULTS)
    def collect(result: Any) -> None:
        found.append(result)

    collect()
    for result in found:
        details = result if isinstance(result, list) else [result]
        seen += len(repr(result))
        for one in (result, _as_result(details)):
            settled = await server.results.store_result(one)
            kept = json.dumps(json_safe(settled.outcome), allow_nan=False)
            assert from_outcome(json.loads(kept)) is not None
            assert len(kept) < server.results.limits.text_bytes + 10_000
    assert seen > 200_000


def _as_result(details: list[Any]) -> object:
    """A `ToolResult`, without the error for invalid content."""
    try:
        return ToolResult(details)
    except SluicegateError as error:
        assert isinstance(error, ValueError | TypeError)  # noqa: PT017
        return None
