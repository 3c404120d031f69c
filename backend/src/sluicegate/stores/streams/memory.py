"""Streams in the memory of one process."""

from __future__ import annotations

from asyncio import Future, get_running_loop
from bisect import bisect_right
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn
from weakref import WeakSet

from sluicegate.errors import StoreError
from sluicegate.stores.streams.base import BATCH_BYTES, MAX_BYTES, MAX_CHUNKS, StreamFull, encoded

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from sluicegate.core.keys import ChatKey, TurnKey
    from sluicegate.wire.chunks import BaseChunk
    from sluicegate.wire.encoding import EncodedChunk


class MemoryStreamStore:
    """The stream store of a single process (the port is `StreamStore`).

    The chunks of a turn are one list, a reader is a position in it. Of a closed turn each reader
    keeps what it has not taken.
    """

    def __init__(self, *, max_chunks: int = MAX_CHUNKS, max_bytes: int = MAX_BYTES) -> None:
        """Take the bounds of one turn; bytes are those of the encoded chunks."""
        self._max_chunks = max_chunks
        self._max_bytes = max_bytes
        self._turns: dict[ChatKey, _Turn] = {}

    async def open(self, turn: TurnKey, *, description: str = "") -> _Turn | None:
        """Take the writer's seat; None while it is not free for this fence."""
        seated = self._turns.get(turn.chat)
        if seated is not None:
            if seated.key.fence >= turn.fence:
                return None
            seated.end()
        opened = _Turn(turn, description, (self._max_chunks, self._max_bytes), self._leave)
        self._turns[turn.chat] = opened
        return opened

    async def find(self, chat: ChatKey) -> _Turn | None:
        """Return the turn of a chat that is open."""
        return self._turns.get(chat)

    is_shared: Final = False

    def followed(self) -> Collection[TurnKey]:
        """Return nothing: no other process writes here."""
        return ()

    async def end_followed(self, turn: TurnKey, last: BaseChunk) -> None:
        """Do nothing: nothing is followed."""

    async def check(self) -> bool:
        """Return True: memory is there."""
        return True

    async def aclose(self) -> None:
        """Do nothing: what is read goes with its readers."""

    def _leave(self, turn: _Turn) -> None:
        if self._turns.get(turn.key.chat) is turn:
            del self._turns[turn.key.chat]


class _Turn:
    """The chunks of one turn, its readers, and those of them that wait.

    It is the writer's seat and what readers find (the ports `StreamWriter` and `OpenStream`).
    """

    __slots__ = (
        "__weakref__",
        "_bounds",
        "_bytes_room",
        "_ended",
        "_full",
        "_leave",
        "_readers",
        "_room",
        "_waiting",
        "_written",
        "description",
        "key",
    )

    def __init__(
        self,
        key: TurnKey,
        description: str,
        bounds: tuple[int, int],
        leave: Callable[[_Turn], None],
    ) -> None:
        self.key = key
        self.description = description
        self._written = _Written([], [])
        self._readers: WeakSet[_Reader] = WeakSet()
        self._ended = False
        self._full = False
        self._leave = leave
        self._waiting: list[Future[None]] = []  # One for each reader that waits.
        self._bounds = bounds
        self._room, self._bytes_room = bounds

    async def publish(self, chunk: BaseChunk | EncodedChunk) -> None:
        """Add the next chunk."""
        if self._ended:
            raise StoreError("a chunk came for a turn that is not open")
        entry = encoded(chunk)
        size = entry.size
        if self._room < 1 or self._bytes_room < size:
            self._overflow()
        self._room -= 1
        self._bytes_room -= size
        chunks, ends = self._written
        ends.append(ends[-1] + size if ends else size)
        chunks.append(entry)
        if self._waiting:
            self._wake()

    async def publish_end(self) -> None:
        """Do nothing: there is nobody else."""

    async def close(self) -> None:
        """End the turn."""
        self.end()

    def end(self) -> None:
        """Give up the seat; each reader keeps what it has not taken, and comes to its end."""
        self._ended = True
        self._leave(self)
        for reader in self._readers:
            reader.keep_rest()
        self._wake()

    def read(self) -> _Reader:
        """Return the turn from sequence 0 to its close."""
        reader = _Reader(self, self._written)
        self._readers.add(reader)
        if self._ended:
            reader.keep_rest()
        return reader

    def more(self) -> Future[None]:
        """Return what is done with the next chunk, or with the end."""
        waiter: Future[None] = get_running_loop().create_future()
        self._waiting.append(waiter)
        return waiter

    def _overflow(self) -> NoReturn:
        """Refuse the chunk; the first time, make room for what ends the turn."""
        if not self._full:
            self._full = True
            self._room, self._bytes_room = self._bounds
        raise StreamFull("the turn has grown over its bound")

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            # Whoever was cancelled does not wait any more.
            if not waiter.done():
                waiter.set_result(None)


class _Written(NamedTuple):
    """Chunks in order, and for each how many bytes there are up to its end."""

    chunks: list[EncodedChunk]
    ends: list[int]

    @property
    def size(self) -> int:
        return self.ends[-1] if self.ends else 0


class _Reader:
    """A position in the chunks of a turn (the port is `StreamReader`)."""

    __slots__ = ("__weakref__", "_at", "_taken", "_turn", "_written")

    def __init__(self, turn: _Turn, written: _Written) -> None:
        self._turn: _Turn | None = turn
        self._written = written
        self._at = 0
        self._taken = 0

    @property
    def backlog(self) -> int:
        """Bytes of chunks that are there and were not taken."""
        return max(0, self._written.size - self._taken)

    def keep_rest(self) -> None:
        """Hold nothing but what was not taken: nothing follows it."""
        chunks, ends = self._written
        self._written = _Written(chunks[self._at :], ends[self._at :])
        self._at = 0
        self._turn = None

    def __aiter__(self) -> _Reader:
        return self

    async def __anext__(self) -> Sequence[EncodedChunk]:
        while self._at == len(self._written.chunks):
            if self._turn is None:
                raise StopAsyncIteration
            await self._turn.more()
        return self.read_nowait()

    def read_nowait(self) -> Sequence[EncodedChunk]:
        """Take what is ready."""
        chunks, ends = self._written
        start, end = self._at, len(chunks)
        if start == end:
            return ()
        if ends[-1] - self._taken > BATCH_BYTES:
            end = max(start + 1, bisect_right(ends, self._taken + BATCH_BYTES, start))
        self._at, self._taken = end, ends[end - 1]
        return chunks[start:end]

    async def aclose(self) -> None:
        """Stop reading."""
        self._turn, self._written, self._at = None, _Written([], []), 0
