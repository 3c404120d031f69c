"""Function calls whose arguments end before their JSON does: the tool fails, not the turn.

A model that reaches its limit of tokens stops in the middle of a call. The call is completed with
arguments that say so, and the approval guard responds to it with an error that the model reads.
"""

from __future__ import annotations

import json
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final

from google.adk.models.llm_response import LlmResponse
from google.genai import types

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

CUT_OFF: Final = (
    "The arguments of this call were cut off before they were complete, so the tool did not run. "
    "Call it again with shorter arguments."
)
_KEY: Final = "arguments_were_cut_off"
_UNREADABLE: Final = (types.FinishReason.MAX_TOKENS, types.FinishReason.MALFORMED_FUNCTION_CALL)


def is_cut_off(arguments: Mapping[str, Any]) -> bool:
    """Whether arguments are those that `with_cut_off_calls` completes a call with."""
    return arguments.get(_KEY) is True and len(arguments) == 1


async def with_cut_off_calls(
    responses: AsyncGenerator[LlmResponse, None],
) -> AsyncGenerator[LlmResponse, None]:
    """Yield the responses of a model, and a call for each whose arguments cannot be read.

    No call of such a response runs: the model has not seen it complete either.

    Raises:
        Exception: Whatever the model raises, unless it is the error of JSON that was cut off.
    """
    text = ""
    calls: dict[str, types.FunctionCall] = {}
    async with aclosing(responses):
        try:
            async for response in responses:
                if response.partial:
                    for part in (response.content and response.content.parts) or ():
                        if part.function_call is not None and part.function_call.id:
                            calls[part.function_call.id] = part.function_call
                        elif part.text and not part.thought:
                            text += part.text
                elif calls and response.error_code in _UNREADABLE:
                    # ADK: LiteLLM's calls are dropped, and an error ends the run.
                    yield _completed(text, calls, response)
                    return
                yield response
        except ValueError as error:
            # ADK: Anthropic's model class raises.
            if not calls or not isinstance(error.__cause__, json.JSONDecodeError):
                raise
            yield _completed(text, calls, LlmResponse())


def _completed(
    text: str, calls: Mapping[str, types.FunctionCall], response: LlmResponse
) -> LlmResponse:
    parts = [types.Part(text=text)] if text else []
    for call_id, call in calls.items():
        complete = types.FunctionCall(id=call_id, name=call.name, args={_KEY: True})
        parts.append(types.Part(function_call=complete))
    return LlmResponse(
        content=types.Content(role="model", parts=parts),
        model_version=response.model_version,
        usage_metadata=response.usage_metadata,
    )
