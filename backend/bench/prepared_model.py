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

    It hands out the same partial responses again and again and awaits before each of them: a
    turn of the loop, or a millisecond where the text is `SLOW`.
    """

    model: str = "prepared"

    async def generate_content_async(
        self,
        llm_request: LlmRequest,
        stream: bool = False,  # noqa: FBT001, FBT002
    ) -> AsyncGenerator[LlmResponse, None]:
        """Yield the partial responses of an answer, then the complete response."""
        text = _last_text(llm_request)
        if text in _CALLS and not _is_answered(llm_request):
            call = types.Part(function_call=_CALLS[text])
            yield LlmResponse(content=types.ModelContent([call]))
            return
        if text == WHEN:
            said = f"{time.perf_counter():.6f} "
            yield _said(said, partial=True)
            yield _said(said)
            return
        count, seconds = pieces_of(text)
        for _ in range(count):
            await asyncio.sleep(seconds)
            yield _PARTIAL
        yield _said(DELTA * count)


def _said(text: str, *, partial: bool | None = None) -> LlmResponse:
    reason = None if partial else _STOP
    return LlmResponse(
        content=types.ModelContent([types.Part(text=text)]), partial=partial, finish_reason=reason
    )


_PARTIAL: Final = _said(DELTA, partial=True)


def _last_text(request: LlmRequest) -> str:
    texts = (part.text for content in request.contents for part in content.parts or ())
    return next((text for text in reversed(list(texts)) if text), "")


def _is_answered(request: LlmRequest) -> bool:
    parts = request.contents[-1].parts or []
    return any(part.function_response is not None for part in parts)
