"""The entries of a chat's stream on the server: heads of turns, their chunks, their ends."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from sluicegate.wire.encoded import EncodedChunk

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sluicegate.core.keys import ChatKey

    Entry: TypeAlias = tuple["Position", dict[Any, Any]]

ABOUT: Final = b"about"
TURN: Final = b"turn"
WRITER: Final = b"writer"
"""Fields of a head: what the turn is about, its name, and a word that tells its writer apart."""

OF: Final = b"of"
"""The number of the head, in every entry of a turn."""

CHUNK: Final = b"chunk"
CHUNK_FOR_6: Final = b"chunk6"
KIND: Final = b"kind"
"""Fields of a chunk: its text, that for AI SDK 6 where it is another one or none, its type."""

END: Final = b"end"


class Position(NamedTuple):
    """The id of an entry. Numbers grow as long as the fence is the same, over several turns."""

    fence: int
    number: int

    @classmethod
    def read(cls, entry: bytes) -> Position:
        """Read what the server calls an entry."""
        fence, _, number = entry.partition(b"-")
        return cls(int(fence), int(number))

    def __str__(self) -> str:
        """Return what the server calls it."""
        return f"{self.fence}-{self.number}"

    def later(self, by: int = 1) -> Position:
        """Return the position so many entries further on."""
        return self._replace(number=self.number + by)


class Top(NamedTuple):
    """The newest entry of a chat."""

    position: Position
    head: Position
    is_end: bool

    @classmethod
    def read(cls, replies: Any) -> Top | None:
        """Read the server's answer to the question for the newest entry."""
        if not replies:
            return None
        [(entry, fields)] = replies
        position = Position.read(entry)
        return cls(position, Position(position.fence, int(fields[OF])), is_end(fields))


def fields_of(chunk: EncodedChunk) -> dict[Any, Any]:
    """Return what is kept of a chunk."""
    fields = {KIND: chunk.kind.encode(), CHUNK: chunk.text.encode()}
    if chunk.text_for_6 is not chunk.text:
        fields[CHUNK_FOR_6] = (chunk.text_for_6 or "").encode()
    return fields


def chunk_in(fields: Mapping[bytes, bytes]) -> EncodedChunk:
    """Return the chunk that an entry holds, as it was written.

    Raises:
        KeyError: it holds none.
    """
    text, other = fields[CHUNK].decode(), fields.get(CHUNK_FOR_6)
    for_6 = text if other is None else other.decode() or None
    return EncodedChunk(fields[KIND].decode(), text, for_6)


def is_end(fields: Mapping[bytes, bytes]) -> bool:
    """Whether an entry ends its turn."""
    return END in fields


def key_of(chat: ChatKey) -> str:
    """Return the server's key of a chat; ids may hold every character, so they are hashed."""
    return f"sluicegate:{hashlib.sha256(repr(tuple(chat)).encode()).hexdigest()[:32]}"
