"""The lease of a chat that is open live: kept, given to a turn, taken again (A2)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from sluicegate.errors import HeldByAnotherOwner, StoreError
from sluicegate.live.outgoing_frame_queue import ChatEnded

if TYPE_CHECKING:
    from sluicegate.live.context import LiveContext


class LiveLease:
    """The lease of an open live chat: renewed, released to a turn of another kind, taken again."""

    def __init__(self, context: LiveContext) -> None:
        self._context = context
        self._is_held = asyncio.Event()
        self._is_held.set()
        self._renewal = asyncio.create_task(self._renew())

    @property
    def is_held(self) -> bool:
        """Whether this chat may write to the session."""
        return self._is_held.is_set()

    async def release(self) -> None:
        """Release the lease; renewal pauses until it is taken again."""
        self._is_held.clear()
        context = self._context
        await context.resources.leases.release(context.chat, context.owner, context.fence)

    async def take_again(self) -> bool:
        """Reacquire the released lease; False if that fails, which ends the chat."""
        context = self._context
        try:
            context.fence = await context.resources.leases.acquire(context.chat, context.owner)
        except (HeldByAnotherOwner, StoreError):
            self._report_loss()
            return False
        self._is_held.set()
        return True

    async def close(self) -> None:
        """Stop renewing the lease and release it."""
        self._renewal.cancel()
        if self.is_held:
            await self.release()

    async def _renew(self) -> None:
        context = self._context
        while True:
            fence = context.fence
            await context.resources.leases.keep_renewed(context.chat, context.owner, fence)
            if not self.is_held:
                await self._is_held.wait()
            elif context.fence == fence:
                self._report_loss()
                return

    def _report_loss(self) -> None:
        self._context.outbox.send(ChatEnded(HeldByAnotherOwner(), "lease_lost"))
