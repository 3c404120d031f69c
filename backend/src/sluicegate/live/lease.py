"""The lease of a chat that is open live: kept, lent to a turn of another kind, given back (A2)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from sluicegate.errors import HeldElsewhere, StoreError
from sluicegate.live.out import Ended

if TYPE_CHECKING:
    from sluicegate.live.hold import Hold

HELD: Final = 4409
"""Close code of the socket: somebody else has the chat."""


class LiveLease:
    """Renews the lease; says so when it is lost."""

    def __init__(self, hold: Hold) -> None:
        """Take a chat whose lease is held."""
        self._hold = hold
        self._is_back = asyncio.Event()
        self._is_back.set()
        self._renewing = asyncio.create_task(self._renew())

    @property
    def is_lent(self) -> bool:
        """Whether somebody else may write to the chat."""
        return not self._is_back.is_set()

    async def lend(self) -> None:
        """Let somebody else write to the chat."""
        self._is_back.clear()
        hold = self._hold
        await hold.parts.turns.release(hold.chat, hold.owner, hold.fence)

    async def take_back(self) -> bool:
        """Have the lease again; False if somebody else has it, which ends the chat here."""
        hold = self._hold
        try:
            hold.fence = await hold.parts.turns.lease(hold.chat, hold.owner)
        except (HeldElsewhere, StoreError):
            self._lost()
            return False
        self._is_back.set()
        return True

    async def give_back(self) -> None:
        """Nobody here holds the chat any more."""
        self._renewing.cancel()
        if not self.is_lent:
            await self.lend()

    async def _renew(self) -> None:
        hold = self._hold
        while True:
            fence = hold.fence
            await hold.parts.turns.leases.keep(hold.chat, hold.owner, fence)
            if self.is_lent:
                await self._is_back.wait()
            elif hold.fence == fence:
                self._lost()
                return

    def _lost(self) -> None:
        self._hold.out.frame(Ended(HeldElsewhere(), HELD))
