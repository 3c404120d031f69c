"""The stream store in the memory of one process."""

from __future__ import annotations

from asyncio import Future, get_running_loop
from bisect import bisect_right
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn
from weakref import WeakSet

from sluicegate.errors import StoreError
from sluicegate.stores.streams.base import (
    BATCH_BYTES,
    MAX_BYTES,
    MAX_CHUNKS,
    StreamFull,
    encoded,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from sluicegate.core.chat_and_turn_keys import ChatKey, TurnKey
    from sluicegate.wire.chunks import BaseChunk
    from sluicegate.wire.encoding import EncodedChunk


class MemoryStreamStore:
    """The stream store of a single process (implements `StreamStore`).

    The chunks of a turn are one list, and a reader is an index into it. After the end of a turn
    each reader keeps only its unread chunks.

    Args:
        max_chunks: The limit of chunks in one turn.
        max_bytes: The limit of bytes of encoded chunks in one turn.
    """

    is_shared: Final = False

    def __init__(self, *, max_chunks: int = MAX_CHUNKS, max_bytes: int = MAX_BYTES) -> None:
        self._limits = (max_chunks, max_bytes)
        self._streams: dict[ChatKey, _Stream] = {}

    async def open(self, turn: TurnKey, *, description: str = "") -> _Stream | None:
        """Open the stream of a turn; None while one with this or a higher fence is open."""
        current = self._streams.get(turn.chat)
        if current is not None:
            if current.key.fence >= turn.fence:
                return None
            current.end()
        stream = _Stream(turn, description, self._limits, self._remove)
        self._streams[turn.chat] = stream
        return stream

    async def find(self, chat: ChatKey) -> _Stream | None:
        """Return the open stream of a chat."""
        return self._streams.get(chat)

    def followed(self) -> Collection[TurnKey]:
        """Return nothing: no other process writes here."""
        return ()

    async def end_followed(self, turn: TurnKey, last: BaseChunk) -> None:
        """Do nothing: no turn is followed."""

    async def check(self) -> bool:
        """Return True."""
        return True

    async def aclose(self) -> None:
        """Do nothing: readers own what they have not read."""

    def _remove(self, stream: _Stream) -> None:
        if self._streams.get(stream.key.chat) is stream:
            del self._streams[stream.key.chat]


class _Stream:
    """The chunks of one turn (implements `StreamWriter` and `OpenStream`)."""

    __slots__ = (
        "__weakref__",
        "_bytes_left",
        "_chunks_left",
        "_ended",
        "_full",
        "_limits",
        "_published",
        "_readers",
        "_remove",
        "_waiting",
        "description",
        "key",
    )

    def __init__(
        self,
        key: TurnKey,
        description: str,
        limits: tuple[int, int],
        remove: Callable[[_Stream], None],
    ) -> None:
        self.key = key
        self.description = description
        self._published = _Published([], [])
        self._readers: WeakSet[_Reader] = WeakSet()
        self._waiting: list[Future[None]] = []  # One of each reader that waits.
        self._remove = remove
        self._limits = limits
        self._chunks_left, self._bytes_left = limits
        self._full = False
        self._ended = False

    async def publish(self, chunk: BaseChunk | EncodedChunk) -> None:
        """Append the next chunk."""
        if self._ended:
            raise StoreError("a chunk came for a turn that is not open")
        entry = encoded(chunk)
        size = entry.size
        if self._chunks_left < 1 or self._bytes_left < size:
            self._refuse()
        self._chunks_left -= 1
        self._bytes_left -= size
        chunks, ends = self._published
        ends.append(ends[-1] + size if ends else size)
        chunks.append(entry)
        if self._waiting:
            self._wake()

    async def publish_end(self) -> None:
        """Do nothing: no other process reads this stream."""

    async def close(self) -> None:
        """Close the stream."""
        self.end()

    def end(self) -> None:
        """Remove the stream from the store; each reader keeps its unread chunks."""
        self._ended = True
        self._remove(self)
        for reader in self._readers:
            reader.detach()
        self._wake()

    def read(self) -> _Reader:
        """Return a reader from sequence 0 to the end of the stream."""
        reader = _Reader(self, self._published)
        self._readers.add(reader)
        if self._ended:
            reader.detach()
        return reader

    def changed(self) -> Future[None]:
        """Return a future that is done with the next chunk or at the end."""
        waiter: Future[None] = get_running_loop().create_future()
        self._waiting.append(waiter)
        return waiter

    def _refuse(self) -> NoReturn:
        """Refuse the chunk; the first time, reset the limits for the chunks of the end."""
        if not self._full:
            self._full = True
            self._chunks_left, self._bytes_left = self._limits
        raise StreamFull("the turn has grown over its bound")

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            # The waiter of a cancelled reader is done already.
            if not waiter.done():
                waiter.set_result(None)


class _Published(NamedTuple):
    """Chunks in order, and for each the number of bytes up to its end."""

    chunks: list[EncodedChunk]
    ends: list[int]

    @property
    def size(self) -> int:
        return self.ends[-1] if self.ends else 0


class _Reader:
    """An index into the chunks of a turn (implements `StreamReader`)."""

    __slots__ = ("__weakref__", "_index", "_published", "_read_bytes", "_stream")

    def __init__(self, stream: _Stream, published: _Published) -> None:
        self._stream: _Stream | None = stream
        self._published = published
        self._index = 0
        self._read_bytes = 0

    @property
    def backlog(self) -> int:
        """Bytes of chunks that are published and not read yet."""
        return max(0, self._published.size - self._read_bytes)

    def detach(self) -> None:
        """Keep only the unread chunks: no others follow."""
        chunks, ends = self._published
        self._published = _Published(chunks[self._index :], ends[self._index :])
        self._index = 0
        self._stream = None

    def __aiter__(self) -> _Reader:
        return self

    async def __anext__(self) -> Sequence[EncodedChunk]:
        while self._index == len(self._published.chunks):
            if self._stream is None:
                raise StopAsyncIteration
            await self._stream.changed()
        return self.read_nowait()

    def read_nowait(self) -> Sequence[EncodedChunk]:
        """Return the available chunks, up to `BATCH_BYTES`."""
        chunks, ends = self._published
        start, end = self._index, len(chunks)
        if start == end:
            return ()
        if ends[-1] - self._read_bytes > BATCH_BYTES:
            end = max(start + 1, bisect_right(ends, self._read_bytes + BATCH_BYTES, start))
        self._index, self._read_bytes = end, ends[end - 1]
        return chunks[start:end]

    async def aclose(self) -> None:
        """Stop reading."""
        self._stream, self._published, self._index = None, _Published([], []), 0
