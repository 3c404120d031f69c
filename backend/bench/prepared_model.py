"""A model with prepared answers, so that its cost does not affect the measurement."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.genai import types

from bench.script import ASK, DELTA, DRAW, WHEN, pieces_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from google.adk.models.llm_request import LlmRequest

_STOP: Final = types.FinishReason.STOP
_CALLS: Final = {
    ASK: types.FunctionCall(name="transfer", args={"amount": 5}),
    DRAW: types.FunctionCall(name="draw", args={}),
}


class PreparedModel(BaseLlm):
    """Generates ``BENCH_DELTAS`` deltas, or those that the last user text requests.

    It yields the same partial response again and again, and sleeps before each one for the
    seconds that `bench.script.pieces_of` returns; with 0 the event loop runs once.
    """

    model: str = "prepared"

    async def generate_content_async(
        self,
        llm_request: LlmRequest,
        stream: bool = False,  # noqa: FBT001, FBT002
    ) -> AsyncGenerator[LlmResponse, None]:
        """Yield the partial responses of an answer, then the complete response."""
        text = _last_text(llm_request)
        if text in _CALLS and not is_answered(llm_request):
            call = types.Part(function_call=_CALLS[text])
            yield LlmResponse(content=types.ModelContent([call]))
            return
        if text == WHEN:
            said = f"{time.perf_counter():.6f} "
            yield response_of(said, partial=True)
            yield response_of(said)
            return
        count, seconds = pieces_of(text)
        for _ in range(count):
            await asyncio.sleep(seconds)
            yield PARTIAL
        yield response_of(DELTA * count)


def response_of(text: str, *, partial: bool | None = None) -> LlmResponse:
    """Return a response with a text."""
    reason = None if partial else _STOP
    return LlmResponse(
        content=types.ModelContent([types.Part(text=text)]), partial=partial, finish_reason=reason
    )


PARTIAL: Final = response_of(DELTA, partial=True)


def _last_text(request: LlmRequest) -> str:
    texts = (part.text for content in request.contents for part in content.parts or ())
    return next((text for text in reversed(list(texts)) if text), "")


def is_answered(request: LlmRequest) -> bool:
    """Whether the last content is the result of a call."""
    parts = request.contents[-1].parts or []
    return any(part.function_response is not None for part in parts)
