"""A chunk as it is stored and sent: encoded once, shared by every reader."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sluicegate.wire.chunks import for_major
from sluicegate.wire.encoding import encode

if TYPE_CHECKING:
    from sluicegate.wire.base_chunk import BaseChunk
    from sluicegate.wire.chunks import Major


class EncodedChunk(NamedTuple):
    """The JSON text of a chunk.

    ``kind`` is its ``type``. ``text`` is for AI SDK 7, ``text_for_6`` for AI SDK 6: the same
    object for almost every chunk, None for one that a 6 client may not get.
    """

    kind: str
    text: str
    text_for_6: str | None

    @property
    def size(self) -> int:
        """Bytes of the text in UTF-8."""
        return len(self.text) if self.text.isascii() else len(self.text.encode())

    def text_for(self, major: Major) -> str | None:
        """Return the text for a client of this AI SDK major, None for one that may not get it."""
        return self.text if major == 7 else self.text_for_6


def encoded(chunk: BaseChunk) -> EncodedChunk:
    """Encode a chunk for every client.

    Raises:
        ValueError: a number is not finite (T6), or a value contains itself.
        TypeError: a value is not JSON.
    """
    text = encode(chunk)
    kind: str = chunk.type  # type: ignore[attr-defined]  # `encode` has looked
    fit = for_major(chunk, 6)
    if fit is chunk:
        return EncodedChunk(kind, text, text)
    return EncodedChunk(kind, text, None if fit is None else encode(fit))
