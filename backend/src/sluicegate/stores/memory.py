"""Streams in the memory of one process."""

from __future__ import annotations

from asyncio import Event
from typing import TYPE_CHECKING, NoReturn

from sluicegate.errors import StoreError
from sluicegate.stores.base import StreamFull
from sluicegate.wire.chunks import encode

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluicegate.core.keys import ChatKey, TurnKey
    from sluicegate.stores.base import StreamReader
    from sluicegate.wire.chunks import BaseChunk


class MemoryStreamStore:
    """The stream store of a single process (the port is `StreamStore`).

    The chunks of a turn are one list, a reader is a position in it. A closed turn is forgotten as
    soon as its last reader is done.
    """

    def __init__(self, *, max_chunks: int = 5_000, max_bytes: int = 8 * 1024 * 1024) -> None:
        """Take the bounds of one turn; bytes are those of the encoded chunks."""
        self._max_chunks = max_chunks
        self._max_bytes = max_bytes
        self._turns: dict[ChatKey, _Turn] = {}

    async def open(self, turn: TurnKey, *, about: str = "") -> _Turn | None:
        """Take the writer's seat; None while it is not free for this fence."""
        seated = self._turns.get(turn.chat)
        if seated is not None:
            if seated.key.fence >= turn.fence:
                return None
            seated.end()
        opened = _Turn(turn, about, (self._max_chunks, self._max_bytes), self._leave)
        self._turns[turn.chat] = opened
        return opened

    async def find(self, turn: TurnKey) -> _Turn | None:
        """Return the turn, or None when it is not open."""
        found = self._turns.get(turn.chat)
        return found if found is not None and found.key == turn else None

    def _leave(self, turn: _Turn) -> None:
        if self._turns.get(turn.key.chat) is turn:
            del self._turns[turn.key.chat]


class _Turn:
    """The chunks of one turn, and the event that its waiting readers share.

    It is the writer's seat and what readers find (the ports `StreamWriter` and `OpenStream`).
    """

    __slots__ = (
        "_bounds",
        "_bytes_room",
        "_chunks",
        "_ended",
        "_full",
        "_leave",
        "_more",
        "_room",
        "about",
        "key",
    )

    def __init__(
        self, key: TurnKey, about: str, bounds: tuple[int, int], leave: Callable[[_Turn], None]
    ) -> None:
        self.key = key
        self.about = about
        self._chunks: list[BaseChunk] = []
        self._ended = False
        self._full = False
        self._leave = leave
        self._more: Event | None = None  # Set while a reader waits.
        self._bounds = bounds
        self._room, self._bytes_room = bounds

    async def append(self, chunk: BaseChunk) -> None:
        """Add the next chunk."""
        if self._ended:
            raise StoreError("a chunk came for a turn that is not open")
        size = _size(chunk)
        if self._room < 1 or self._bytes_room < size:
            self._overflow()
        self._room -= 1
        self._bytes_room -= size
        self._chunks.append(chunk)
        self._wake()

    async def close(self) -> None:
        """End the turn."""
        self.end()

    def end(self) -> None:
        """Give up the seat; the readers come to their end."""
        self._ended = True
        self._leave(self)
        self._wake()

    async def read(self) -> StreamReader:
        """Return the turn from sequence 0 to its close."""
        sequence = 0
        while True:
            while sequence < len(self._chunks):
                yield sequence, self._chunks[sequence]
                sequence += 1
            if self._ended:
                return
            if self._more is None:
                self._more = Event()
            await self._more.wait()

    def _overflow(self) -> NoReturn:
        """Refuse the chunk; the first time, make room for what ends the turn."""
        if not self._full:
            self._full = True
            self._room, self._bytes_room = self._bounds
        raise StreamFull("the turn has grown over its bound")

    def _wake(self) -> None:
        if self._more is not None:
            self._more.set()
            self._more = None


def _size(chunk: BaseChunk) -> int:
    try:
        text = encode(chunk)
    except (RecursionError, TypeError, ValueError) as error:
        raise StoreError(f"a chunk cannot be encoded: {type(error).__name__}") from error
    return len(text) if text.isascii() else len(text.encode())
