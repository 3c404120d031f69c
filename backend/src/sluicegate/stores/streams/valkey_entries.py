"""The entries of a Valkey stream: chunks, positions and the end."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sluicegate.wire.encoding import EncodedChunk

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sluicegate.core.chat_and_turn_keys import ChatKey

OF: Final = b"of"
"""The number of the head, in every entry of a turn."""

CHUNK: Final = b"chunk"
CHUNK_FOR_6: Final = b"chunk6"
KIND: Final = b"kind"
"""Fields of a chunk: its text, the text for AI SDK 6 where it differs, its type."""

END: Final = b"end"
"""The field of an end."""


class Position(NamedTuple):
    """The id of an entry. Numbers grow over the turns that have the same fence."""

    fence: int
    number: int

    @classmethod
    def parse(cls, entry: bytes) -> Position:
        """Parse the server's form of an id."""
        fence, _, number = entry.partition(b"-")
        return cls(int(fence), int(number))

    def __str__(self) -> str:
        """Return the server's form."""
        return f"{self.fence}-{self.number}"

    def later(self, by: int = 1) -> Position:
        """Return the id that many entries later."""
        return self._replace(number=self.number + by)


class LastEntry(NamedTuple):
    """The newest entry of a chat, and the head of its turn."""

    position: Position
    head: Position
    is_end: bool

    @classmethod
    def parse(cls, replies: Any) -> LastEntry | None:
        """Parse the server's reply to a request for the newest entry."""
        if not replies:
            return None
        [(entry, fields)] = replies
        position = Position.parse(entry)
        return cls(position, Position(position.fence, int(fields[OF])), is_end(fields))


def fields_of(chunk: EncodedChunk) -> dict[Any, Any]:
    """Return the fields of a chunk."""
    fields = {KIND: chunk.kind.encode(), CHUNK: chunk.text.encode()}
    if chunk.text_for_6 is not chunk.text:
        fields[CHUNK_FOR_6] = (chunk.text_for_6 or "").encode()
    return fields


def chunk_of(fields: Mapping[bytes, bytes]) -> EncodedChunk:
    """Return the chunk of an entry as it was written.

    Raises:
        KeyError: the entry is not a chunk.
    """
    text, other = fields[CHUNK].decode(), fields.get(CHUNK_FOR_6)
    for_6 = text if other is None else other.decode() or None
    return EncodedChunk(fields[KIND].decode(), text, for_6)


def is_end(fields: Mapping[bytes, bytes]) -> bool:
    """Whether an entry ends its turn."""
    return END in fields


def key_of(chat: ChatKey) -> str:
    """Return the server's key of a chat; ids may contain any character, so they are hashed."""
    return f"sluicegate:{hashlib.sha256(repr(tuple(chat)).encode()).hexdigest()[:32]}"
