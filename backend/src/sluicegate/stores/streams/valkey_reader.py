"""The reading side: one task follows all turns that are read here and written elsewhere."""

from __future__ import annotations

import asyncio
import logging
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from redis.exceptions import RedisError

from sluicegate.stores.streams.memory import MemoryStreamStore
from sluicegate.stores.streams.valkey_entries import OF, Position, chunk_in, is_end, key_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from redis.asyncio import Redis

    from sluicegate.core.keys import TurnKey
    from sluicegate.stores.base import OpenStream, StreamWriter
    from sluicegate.wire.chunks import BaseChunk

BLOCK_SECONDS: Final = 5.0
"""How long one question to the server waits for an answer."""

PATIENCE_SECONDS: Final = 10.0
"""After so long without the server the readers are let go; their clients load the history."""

_PAUSE: Final = 0.25
_NO_BOUND: Final = 2**62
"""The writer has counted."""

_ENTRIES_AT_ONCE: Final = 1_000
_WAKE_TTL_SECONDS: Final = 3_600

logger = logging.getLogger("sluicegate")


@dataclass(slots=True)
class _Mirror:
    """What has arrived of one turn, up to ``last``."""

    key: bytes
    head: Position
    stream: OpenStream
    writer: StreamWriter
    last: Position


class TurnFollower:
    """Follows turns with one connection, however many there are and however many read them."""

    def __init__(self, client: Redis, waiting: Redis) -> None:
        """Take a client for short commands and one whose commands may wait."""
        self._client = client
        self._waiting = waiting
        self._mirrors: dict[TurnKey, _Mirror] = {}
        self._task: asyncio.Task[None] | None = None
        # An entry under this key ends a question early, so that the next one asks for more.
        self._wake_key = f"sluicegate:wake:{secrets.token_hex(8)}"
        self._woken = "0-0"

    async def follow(self, turn: TurnKey, head: Position, about: str) -> OpenStream:
        """Follow a turn from its head on.

        Raises:
            RedisError: the server does not answer.
        """
        known = self._mirrors.get(turn)
        if known is not None:
            return known.stream
        store = MemoryStreamStore(max_chunks=_NO_BOUND, max_bytes=_NO_BOUND)
        writer = await store.open(turn, about=about)
        assert writer is not None
        mirror = _Mirror(key_of(turn.chat).encode(), head, writer, writer, head)
        self._mirrors[turn] = mirror
        try:
            await self._wake()
        except (RedisError, OSError):
            await self.end(turn)
            raise
        return mirror.stream

    @property
    def turns(self) -> list[TurnKey]:
        """The turns that are followed."""
        return list(self._mirrors)

    async def end(self, turn: TurnKey, last: BaseChunk | None = None) -> None:
        """Follow a turn no more; its readers get a last chunk, or come to an early end."""
        mirror = self._mirrors.pop(turn, None)
        if mirror is None:
            return
        if last is not None:
            await mirror.writer.append(last)
        await mirror.writer.close()

    async def aclose(self) -> None:
        """Follow nothing any more; whoever reads comes to an early end."""
        for turn in list(self._mirrors):
            await self.end(turn)
        # The client may swallow a cancellation while it connects, so the connection goes too.
        if self._task is not None:
            self._task.cancel()
        await self._waiting.aclose()
        if self._task is not None:
            await asyncio.wait([self._task])

    async def _wake(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())
            return
        async with self._client.pipeline(transaction=False) as pipe:
            pipe.xadd(self._wake_key, {b"w": b"1"}, maxlen=1)
            pipe.expire(self._wake_key, _WAKE_TTL_SECONDS)
            await pipe.execute()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        heard = loop.time()
        while self._mirrors:
            try:
                replies: Any = await self._waiting.xread(
                    self._positions(), count=_ENTRIES_AT_ONCE, block=round(BLOCK_SECONDS * 1000)
                )
            except (RedisError, OSError):
                if loop.time() - heard > PATIENCE_SECONDS:
                    logger.warning("the stream server does not answer; readers are let go")
                    for turn in list(self._mirrors):
                        await self.end(turn)
                    return
                await asyncio.sleep(_PAUSE)
                continue
            heard = loop.time()
            for key, entries in replies:
                for entry, fields in entries:
                    await self._take(key, entry, fields)

    def _positions(self) -> dict[Any, Any]:
        first: dict[bytes, Position] = {}
        for mirror in self._mirrors.values():
            first[mirror.key] = min(mirror.last, first.get(mirror.key, mirror.last))
        return {self._wake_key: self._woken, **{key: str(last) for key, last in first.items()}}

    async def _take(self, key: bytes, entry: bytes, fields: Mapping[bytes, bytes]) -> None:
        if key == self._wake_key.encode():
            self._woken = entry.decode()
            return
        there = Position.read(entry)
        of = int(fields[OF])
        behind = [(t, m) for t, m in self._mirrors.items() if m.key == key and m.last < there]
        for turn, mirror in behind:
            # A gap: the server has lost something, or another turn has begun.
            goes_on = there == mirror.last.later() and of == mirror.head.number
            if not goes_on or is_end(fields) or not await self._append(mirror, fields):
                await self.end(turn)
            mirror.last = there

    async def _append(self, mirror: _Mirror, fields: Mapping[bytes, bytes]) -> bool:
        try:
            await mirror.writer.append(chunk_in(fields))
        except (KeyError, ValueError):
            # A newer version may write what this one does not know.
            return False
        return True
