"""The leases of chats that this process has: the right to write to a chat (A2)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import secrets
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from sluicegate.engine.telemetry import lease_lost
from sluicegate.engine.turn.lease_owner_ids import is_live_owner
from sluicegate.errors import HeldByAnotherOwner, StoreError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from sluicegate.core.chat_and_turn_keys import ChatKey
    from sluicegate.stores.leases.base import Leases

_RETRY_INTERVAL: Final = 0.5
"""Seconds between two tries to release a lease."""

IN_USE: Final = "This chat is in use elsewhere; try again in a moment."

logger = logging.getLogger("sluicegate")


class ChatLeases:
    """Acquires, renews and releases leases; ``ttl`` is in seconds."""

    def __init__(self, leases: Leases, ttl: float) -> None:
        self._leases = leases
        self._ttl = ttl
        self._releasing: set[asyncio.Task[None]] = set()

    async def acquire(self, chat: ChatKey, owner: str, *, after: int | None = None) -> int:
        """Acquire the chat's lease and return its fencing token.

        ``after`` is the token that the chat had when its log was read: a plan that was made on
        that log does not hold when another owner has written since.

        Raises:
            HeldByAnotherOwner: another owner writes to this chat, or has written to it.
        """
        fence = await self._leases.acquire(chat, owner=owner, ttl=self._ttl)
        if fence is None:
            raise HeldByAnotherOwner(IN_USE)
        if after is not None and fence != after + 1:
            await self._leases.release(chat, owner=owner, fence=fence)
            raise HeldByAnotherOwner(IN_USE)
        return fence

    async def release(self, chat: ChatKey, owner: str, fence: int) -> None:
        """Release the lease; without the store it is retried until the lease ends by itself."""
        try:
            await self._leases.release(chat, owner=owner, fence=fence)
        except StoreError:
            logger.warning("the lease was not released, trying again chat=%s", chat.chat)
            task = asyncio.create_task(self._retry_release(chat, owner, fence))
            self._releasing.add(task)
            task.add_done_callback(self._releasing.discard)

    async def _retry_release(self, chat: ChatKey, owner: str, fence: int) -> None:
        for _ in range(math.ceil(self._ttl / _RETRY_INTERVAL)):
            await asyncio.sleep(_RETRY_INTERVAL)
            with contextlib.suppress(StoreError):
                await self._leases.release(chat, owner=owner, fence=fence)
                return

    async def aclose(self) -> None:
        """Cancel the retries."""
        for task in self._releasing:
            task.cancel()
        if self._releasing:
            await asyncio.wait(self._releasing)

    @asynccontextmanager
    async def acquired(self, chat: ChatKey, *, after: int | None) -> AsyncIterator[None]:
        """Acquire the lease of a chat for the time of a block.

        Raises:
            HeldByAnotherOwner: another owner writes to it, or has since the token ``after``.
        """
        owner = f"moment:{secrets.token_hex(8)}"
        fence = await self.acquire(chat, owner, after=after)
        try:
            yield
        finally:
            await self.release(chat, owner, fence)

    async def renew(self, chat: ChatKey, owner: str, fence: int) -> bool:
        """Renew the lease; False when it is lost.

        Raises:
            StoreError: the store failed.
        """
        return await self._leases.renew(chat, owner=owner, fence=fence, ttl=self._ttl)

    async def keep_renewed(self, chat: ChatKey, owner: str, fence: int) -> None:
        """Renew the lease again and again; return when it is lost."""
        while True:
            await asyncio.sleep(self._ttl / 3)
            try:
                held = await self.renew(chat, owner, fence)
            except StoreError:
                logger.warning("a lease was not renewed, trying again chat=%s", chat.chat)
                continue
            if not held:
                lease_lost()
                logger.error(
                    "the turn ends, since its lease was not renewed within %g s, or another "
                    "process took it chat=%s",
                    self._ttl,
                    chat.chat,
                )
                return

    async def has_turn(self, chat: ChatKey) -> bool:
        """Whether the lease is held, and not by a live chat.

        Raises:
            StoreError: the store failed.
        """
        owner = (await self._leases.state(chat)).owner
        return owner is not None and not is_live_owner(owner)

    async def is_read_remotely(self, chat: ChatKey) -> bool:
        """Whether another process has readers of a turn here; True when the store is away."""
        try:
            return (await self._leases.state(chat)).has_remote_readers
        except StoreError:
            return True
