"""The memory that a request with one large attachment needs."""

from __future__ import annotations

import gc
import tracemalloc
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.artifacts.file_artifact_service import FileArtifactService
from google.adk.models.base_llm import BaseLlm
from google.genai import types

from sluicegate.engine.current_guard import CURRENT_GUARD
from tests.media import samples
from tests.media.history import CHAT, Server, said

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator
    from pathlib import Path

    from google.adk.models.llm_request import LlmRequest
    from google.adk.models.llm_response import LlmResponse

LARGE = 10 * 2**20
MIB = 2**20


class Gemini(BaseLlm):
    """A model that is never called; its class and name select the form of its files."""

    async def generate_content_async(
        self,
        llm_request: LlmRequest,
        stream: bool = False,  # noqa: FBT002 - the signature is ADK's
    ) -> AsyncGenerator[LlmResponse, None]:
        raise NotImplementedError
        yield


class LiteLlm(Gemini):
    """The same, by the other way."""


@contextmanager
def traced() -> Iterator[Callable[[], int]]:
    """Every allocation is counted, from a clean start; the peak in bytes."""
    gc.collect()
    tracemalloc.start()
    try:
        yield lambda: tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("model", "most"),
    [
        (Gemini(model="gemini-3.5-flash"), 2 * LARGE),
        (Gemini(model="gemini-2.5-flash"), 2 * LARGE),
        (LiteLlm(model="openai/gpt-5"), 5 * LARGE),
        (LiteLlm(model="openai/house-vision-1"), 5 * LARGE),
    ],
    ids=lambda value: getattr(value, "model", None),
)
async def test_a_large_attachment_is_never_held_many_times(
    folder: Path, monkeypatch: pytest.MonkeyPatch, model: BaseLlm, most: int
) -> None:
    """10 MiB stay under 60 MB while they are rendered, and are rendered once (S4-R42, S4-R45)."""
    assert most < 60_000_000
    reads: list[str] = []
    original = FileArtifactService.load_artifact

    async def counting(self: FileArtifactService, **more: Any) -> Any:
        reads.append(more["filename"])
        return await original(self, **more)

    monkeypatch.setattr(FileArtifactService, "load_artifact", counting)
    server = Server(FileArtifactService(str(folder)))
    data = samples.PDF + bytes(LARGE - len(samples.PDF))
    file = await server.files.store(CHAT, data, "application/pdf")
    del data
    data_of = types.FileData(file_uri=file.uri, mime_type=file.media_type)
    asked = said("look", types.Part(file_data=data_of))
    hooked = isinstance(model, LiteLlm)
    token = CURRENT_GUARD.set(server.turn)
    with traced():
        first = await _peak(server, model, asked, hooked=hooked)
        later = [await _peak(server, model, asked, hooked=hooked) for _ in range(3)]
    CURRENT_GUARD.reset(token)

    assert LARGE <= first <= most
    assert max(later) < MIB
    assert len(reads) == 1


async def _peak(server: Server, model: BaseLlm, asked: types.Content, *, hooked: bool) -> int:
    """The most bytes that making one request adds, the request itself included."""
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    shaped = await server.models.shape([asked], model, model.model, hooked=hooked)
    sent = [part for part in shaped.contents[0].parts or [] if part.inline_data is not None]
    assert bool(sent) or bool(shaped.blocks)
    return tracemalloc.get_traced_memory()[1] - before
