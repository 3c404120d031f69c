"""The port of the stream store: the chunks of the turns that run, one writer per chat."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, Self

from sluicegate.errors import StoreError
from sluicegate.wire.encoding import EncodedChunk, encode_chunk

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from sluicegate.core.chat_and_turn_keys import ChatKey, TurnKey
    from sluicegate.wire.chunks import BaseChunk

MAX_CHUNKS: Final = 50_000
"""The default limit of chunks in one turn."""

MAX_BYTES: Final = 8 * 1024 * 1024
"""The default limit of bytes of encoded chunks in one turn."""

BATCH_BYTES: Final = 16 * 1024
"""The largest batch that a reader returns, unless a single chunk is larger."""


class StreamFull(StoreError):
    """The turn exceeds its limit of chunks or bytes; end it with an error (D5)."""


def encoded(chunk: BaseChunk | EncodedChunk) -> EncodedChunk:
    """Encode a chunk for storage; an encoded chunk is returned unchanged.

    Raises:
        StoreError: the chunk cannot be encoded.
    """
    if isinstance(chunk, EncodedChunk):
        return chunk
    try:
        return encode_chunk(chunk)
    except (RecursionError, TypeError, ValueError) as error:
        raise StoreError(f"a chunk cannot be encoded: {type(error).__name__}") from error


class StreamWriter(Protocol):
    """The only writer of one turn's stream."""

    async def publish(self, chunk: BaseChunk | EncodedChunk) -> None:
        """Append the next chunk of the turn; sequence numbers begin at 0.

        A chunk over a limit is refused with `StreamFull`. After the first refusal the limits
        start again from zero, so that the chunks that end the turn fit.

        Raises:
            StreamFull: the turn exceeds its limit; the chunk is not in the stream.
            StoreError: the stream is closed, a turn with a higher fence has replaced it, or the
                chunk cannot be encoded.
        """

    async def publish_end(self) -> None:
        """Publish the end of the stream to other processes; local readers still wait.

        It precedes the release of the lease: a replica that finds neither an end nor an owner
        concludes that the owner has died.
        """

    async def close(self) -> None:
        """Close the stream; current readers still receive all of it. Idempotent."""


class StreamReader(Protocol):
    """An asynchronous iterator over one turn's chunks in batches, without polling."""

    @property
    def backlog(self) -> int:
        """Bytes of chunks that are published and not read yet; 0 where that is unknown."""

    def __aiter__(self) -> Self:
        """Return the reader."""

    async def __anext__(self) -> Sequence[EncodedChunk]:
        """Wait for chunks and return those available, up to `BATCH_BYTES`."""

    def read_nowait(self) -> Sequence[EncodedChunk]:
        """Return the available chunks, up to `BATCH_BYTES`; possibly none."""

    async def aclose(self) -> None:
        """Stop reading."""


class OpenStream(Protocol):
    """The open stream of a turn that runs in this process or in another replica."""

    @property
    def key(self) -> TurnKey:
        """The turn's key."""

    @property
    def description(self) -> str:
        """The text that the writer passed to `StreamStore.open`."""

    def read(self) -> StreamReader:
        """Return a reader from sequence 0 to the end of the stream.

        The reader ends early when a turn with a higher fence replaces this one.
        """


class StreamStore(Protocol):
    """The streams of the running turns, one writer and any number of readers per chat."""

    async def open(self, turn: TurnKey, *, description: str = "") -> StreamWriter | None:
        """Open the stream of a turn; it replaces that of a turn with a lower fence.

        Returns None while a turn of this chat with the same or a higher fence is open.
        """

    async def find(self, chat: ChatKey) -> OpenStream | None:
        """Return the open stream of a chat; it stays readable after its end.

        Returns None also when the server does not respond: clients then load the session log.
        """

    @property
    def is_shared(self) -> bool:
        """Whether other processes can read the streams of this one."""

    def followed(self) -> Collection[TurnKey]:
        """Return the turns that are read in this process and written by other processes."""

    async def end_followed(self, turn: TurnKey, last: BaseChunk) -> None:
        """End a followed turn, whose writer has died, with a last chunk."""

    async def check(self) -> bool:
        """Return whether the store responds."""

    async def aclose(self) -> None:
        """Release all resources; every writer must be closed before."""
