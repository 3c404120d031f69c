"""Server-sent events as AI SDK clients read them: one chunk a frame, then the terminator."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from sluicegate.wire.encoding import encode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sluicegate.wire.chunks import BaseChunk

HEADERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "content-type": "text/event-stream",
        "cache-control": "no-cache",
        "x-accel-buffering": "no",
        "x-vercel-ai-ui-message-stream": "v1",
    }
)
"""What every response with a stream carries; proxies must not buffer it."""

DONE: Final = b"data: [DONE]\n\n"
"""The terminator, sent once and last (T3)."""


def frame(chunk: BaseChunk) -> bytes:
    """Return the event that carries a chunk.

    Raises:
        ValueError: a number is not finite (T6), or a value contains itself.
        TypeError: a value is not JSON.
    """
    return frames([encode(chunk)])


def frames(texts: Sequence[str]) -> bytes:
    """Return the events that carry encoded chunks, ready to leave in one write."""
    return ("data: " + "\n\ndata: ".join(texts) + "\n\n").encode()
