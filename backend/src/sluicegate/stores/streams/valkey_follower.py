"""Reading a turn's stream from Valkey."""

from __future__ import annotations

import asyncio
import logging
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from redis.exceptions import RedisError

from sluicegate.stores.streams.memory import MemoryStreamStore
from sluicegate.stores.streams.valkey_client import cancel_until_done
from sluicegate.stores.streams.valkey_entries import (
    OF,
    Position,
    chunk_of,
    is_end,
    key_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from redis.asyncio import Redis

    from sluicegate.core.chat_and_turn_keys import TurnKey
    from sluicegate.stores.streams.base import OpenStream, StreamWriter
    from sluicegate.stores.streams.time_limits import ValkeyTimings
    from sluicegate.wire.chunks import BaseChunk

logger = logging.getLogger("sluicegate")

_UNLIMITED: Final = 2**62
"""Limits of a followed stream: its writer enforces the real ones."""

_ENTRIES_AT_ONCE: Final = 1_000
_WAKE_TTL_SECONDS: Final = 3_600


@dataclass(slots=True)
class _Mirror:
    """The local copy of a turn, up to the entry ``last``."""

    key: bytes
    head: Position
    stream: OpenStream
    writer: StreamWriter
    last: Position


class ValkeyFollower:
    """Copies the turns that are read here and written elsewhere into memory.

    One task with one connection follows all of them, for any number of readers.

    Args:
        client: A client for short commands.
        blocking: A client whose commands may block.
        timings: The time limits.
    """

    def __init__(self, client: Redis, blocking: Redis, timings: ValkeyTimings) -> None:
        self._client = client
        self._blocking = blocking
        self._timings = timings
        self._mirrors: dict[TurnKey, _Mirror] = {}
        self._task: asyncio.Task[None] | None = None
        # An entry under this key ends a blocking read early, so that the next one has more keys.
        self._wake_key = f"sluicegate:wake:{secrets.token_hex(8)}"
        self._woken = "0-0"

    async def follow(self, turn: TurnKey, head: Position, description: str) -> OpenStream:
        """Follow a turn from its head on.

        Raises:
            RedisError: the server does not respond.
        """
        mirror = self._mirrors.get(turn)
        if mirror is not None:
            return mirror.stream
        store = MemoryStreamStore(max_chunks=_UNLIMITED, max_bytes=_UNLIMITED)
        writer = await store.open(turn, description=description)
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
        """The followed turns."""
        return list(self._mirrors)

    async def end(self, turn: TurnKey, last: BaseChunk | None = None) -> None:
        """Stop following a turn; its readers receive ``last``, or end early."""
        mirror = self._mirrors.pop(turn, None)
        if mirror is None:
            return
        if last is not None:
            await mirror.writer.publish(last)
        await mirror.writer.close()

    async def aclose(self) -> None:
        """Stop following every turn; the readers end early."""
        for turn in list(self._mirrors):
            await self.end(turn)
        if self._task is not None:
            await cancel_until_done([self._task], self._timings)
        await self._blocking.aclose()

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
        last_reply = loop.time()
        while self._mirrors:
            try:
                replies: Any = await self._blocking.xread(
                    self._positions(),
                    count=_ENTRIES_AT_ONCE,
                    block=round(self._timings.block * 1000),
                )
            except (RedisError, OSError):
                if loop.time() - last_reply > self._timings.unavailable:
                    logger.warning("the stream server is unavailable; remote streams end early")
                    for turn in list(self._mirrors):
                        await self.end(turn)
                    return
                await asyncio.sleep(self._timings.retry_pause)
                continue
            last_reply = loop.time()
            for key, entries in replies:
                for entry, fields in entries:
                    await self._receive(key, entry, fields)

    def _positions(self) -> dict[Any, Any]:
        first: dict[bytes, Position] = {}
        for mirror in self._mirrors.values():
            first[mirror.key] = min(mirror.last, first.get(mirror.key, mirror.last))
        return {self._wake_key: self._woken, **{key: str(last) for key, last in first.items()}}

    async def _receive(self, key: bytes, entry: bytes, fields: Mapping[bytes, bytes]) -> None:
        if key == self._wake_key.encode():
            self._woken = entry.decode()
            return
        position = Position.parse(entry)
        head = int(fields[OF])
        behind = [(t, m) for t, m in self._mirrors.items() if m.key == key and m.last < position]
        for turn, mirror in behind:
            # After a gap the server has lost entries, or another turn has begun.
            is_next = position == mirror.last.later() and head == mirror.head.number
            if not is_next or is_end(fields) or not await self._publish(mirror, fields):
                await self.end(turn)
            mirror.last = position

    async def _publish(self, mirror: _Mirror, fields: Mapping[bytes, bytes]) -> bool:
        try:
            await mirror.writer.publish(chunk_of(fields))
        except (KeyError, ValueError):
            # A newer version may write entries that this one cannot parse.
            return False
        return True
