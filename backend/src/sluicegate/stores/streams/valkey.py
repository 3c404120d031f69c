"""The stream store of several processes, on a Valkey or Redis server."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

from redis.exceptions import AuthenticationError, RedisError, ResponseError

from sluicegate.core.chat_and_turn_keys import TurnKey
from sluicegate.errors import ConfigurationError
from sluicegate.stores.streams.base import MAX_BYTES, MAX_CHUNKS
from sluicegate.stores.streams.memory import MemoryStreamStore
from sluicegate.stores.streams.time_limits import ValkeyTimings
from sluicegate.stores.streams.valkey_client import cancel_until_done, valkey_client
from sluicegate.stores.streams.valkey_entries import LastEntry, key_of
from sluicegate.stores.streams.valkey_follower import ValkeyFollower
from sluicegate.stores.streams.valkey_writer import ABOUT, TURN, ValkeyWriter

if TYPE_CHECKING:
    from collections.abc import Collection

    from sluicegate.core.chat_and_turn_keys import ChatKey
    from sluicegate.stores.streams.base import OpenStream, StreamWriter
    from sluicegate.wire.chunks import BaseChunk

_OLDEST: Final = (6, 2)


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
