"""The entries of a chat's stream on the server: heads of turns, their chunks, their ends."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import secrets
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from redis.exceptions import RedisError, ResponseError

from sluicegate.wire.encoding import EncodedChunk

if TYPE_CHECKING:
    from collections.abc import Sequence

    from redis.asyncio import Redis

    from sluicegate.core.keys import TurnKey
    from sluicegate.stores.streams.base import StreamReader, StreamWriter
    from sluicegate.wire.chunks import BaseChunk

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


TTL_SECONDS: Final = 120
"""How long a key outlives its last entry; while a turn runs it is renewed."""

RENEWAL_SECONDS: Final = 30
CLOSE_SECONDS: Final = 1.0
"""How long the end of a turn waits until the server has it."""

GIVE_UP_SECONDS: Final = 10.0
"""How long a turn that has ended is still offered to a server that does not answer."""

_PAUSE: Final = 0.25
_ENTRIES_AT_ONCE: Final = 500

logger = logging.getLogger("sluicegate")


class ValkeyWriter:
    """The writer's seat of one turn (the port is `StreamWriter`)."""

    def __init__(
        self, client: Redis, turn: TurnKey, description: str, writer: StreamWriter
    ) -> None:
        """Take the seat in this process's memory."""
        self._client = client
        self._key = key_of(turn.chat)
        self._turn = turn
        self._writer = writer
        self._word = secrets.token_bytes(8)
        self._head = {TURN: turn.turn.encode(), ABOUT: description.encode(), WRITER: self._word}
        self._has_tried = False
        self._first: Position | None = None
        """Where the head is on the server, once it is there."""
        self._is_fenced_off = False
        self._concluded = asyncio.Event()
        self._copying: asyncio.Task[None] | None = None
        self._deadline: float | None = None

    @property
    def is_closed(self) -> bool:
        """Whether the turn has ended here."""
        return self._deadline is not None

    async def begin(self) -> bool:
        """Take the seat on the server; False when a turn with this fence or a higher one has it.

        A server that does not answer is no hindrance: the head follows when it is back.
        """
        try:
            await self._seat()
        except (RedisError, OSError):
            return True
        return not self._is_fenced_off

    def copy(self, reader: StreamReader) -> asyncio.Task[None]:
        """Begin to copy what a reader of this turn gets."""
        self._copying = asyncio.create_task(self._copy(reader))
        return self._copying

    async def publish(self, chunk: BaseChunk | EncodedChunk) -> None:
        """Add the next chunk."""
        await self._writer.publish(chunk)

    async def publish_end(self) -> None:
        """Write the end; readers elsewhere learn of it before this returns, if the server is up."""
        if self._deadline is None:
            self._deadline = _now() + GIVE_UP_SECONDS
        self._concluded.set()
        if self._copying is not None:
            await asyncio.wait([self._copying], timeout=CLOSE_SECONDS)

    async def close(self) -> None:
        """End the turn."""
        if not self._concluded.is_set():
            await self.publish_end()
        await self._writer.close()

    async def _copy(self, reader: StreamReader) -> None:
        sent = 0
        concluded = asyncio.ensure_future(self._concluded.wait())
        following = asyncio.ensure_future(anext(reader, None))
        try:
            while not self._is_fenced_off:
                await asyncio.wait(
                    [following, concluded],
                    timeout=RENEWAL_SECONDS,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                entries: list[dict[Any, Any]] = []
                if following.done():
                    batch = following.result()
                    if batch is None:
                        break
                    entries = [fields_of(chunk) for chunk in batch]
                    following = asyncio.ensure_future(anext(reader, None))
                elif concluded.done() and not reader.backlog:
                    break
                await self._deliver(sent, entries)
                sent += len(entries)
            await self._deliver(sent, [{END: b"1"}])
        finally:
            following.cancel()
            concluded.cancel()
            await reader.aclose()

    async def _deliver(self, sent: int, entries: Sequence[dict[Any, Any]]) -> None:
        """Send entries until the server has them, or it is too late for that."""
        while not self._is_fenced_off:
            try:
                if self._first is None:
                    await self._seat()
                if self._first is not None:
                    for start in range(0, len(entries) or 1, _ENTRIES_AT_ONCE):
                        place = self._first.later(1 + sent + start)
                        await self._add(
                            place, entries[start : start + _ENTRIES_AT_ONCE], self._first
                        )
            except (RedisError, OSError):
                if self._deadline is not None and _now() > self._deadline:
                    logger.warning("a turn was not shared chat=%s", self._turn.chat.chat)
                    return
                await asyncio.sleep(_PAUSE)
            else:
                return

    async def _seat(self) -> None:
        """Put the head after everything else; whoever is further on fences this turn off."""
        top: Top | None = Top.read(await self._client.xrevrange(self._key, count=1))
        fence = self._turn.fence
        if top is not None and self._has_tried and await self._writer_of(top.head) == self._word:
            # It was there already, and only the answer was lost.
            self._first = top.head
            return
        if top is not None and top.position.fence > fence and top.is_end:
            # Fences only grow while the database lives: this is what an earlier one has left.
            await self._client.delete(self._key)
            top = None
        number = 0
        if top is not None and top.position.fence >= fence:
            if top.position.fence > fence or not top.is_end:
                self._is_fenced_off = True
                return
            number = top.position.number + 1
        first = Position(fence, number)
        self._has_tried = True
        await self._add(first, [self._head], first)
        if self._is_fenced_off:
            return
        self._first = first
        if top is not None:
            # The turn before stays, for readers that are a moment behind.
            await self._client.xtrim(self._key, minid=str(top.head), approximate=False)

    async def _add(
        self, place: Position, entries: Sequence[dict[Any, Any]], head: Position
    ) -> None:
        """Add entries from a place on, each once, however often they are sent.

        Raises:
            RedisError: the server does not answer or cannot write.
        """
        async with self._client.pipeline(transaction=False) as pipe:
            for offset, fields in enumerate(entries):
                named = {**fields, OF: str(head.number).encode()}
                pipe.xadd(self._key, named, id=str(place.later(offset)))
            pipe.pexpire(self._key, TTL_SECONDS * 1000)
            replies = await pipe.execute(raise_on_error=False)
        refused = [reply for reply in replies if isinstance(reply, Exception)]
        for refusal in refused:
            if not isinstance(refusal, ResponseError) or "equal or smaller" not in str(refusal):
                raise refusal
        if refused:
            # Ids only grow: these were sent before, or somebody else is further on.
            top: Top | None = Top.read(await self._client.xrevrange(self._key, count=1))
            there = None if top is None else top.head
            if there != head or await self._writer_of(head) not in (None, self._word):
                self._is_fenced_off = True

    async def _writer_of(self, head: Position) -> bytes | None:
        found: Any = await self._client.xrange(self._key, str(head), str(head))
        word: bytes | None = found[0][1].get(WRITER) if found else None
        return word


def _now() -> float:
    return asyncio.get_running_loop().time()
