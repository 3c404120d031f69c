"""The stream store of several processes, on a Valkey or Redis server."""

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

from sluicegate.core.chat_keys import TurnKey
from sluicegate.errors import ConfigurationError
from sluicegate.stores.streams.base import MAX_BYTES, MAX_CHUNKS
from sluicegate.stores.streams.memory import MemoryStreamStore
from sluicegate.stores.streams.valkey_writer import (
    ABOUT,
    OF,
    TURN,
    LastEntry,
    Position,
    ValkeyTimings,
    ValkeyWriter,
    chunk_of,
    is_end,
    key_of,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from sluicegate.core.chat_keys import ChatKey
    from sluicegate.stores.streams.base import OpenStream, StreamWriter
    from sluicegate.wire.chunks import BaseChunk

SCHEMES: Final = {"redis": "redis", "rediss": "rediss", "valkey": "redis", "valkeys": "rediss"}
"""The schemes of our URLs, and those of the client."""

_OLDEST: Final = (6, 2)
_FORMS: Final = "write valkey://HOST:PORT/NUMBER or redis://HOST:PORT/NUMBER"

_UNLIMITED: Final = 2**62
"""Limits of a followed stream: its writer enforces the real ones."""

_ENTRIES_AT_ONCE: Final = 1_000
_WAKE_TTL_SECONDS: Final = 3_600

logger = logging.getLogger("sluicegate")


class ValkeyStreamStore:
    """The stream store of several processes (implements `StreamStore`).

    Args:
        url: The server's URL; the constructor does not connect.
        max_chunks: The limit of chunks in one turn.
        max_bytes: The limit of bytes of encoded chunks in one turn.
        timings: The time limits.

    Raises:
        ConfigurationError: the URL cannot be parsed.
    """

    is_shared: Final = True

    def __init__(
        self,
        url: str,
        *,
        max_chunks: int = MAX_CHUNKS,
        max_bytes: int = MAX_BYTES,
        timings: ValkeyTimings | None = None,
    ) -> None:
        self._timings = timings = timings or ValkeyTimings()
        self._local = MemoryStreamStore(max_chunks=max_chunks, max_bytes=max_bytes)
        self._client = valkey_client(url, timings.command, timings)
        self._follower = ValkeyFollower(
            self._client, valkey_client(url, timings.block + timings.command, timings), timings
        )
        self._copies: dict[asyncio.Task[None], ValkeyWriter] = {}

    async def connect(self) -> None:
        """Check that the server can be used; an unavailable one may become available later.

        Raises:
            ConfigurationError: the server refuses the user, or is too old.
        """
        try:
            server: dict[str, Any] = await self._client.info("server")
        except (AuthenticationError, ResponseError) as error:
            raise ConfigurationError(
                f"The stream server refuses this client ({type(error).__name__}); check the user, "
                "the password and the number of the streams URL."
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
        """Open the stream of a turn; None while one with this or a higher fence is open."""
        local = await self._local.open(turn, description=description)
        if local is None:
            return None
        writer = ValkeyWriter(self._client, turn, description, local, self._timings)
        if not await writer.begin():
            await local.close()
            return None
        copying = writer.copy(local.read())
        self._copies[copying] = writer
        copying.add_done_callback(self._copies.pop)
        return writer

    async def find(self, chat: ChatKey) -> OpenStream | None:
        """Return the open stream of a chat; None also when the server does not respond."""
        local = await self._local.find(chat)
        if local is not None:
            return local
        key = key_of(chat)
        try:
            last = LastEntry.parse(await self._client.xrevrange(key, count=1))
            if last is None or last.is_end:
                return None
            heads: Any = await self._client.xrange(key, str(last.head), str(last.head))
            if not heads:
                return None
            head = heads[0][1]
            turn = TurnKey(chat, head[TURN].decode(), last.head.fence)
            return await self._follower.follow(turn, last.head, head[ABOUT].decode())
        except (RedisError, OSError):
            return None

    def followed(self) -> Collection[TurnKey]:
        """Return the turns that are read in this process and written by other processes."""
        return self._follower.turns

    async def end_followed(self, turn: TurnKey, last: BaseChunk) -> None:
        """End a followed turn, whose writer has died, with a last chunk."""
        await self._follower.end(turn, last)

    async def check(self) -> bool:
        """Return whether the server responds."""
        try:
            await self._client.ping()
        except (RedisError, OSError):
            return False
        return True

    async def aclose(self) -> None:
        """Close the connections, after the ends of closed turns are written or time out."""
        ended = [copying for copying, writer in self._copies.items() if writer.is_closed]
        if ended:
            await asyncio.wait(ended, timeout=self._timings.command)
        await cancel_until_done(self._copies, self._timings)
        await self._follower.aclose()
        await self._client.aclose()


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


def valkey_client(url: str, response: float, timings: ValkeyTimings) -> Redis:
    """Return a client that waits ``response`` seconds for each reply and never retries.

    Raises:
        ConfigurationError: the URL cannot be parsed.
    """
    scheme, separator, rest = url.partition("://")
    if not separator or scheme not in SCHEMES:
        raise ConfigurationError(f"The streams URL cannot be read; {_FORMS}.")
    try:
        return Redis.from_url(
            f"{SCHEMES[scheme]}://{rest}",
            socket_connect_timeout=timings.command,
            socket_timeout=response,
            # The callers decide whether to retry.
            retry=Retry(NoBackoff(), 0),
            protocol=2,
        )
    except (ValueError, TypeError):
        # The URL may contain a password, so the message does not repeat it.
        raise ConfigurationError(f"The streams URL cannot be read; {_FORMS}.") from None


async def cancel_until_done(tasks: Iterable[asyncio.Task[None]], timings: ValkeyTimings) -> None:
    """Cancel tasks that use a client, again and again, until they have ended.

    The client sends with `asyncio.wait_for`, which loses a cancellation before Python 3.12 if
    the command has been sent at that moment.
    """
    unfinished = set(tasks)
    while unfinished:
        for task in unfinished:
            task.cancel()
        _, unfinished = await asyncio.wait(unfinished, timeout=timings.retry_pause)
