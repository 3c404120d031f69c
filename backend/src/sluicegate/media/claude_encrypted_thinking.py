"""Thinking that Claude encrypts, through ADK's class for LiteLLM.

ADK: it drops such blocks of a response and cannot write them. So the client of LiteLLM gives them
to ADK as signed thinking with a marked text, and takes the mark off in the next request. In a
session they are thoughts without text, as ADK's own class for Claude stores them.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import TYPE_CHECKING, Any, Final

from google.genai import types

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from google.adk.models.llm_response import LlmResponse

    from sluicegate.media.model_client_libraries import Route

_MARK: Final = "sluicegate-encrypted-thinking"
_BASE64: Final = re.compile(rb"[A-Za-z0-9+/]+={0,2}")


def mark_encrypted(response: Any) -> Any:
    """Replace encrypted blocks in a response of LiteLLM, whole or one chunk, by marked thinking."""
    for choice in getattr(response, "choices", None) or []:
        message: Any = getattr(choice, "delta", None) or getattr(choice, "message", None)
        blocks = getattr(message, "thinking_blocks", None)
        if blocks:
            message.thinking_blocks = [_marked_block(block) for block in blocks]
    return response


async def marked_chunks(chunks: AsyncIterator[Any]) -> AsyncIterator[Any]:
    """As `mark_encrypted`, for the chunks of a stream."""
    async for chunk in chunks:
        yield mark_encrypted(chunk)


def unmark_messages(messages: Sequence[Any]) -> list[Any]:
    """Return messages for LiteLLM with the encrypted blocks as they were."""
    return [
        {**message, "thinking_blocks": [_unmarked_block(block) for block in blocks]}
        if isinstance(message, dict) and (blocks := message.get("thinking_blocks"))
        else message
        for message in messages
    ]


def _marked_block(block: Any) -> Any:
    if block.get("type") != "redacted_thinking":
        return block
    # ADK base64-decodes a signature where it can; encoded once more, the data survives that.
    signature = base64.b64encode(str(block["data"]).encode()).decode("ascii")
    return {"type": "thinking", "thinking": _MARK, "signature": signature}


def _unmarked_block(block: Any) -> Any:
    if block.get("thinking") != _MARK:
        return block
    data = base64.b64decode(block["signature"]).decode()
    return {"type": "redacted_thinking", "data": data}


def unmark_response(response: LlmResponse) -> LlmResponse | None:
    """Return a response of ADK without marks, None for a partial one that has nothing else."""
    content = response.content
    if content is None or not any(part.text == _MARK for part in content.parts or []):
        return response
    if response.partial:
        parts = [part for part in content.parts or [] if part.text != _MARK]
    else:
        parts = [
            types.Part(thought=True, thought_signature=part.thought_signature)
            if part.text == _MARK
            else part
            for part in content.parts or []
        ]
    if not parts:
        return None
    return response.model_copy(update={"content": content.model_copy(update={"parts": parts})})


def own_form(part: types.Part, route: Route) -> types.Part:
    """Return a thought of Claude in the form that ADK's class of a route writes.

    ADK: one class keeps the characters of a signature, the other the bytes that they encode.
    """
    signature = part.thought_signature
    if not part.thought or not signature:
        return part
    is_encoded = _BASE64.fullmatch(signature) is not None and len(signature) % 4 == 0
    if route == "litellm" and not part.text:
        return part.model_copy(update={"text": _MARK})
    try:
        if route == "litellm" and is_encoded:
            signature = base64.b64decode(signature, validate=True)
        elif route == "anthropic" and part.text and not is_encoded:
            signature = base64.b64encode(signature)
    except binascii.Error:
        return part
    return part.model_copy(update={"thought_signature": signature})
