"""A model whose answers are made beforehand, so that it is not the model that is measured."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Final

from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.genai import types

from bench.script import ASK, DELTA, SLOW, SLOW_DELTAS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from google.adk.models.llm_request import LlmRequest

_STOP: Final = types.FinishReason.STOP
_TRANSFER: Final = types.FunctionCall(name="transfer", args={"amount": 5})


class PreparedModel(BaseLlm):
    """Says ``BENCH_DELTAS`` deltas, or what the user's last text asks for.

    It hands out the same partial responses again and again and awaits before each of them: a
    turn of the loop, or a millisecond where the text is `SLOW`.
    """

    model: str = "prepared"
    _fast: list[LlmResponse]
    _slow: list[LlmResponse]

    def model_post_init(self, context: object) -> None:
        """Make the answers."""
        super().model_post_init(context)
        self._fast = [_said(DELTA, partial=True)] * int(os.environ["BENCH_DELTAS"])
        self._slow = self._fast[:1] * SLOW_DELTAS

    async def generate_content_async(
        self,
        llm_request: LlmRequest,
        stream: bool = False,  # noqa: FBT001, FBT002
    ) -> AsyncGenerator[LlmResponse, None]:
        """Yield the partial responses of an answer, then the whole of it."""
        text = _last_text(llm_request)
        if text == ASK and not _is_answered(llm_request):
            yield LlmResponse(content=types.ModelContent([types.Part(function_call=_TRANSFER)]))
            return
        partials = self._slow if text == SLOW else self._fast
        seconds = 0.001 if text == SLOW else 0
        if text == ASK:
            partials = partials[:1]
        for partial in partials:
            await asyncio.sleep(seconds)
            yield partial
        yield _said(DELTA * len(partials))


def _said(text: str, *, partial: bool | None = None) -> LlmResponse:
    reason = None if partial else _STOP
    return LlmResponse(
        content=types.ModelContent([types.Part(text=text)]), partial=partial, finish_reason=reason
    )


def _last_text(request: LlmRequest) -> str:
    texts = (part.text for content in request.contents for part in content.parts or ())
    return next((text for text in reversed(list(texts)) if text), "")


def _is_answered(request: LlmRequest) -> bool:
    parts = request.contents[-1].parts or []
    return any(part.function_response is not None for part in parts)
