"""The writer of a turn's stream on a Valkey server.

A chat is one stream of the server. A turn is a head, its chunks and an end, with consecutive ids.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from typing import TYPE_CHECKING, Any, Final

from redis.exceptions import RedisError, ResponseError

from sluicegate.stores.streams.valkey_entries import (
    END,
    OF,
    LastEntry,
    Position,
    fields_of,
    is_end,
    key_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from redis.asyncio import Redis

    from sluicegate.core.chat_and_turn_keys import TurnKey
    from sluicegate.stores.streams.base import StreamReader, StreamWriter
    from sluicegate.stores.streams.time_limits import ValkeyTimings
    from sluicegate.wire.chunks import BaseChunk
    from sluicegate.wire.encoding import EncodedChunk

ABOUT: Final = b"about"
TURN: Final = b"turn"
WRITER: Final = b"writer"
"""Fields of a head: the description of the turn, its id, and a random id of its writer."""


TTL_SECONDS: Final = 120
"""How long a key outlives the end of its turn; it is renewed while the turn runs."""

RENEWAL_SECONDS: Final = 30
_ENTRIES_AT_ONCE: Final = 500

logger = logging.getLogger("sluicegate")


class ValkeyWriter:
    """The writer of one turn (implements `StreamWriter`).

    Chunks are published to the stream in this process's memory; a task copies them from there to
    the server, so that a slow server delays no local reader.
    """

    def __init__(
        self,
        client: Redis,
        turn: TurnKey,
        description: str,
        local: StreamWriter,
        timings: ValkeyTimings,
    ) -> None:
        self._client = client
        self._key = key_of(turn.chat)
        self._turn = turn
        self._local = local
        self._timings = timings
        self._id = secrets.token_bytes(8)
        self._head = {TURN: turn.turn.encode(), ABOUT: description.encode(), WRITER: self._id}
        self._has_sent_head = False
        self._first: Position | None = None
        """The id of the head, set once the server has it."""
        self._is_fenced_off = False
        self._renewal_at = 0.0
        """When the key is renewed with an entry that comes alone."""
        self._ended = asyncio.Event()
        self._copying: asyncio.Task[None] | None = None
        self._deadline: float | None = None
        """Until when delivery is retried, set at the end of the turn."""

    @property
    def is_closed(self) -> bool:
        """Whether the turn has ended in this process."""
        return self._deadline is not None

    async def begin(self) -> bool:
        """Write the head; False when a turn with this fence or a higher one is open.

        An unavailable server is no obstacle: the head is written when it is available again.
        """
        try:
            await self._write_head()
        except (RedisError, OSError):
            return True
        return not self._is_fenced_off

    def copy(self, reader: StreamReader) -> asyncio.Task[None]:
        """Start copying the chunks of a reader of this turn to the server."""
        self._copying = asyncio.create_task(self._copy(reader))
        return self._copying

    async def publish(self, chunk: BaseChunk | EncodedChunk) -> None:
        """Append the next chunk."""
        await self._local.publish(chunk)

    async def publish_end(self) -> None:
        """Write the end; an available server has it when this returns."""
        if self._deadline is None:
            self._deadline = _now() + self._timings.delivery
        self._ended.set()
        if self._copying is not None:
            await asyncio.wait([self._copying], timeout=self._timings.close)

    async def close(self) -> None:
        """Close the stream."""
        if not self._ended.is_set():
            await self.publish_end()
        await self._local.close()

    async def _copy(self, reader: StreamReader) -> None:
        sent = 0
        ended = asyncio.ensure_future(self._ended.wait())
        reading = asyncio.ensure_future(anext(reader, None))
        try:
            while not self._is_fenced_off:
                await asyncio.wait(
                    [reading, ended],
                    timeout=RENEWAL_SECONDS,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                entries: list[dict[Any, Any]] = []
                if reading.done():
                    batch = reading.result()
                    if batch is None:
                        break
                    entries = [fields_of(chunk) for chunk in batch]
                    reading = asyncio.ensure_future(anext(reader, None))
                elif ended.done() and not reader.backlog:
                    break
                await self._deliver(sent, entries)
                sent += len(entries)
            await self._deliver(sent, [{END: b"1"}])
        finally:
            reading.cancel()
            ended.cancel()
            await reader.aclose()

    async def _deliver(self, sent: int, entries: Sequence[dict[Any, Any]]) -> None:
        """Send entries and retry until the server has them or the deadline has passed."""
        while not self._is_fenced_off:
            try:
                if self._first is None:
                    await self._write_head()
                if self._first is not None:
                    for start in range(0, len(entries) or 1, _ENTRIES_AT_ONCE):
                        position = self._first.later(1 + sent + start)
                        batch = entries[start : start + _ENTRIES_AT_ONCE]
                        await self._add(position, batch, self._first)
            except (RedisError, OSError):
                if self._deadline is not None and _now() > self._deadline:
                    logger.warning("a turn was not shared chat=%s", self._turn.chat.chat)
                    return
                await asyncio.sleep(self._timings.retry_pause)
            else:
                return

    async def _write_head(self) -> None:
        """Write the head after every other entry; a newer turn fences this one off."""
        last = await self._last_entry()
        fence = self._turn.fence
        if self._has_sent_head and last and await self._writer_of(last.head) == self._id:
            # The server has it already, and only its reply was lost.
            self._first = last.head
            return
        if last is not None and last.position.fence > fence and last.is_end:
            # Fences only grow while a database exists: an earlier database has left this stream.
            await self._client.delete(self._key)
            last = None
        number = 0
        if last is not None and last.position.fence >= fence:
            if last.position.fence > fence or not last.is_end:
                self._is_fenced_off = True
                return
            number = last.position.number + 1
        first = Position(fence, number)
        self._has_sent_head = True
        await self._add(first, [self._head], first)
        if self._is_fenced_off:
            return
        self._first = first
        if last is not None:
            # The previous turn stays for readers with a backlog.
            await self._client.xtrim(self._key, minid=str(last.head), approximate=False)

    async def _add(
        self, position: Position, entries: Sequence[dict[Any, Any]], head: Position
    ) -> None:
        """Add entries from a position on, each once, however often they are sent.

        Raises:
            RedisError: the server does not respond or cannot write.
        """
        of = str(head.number).encode()
        replies = await self._send(position, [{**fields, OF: of} for fields in entries])
        refusals = [reply for reply in replies if isinstance(reply, Exception)]
        for refusal in refusals:
            if not isinstance(refusal, ResponseError) or "equal or smaller" not in str(refusal):
                raise refusal
        if refusals:
            # Ids only grow: either these entries were sent before, or another turn has begun.
            last = await self._last_entry()
            newest = None if last is None else last.head
            if newest != head or await self._writer_of(head) not in (None, self._id):
                self._is_fenced_off = True

    async def _send(self, position: Position, entries: Sequence[dict[Any, Any]]) -> list[Any]:
        """Send entries, and return the replies, which may be errors."""
        if len(entries) == 1 and not is_end(entries[0]) and _now() < self._renewal_at:
            # Most deltas come alone: one command costs half as much as a pipeline of two.
            try:
                return [await self._client.xadd(self._key, entries[0], id=str(position))]
            except ResponseError as refusal:
                return [refusal]
        async with self._client.pipeline(transaction=False) as pipe:
            for offset, fields in enumerate(entries):
                pipe.xadd(self._key, fields, id=str(position.later(offset)))
            pipe.pexpire(self._key, TTL_SECONDS * 1000)
            replies = await pipe.execute(raise_on_error=False)
        self._renewal_at = _now() + RENEWAL_SECONDS
        return list(replies)

    async def _last_entry(self) -> LastEntry | None:
        return LastEntry.parse(await self._client.xrevrange(self._key, count=1))

    async def _writer_of(self, head: Position) -> bytes | None:
        entries: Any = await self._client.xrange(self._key, str(head), str(head))
        writer: bytes | None = entries[0][1].get(WRITER) if entries else None
        return writer


def _now() -> float:
    return asyncio.get_running_loop().time()
