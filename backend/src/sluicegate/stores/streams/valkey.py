"""The reading side: one task follows all turns that are read here and written elsewhere."""

from __future__ import annotations

import asyncio
import logging
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, RedisError, ResponseError

from sluicegate.core.keys import TurnKey
from sluicegate.errors import ConfigurationError
from sluicegate.stores.streams.base import MAX_BYTES, MAX_CHUNKS
from sluicegate.stores.streams.memory import MemoryStreamStore
from sluicegate.stores.streams.valkey_writer import (
    ABOUT,
    OF,
    TURN,
    Position,
    Top,
    ValkeyWriter,
    chunk_in,
    is_end,
    key_of,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from sluicegate.core.keys import ChatKey
    from sluicegate.stores.streams.base import OpenStream, StreamWriter
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


class ValkeyFollower:
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

    async def follow(self, turn: TurnKey, head: Position, description: str) -> OpenStream:
        """Follow a turn from its head on.

        Raises:
            RedisError: the server does not answer.
        """
        known = self._mirrors.get(turn)
        if known is not None:
            return known.stream
        store = MemoryStreamStore(max_chunks=_NO_BOUND, max_bytes=_NO_BOUND)
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
        """The turns that are followed."""
        return list(self._mirrors)

    async def end(self, turn: TurnKey, last: BaseChunk | None = None) -> None:
        """Follow a turn no more; its readers get a last chunk, or come to an early end."""
        mirror = self._mirrors.pop(turn, None)
        if mirror is None:
            return
        if last is not None:
            await mirror.writer.publish(last)
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
            await mirror.writer.publish(chunk_in(fields))
        except (KeyError, ValueError):
            # A newer version may write what this one does not know.
            return False
        return True


SECONDS: Final = 1.0
"""How long a connection or a command may take."""

SCHEMES: Final = {"redis": "redis", "rediss": "rediss", "valkey": "redis", "valkeys": "rediss"}
"""How URLs begin, and what the client calls it."""

_OLDEST: Final = (6, 2)
_READABLE: Final = "write valkey://HOST:PORT/NUMBER or redis://HOST:PORT/NUMBER"


class ValkeyStreamStore:
    """The stream store of several processes (the port is `StreamStore`)."""

    is_shared: Final = True

    def __init__(
        self, url: str, *, max_chunks: int = MAX_CHUNKS, max_bytes: int = MAX_BYTES
    ) -> None:
        """Take the server's URL and the bounds of a turn; nothing connects yet.

        Raises:
            ConfigurationError: the URL cannot be read.
        """
        self._local = MemoryStreamStore(max_chunks=max_chunks, max_bytes=max_bytes)
        self._client = _client(url, SECONDS)
        self._follower = ValkeyFollower(self._client, _client(url, BLOCK_SECONDS + SECONDS))
        self._copies: dict[asyncio.Task[None], ValkeyWriter] = {}

    async def look(self) -> None:
        """See whether the server can be used; one that does not answer may come back.

        Raises:
            ConfigurationError: the server lets nobody in, or is too old.
        """
        try:
            server: dict[str, Any] = await self._client.info("server")
        except (AuthenticationError, ResponseError) as error:
            raise ConfigurationError(
                f"The stream server lets nobody in ({type(error).__name__}); check the user, the "
                "password and the number of the streams URL."
            ) from error
        except (RedisError, OSError):
            logger.warning("the stream server does not answer; streams are not shared meanwhile")
            return
        version = str(server.get("redis_version", ""))
        numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
        if numbers and numbers < _OLDEST:
            raise ConfigurationError(
                f"The stream server is like Redis {version}; Valkey, or Redis 6.2 or later, is "
                "needed."
            )

    async def open(self, turn: TurnKey, *, description: str = "") -> StreamWriter | None:
        """Take the writer's seat; None while it is not free for this fence."""
        writer = await self._local.open(turn, description=description)
        if writer is None:
            return None
        copied = ValkeyWriter(self._client, turn, description, writer)
        if not await copied.begin():
            await writer.close()
            return None
        copying = copied.copy(writer.read())
        self._copies[copying] = copied
        copying.add_done_callback(self._copies.pop)
        return copied

    async def find(self, chat: ChatKey) -> OpenStream | None:
        """Return the turn of a chat that is open; None also when the server does not answer."""
        found = await self._local.find(chat)
        if found is not None:
            return found
        key = key_of(chat)
        try:
            top = Top.read(await self._client.xrevrange(key, count=1))
            if top is None or top.is_end:
                return None
            heads: Any = await self._client.xrange(key, str(top.head), str(top.head))
            if not heads:
                return None
            head = heads[0][1]
            turn = TurnKey(chat, head[TURN].decode(), top.head.fence)
            return await self._follower.follow(turn, top.head, head[ABOUT].decode())
        except (RedisError, OSError):
            return None

    def followed(self) -> Collection[TurnKey]:
        """Return the turns that are read here and written by other processes."""
        return self._follower.turns

    async def end_followed(self, turn: TurnKey, last: BaseChunk) -> None:
        """End a followed turn with a last chunk: its writer is gone."""
        await self._follower.end(turn, last)

    async def check(self) -> bool:
        """Return whether the server answers."""
        try:
            await self._client.ping()
        except (RedisError, OSError):
            return False
        return True

    async def aclose(self) -> None:
        """Close the connections; what has ended meanwhile is still told, if the server listens."""
        ended = [copying for copying, copied in self._copies.items() if copied.is_closed]
        if ended:
            await asyncio.wait(ended, timeout=SECONDS)
        for copying in list(self._copies):
            copying.cancel()
            await asyncio.wait([copying])
        await self._follower.aclose()
        await self._client.aclose()


def _client(url: str, seconds: float) -> Redis:
    scheme, separator, rest = url.partition("://")
    if not separator or scheme not in SCHEMES:
        raise ConfigurationError(f"The streams URL cannot be read; {_READABLE}.")
    try:
        return Redis.from_url(
            f"{SCHEMES[scheme]}://{rest}",
            socket_connect_timeout=SECONDS,
            socket_timeout=seconds,
            # Whoever waits for the server decides whether to try again.
            retry=Retry(NoBackoff(), 0),
            protocol=2,
        )
    except (ValueError, TypeError):
        # The text may hold a password, so the sentence does not repeat it.
        raise ConfigurationError(f"The streams URL cannot be read; {_READABLE}.") from None
