"""What of a tool's result is stored as it is, and what becomes a note."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from google.genai import types

from sluicegate.engine.tool_results import storable

PICTURE = types.Part(inline_data=types.Blob(data=b"png", mime_type="image/png"))


@pytest.mark.parametrize("result", [None, {}, {"a": 1}, "text", [1, 2], PICTURE, [PICTURE]])
def test_plain_results_and_media_stay_as_they_are(result: object) -> None:
    assert storable(result) is None


@pytest.mark.parametrize(
    ("result", "stored"),
    [
        ({"data": b"1234"}, {"data": "[4 bytes]"}),
        ({"rate": math.nan}, {"rate": None}),
        (b"12", {"result": "[2 bytes]"}),
        ({"text": "a\ud800"}, {"text": "a?"}),
        ([{"rate": math.inf}], {"result": [{"rate": None}]}),
    ],
)
def test_what_is_not_json_becomes_a_note(result: object, stored: object) -> None:
    assert storable(result) == stored


def test_a_result_that_holds_itself_can_be_stored() -> None:
    loop: dict[str, Any] = {"name": "loop"}
    loop["again"] = loop
    assert json.dumps(storable(loop))


def test_media_beside_bytes_stays_media() -> None:
    stored = storable({"picture": PICTURE, "raw": b"1"})
    assert stored == {"picture": PICTURE, "raw": "[1 bytes]"}
