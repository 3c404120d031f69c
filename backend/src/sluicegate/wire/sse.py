"""Server-sent events as AI SDK clients read them: one chunk per event, then the terminator."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

HEADERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "content-type": "text/event-stream",
        "cache-control": "no-cache",
        "x-accel-buffering": "no",
        "x-vercel-ai-ui-message-stream": "v1",
    }
)
"""The headers of every streamed response; proxies must not buffer it."""

DONE: Final = b"data: [DONE]\n\n"
"""The terminator, sent once as the last event (T3)."""


def encode_events(texts: Sequence[str]) -> bytes:
    """Return one event per encoded chunk, ready to be sent in one write."""
    return ("data: " + "\n\ndata: ".join(texts) + "\n\n").encode()
