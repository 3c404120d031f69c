"""Streams in the memory of one process."""

from __future__ import annotations

from asyncio import Event
from typing import TYPE_CHECKING, NoReturn

from sluicegate.errors import StoreError
from sluicegate.stores.base import StreamFull
from sluicegate.wire.chunks import encode

if TYPE_CHECKING:
    from sluicegate.core.keys import ChatKey
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

    async def open(self, chat: ChatKey, turn: str) -> bool:
        """Take the writer's seat for a turn; False if a turn of this chat has it."""
        if chat in self._turns:
            return False
        self._turns[chat] = _Turn(turn, self._max_chunks, self._max_bytes)
        return True

    async def append(self, chat: ChatKey, chunk: BaseChunk) -> None:
        """Add the next chunk of the open turn.

        Raises:
            StreamFull: the turn has grown over its bound; the chunk is not in the stream.
            StoreError: no turn is open, or the chunk cannot be encoded.
        """
        turn = self._turns.get(chat)
        if turn is None:
            raise StoreError("a chunk came for a chat that has no open turn")
        turn.append(chunk)

    async def close(self, chat: ChatKey) -> None:
        """End the open turn; readers that hold it still get all of it."""
        turn = self._turns.pop(chat, None)
        if turn is not None:
            turn.close()

    async def running(self, chat: ChatKey) -> str | None:
        """Return the id of the open turn."""
        turn = self._turns.get(chat)
        return None if turn is None else turn.name

    async def read(self, chat: ChatKey, turn: str) -> StreamReader | None:
        """Return the turn from sequence 0 to its close, or None when that turn is not open."""
        found = self._turns.get(chat)
        return None if found is None or found.name != turn else found.read()


class _Turn:
    """The chunks of one turn, and the event that its waiting readers share."""

    __slots__ = (
        "_bounds",
        "_bytes_room",
        "_chunks",
        "_closed",
        "_full",
        "_more",
        "_room",
        "name",
    )

    def __init__(self, name: str, chunks: int, size: int) -> None:
        self.name = name
        self._chunks: list[BaseChunk] = []
        self._closed = False
        self._full = False
        self._more: Event | None = None  # Set while a reader waits.
        self._bounds = (chunks, size)
        self._room = chunks
        self._bytes_room = size

    def append(self, chunk: BaseChunk) -> None:
        size = _size(chunk)
        if self._room < 1 or self._bytes_room < size:
            self._overflow()
        self._room -= 1
        self._bytes_room -= size
        self._chunks.append(chunk)
        self._wake()

    def close(self) -> None:
        self._closed = True
        self._wake()

    async def read(self) -> StreamReader:
        sequence = 0
        while True:
            while sequence < len(self._chunks):
                yield sequence, self._chunks[sequence]
                sequence += 1
            if self._closed:
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
