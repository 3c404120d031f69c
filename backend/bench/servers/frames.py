"""The encoded frames of a turn before and after its deltas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sluicegate.wire.chunks import (
    FinishChunk,
    FinishStepChunk,
    StartChunk,
    StartStepChunk,
    TextDeltaChunk,
    TextEndChunk,
    TextStartChunk,
)
from sluicegate.wire.encoding import DONE, encode_events, to_json

if TYPE_CHECKING:
    from starlette.requests import Request

_ID: Final = "text-1"

BEFORE: Final = [
    encode_events([to_json(StartChunk(message_id="message-1"))]),
    encode_events([to_json(StartStepChunk())]),
    encode_events([to_json(TextStartChunk(id=_ID))]),
]
AFTER: Final = [
    encode_events([to_json(TextEndChunk(id=_ID))]),
    encode_events([to_json(FinishStepChunk())]),
    encode_events([to_json(FinishChunk(finish_reason="stop"))]),
    DONE,
]


def delta_frame(text: str) -> bytes:
    """Return the frame of one delta."""
    return encode_events([to_json(TextDeltaChunk(id=_ID, delta=text))])


async def user_text(request: Request) -> str:
    """Return the text of the message in a chat request."""
    body: dict[str, Any] = await request.json()
    text: str = body["messages"][-1]["parts"][0]["text"]
    return text
