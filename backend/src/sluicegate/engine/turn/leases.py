"""The right to write to a chat: taken, renewed and given back (A2)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import secrets
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from sluicegate.errors import HeldElsewhere, StoreError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from sluicegate.core.keys import ChatKey
    from sluicegate.stores.leases.base import Leases

AGAIN: Final = 0.5
"""Seconds between two tries to give a lease back."""

IN_USE: Final = "This chat is in use elsewhere; try again in a moment."

logger = logging.getLogger("sluicegate")


class ChatLeases:
    """Leases as this process holds them; ``ttl`` is in seconds."""

    def __init__(self, leases: Leases, ttl: float) -> None:
        self._leases = leases
        self._ttl = ttl
        self._owed: set[asyncio.Task[None]] = set()

    async def take(self, chat: ChatKey, owner: str, *, after: int | None = None) -> int:
        """Take the chat's lease and return its fence.

        ``after`` is the fence that the chat had when its log was read: a plan that was made on
        that log does not hold when somebody has written since.

        Raises:
            HeldElsewhere: somebody else writes to this chat, or has written to it.
        """
        fence = await self._leases.acquire(chat, owner=owner, ttl=self._ttl)
        if fence is None:
            raise HeldElsewhere(IN_USE)
        if after is not None and fence != after + 1:
            await self._leases.release(chat, owner=owner, fence=fence)
            raise HeldElsewhere(IN_USE)
        return fence

    async def give_back(self, chat: ChatKey, owner: str, fence: int) -> None:
        """Give the lease back; a store that is away gets it later, else it ends by itself."""
        try:
            await self._leases.release(chat, owner=owner, fence=fence)
        except StoreError:
            logger.warning("the lease was not given back, trying again chat=%s", chat.chat)
            task = asyncio.create_task(self._give_back_later(chat, owner, fence))
            self._owed.add(task)
            task.add_done_callback(self._owed.discard)

    async def _give_back_later(self, chat: ChatKey, owner: str, fence: int) -> None:
        for _ in range(math.ceil(self._ttl / AGAIN)):
            await asyncio.sleep(AGAIN)
            with contextlib.suppress(StoreError):
                await self._leases.release(chat, owner=owner, fence=fence)
                return

    async def aclose(self) -> None:
        """Give up what could not be given back."""
        for task in self._owed:
            task.cancel()
        if self._owed:
            await asyncio.wait(self._owed)

    @asynccontextmanager
    async def holding(self, chat: ChatKey, *, after: int | None) -> AsyncIterator[None]:
        """Keep everybody else from writing to a chat for a moment.

        Raises:
            HeldElsewhere: somebody writes to it, or has written since it was looked at.
        """
        owner = f"moment:{secrets.token_hex(8)}"
        fence = await self.take(chat, owner, after=after)
        try:
            yield
        finally:
            await self.give_back(chat, owner, fence)

    async def keep(self, chat: ChatKey, owner: str, fence: int) -> None:
        """Renew the lease again and again; return when it is lost."""
        while True:
            await asyncio.sleep(self._ttl / 3)
            try:
                held = await self._leases.renew(chat, owner=owner, fence=fence, ttl=self._ttl)
            except StoreError:
                logger.warning("a lease was not renewed, trying again chat=%s", chat.chat)
                continue
            if not held:
                return

    async def is_read_elsewhere(self, chat: ChatKey) -> bool:
        """Whether another process has readers of what runs here; also when nobody can tell."""
        try:
            return (await self._leases.state(chat)).has_remote_readers
        except StoreError:
            return True
