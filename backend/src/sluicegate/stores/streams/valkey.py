"""Streams that several processes share, on a Valkey or Redis server.

The process that runs a turn keeps its chunks in memory, where its own readers find them, and
copies them to the server. So nothing that a turn does waits for the server, and nothing is lost
while it is away but the view from elsewhere. The key of a chat is a stream with ids
``fence-number``: the server itself refuses an entry that is sent twice, and a writer that has
lost its lease.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, RedisError, ResponseError

from sluicegate.core.keys import TurnKey
from sluicegate.errors import ConfigurationError
from sluicegate.stores.base import MAX_BYTES, MAX_CHUNKS
from sluicegate.stores.streams.memory import MemoryStreamStore
from sluicegate.stores.streams.valkey_copy import CopiedTurn
from sluicegate.stores.streams.valkey_entries import ABOUT, TURN, Top, key_of
from sluicegate.stores.streams.valkey_reader import BLOCK_SECONDS, TurnFollower

if TYPE_CHECKING:
    from collections.abc import Collection

    from sluicegate.core.keys import ChatKey
    from sluicegate.stores.base import OpenStream, StreamWriter
    from sluicegate.wire.chunks import BaseChunk

SECONDS: Final = 1.0
"""How long a connection or a command may take."""

SCHEMES: Final = {"redis": "redis", "rediss": "rediss", "valkey": "redis", "valkeys": "rediss"}
"""How URLs begin, and what the client calls it."""

_OLDEST: Final = (6, 2)
_READABLE: Final = "write valkey://HOST:PORT/NUMBER or redis://HOST:PORT/NUMBER"

logger = logging.getLogger("sluicegate")


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
        self._follower = TurnFollower(self._client, _client(url, BLOCK_SECONDS + SECONDS))
        self._copies: dict[asyncio.Task[None], CopiedTurn] = {}

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

    async def open(self, turn: TurnKey, *, about: str = "") -> StreamWriter | None:
        """Take the writer's seat; None while it is not free for this fence."""
        writer = await self._local.open(turn, about=about)
        if writer is None:
            return None
        copied = CopiedTurn(self._client, turn, about, writer)
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

    async def give_up(self, turn: TurnKey, last: BaseChunk) -> None:
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
