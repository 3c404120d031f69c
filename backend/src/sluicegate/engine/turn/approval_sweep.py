"""A background task that closes and counts approvals, also those of unused chats (A5)."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from sluicegate.engine.telemetry import OBSERVED
from sluicegate.errors import HeldByAnotherOwner, StoreError

if TYPE_CHECKING:
    from sluicegate.engine.turn.chat_leases import ChatLeases
    from sluicegate.engine.turn.local_turns import LocalTurns
    from sluicegate.stores.approvals.ledger import Ledger
    from sluicegate.stores.approvals.sweep_queries import SweepQueries

MAX_AT_ONCE: Final = 200
"""Approvals of one statement; further ones follow at once."""

logger = logging.getLogger("sluicegate")


class ApprovalSweep:
    """Closes the pending approvals of an app whose deadline has passed, in any chat.

    It also marks claimed calls whose process has died as unknown, and counts waiting approvals and
    undelivered events for the metrics. Each process does so: an approval changes once, and is
    published by the process that changed it.

    Args:
        app: The name of the app.
        ledger: Its approvals.
        due: The queries of what is due: reminders, counts and claimed chats.
        leases: The leases of the chats; a process that lives holds that of a claimed call.
        turns: The turns of this process.
    """

    def __init__(
        self, app: str, ledger: Ledger, due: SweepQueries, leases: ChatLeases, turns: LocalTurns
    ) -> None:
        self._app = app
        self._ledger = ledger
        self._due = due
        self._leases = leases
        self._turns = turns
        self._task: asyncio.Task[None] | None = None

    def start(self, interval: float, *, reminds: bool = False) -> None:
        """Run the sweep every ``interval`` seconds.

        ``reminds``: it also publishes the reminders that are due.
        """
        self._task = asyncio.create_task(self._run(interval, reminds=reminds))

    async def aclose(self) -> None:
        """Stop the sweep."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self, interval: float, *, reminds: bool) -> None:
        while True:
            await self._count()
            await asyncio.sleep(interval)
            try:
                while await self._ledger.expire_due(self._app, limit=MAX_AT_ONCE) == MAX_AT_ONCE:
                    pass
                await self._find_lost()
                if reminds:
                    await self._due.remind()
            except StoreError as error:
                logger.warning("approvals were not expired: %s", error)

    async def _count(self) -> None:
        try:
            OBSERVED.waiting_approvals(self._app, *await self._due.count_waiting())
            OBSERVED.undelivered_events(self._app, *await self._due.count_undelivered())
        except StoreError as error:
            logger.warning("what waits was not counted: %s", error)

    async def _find_lost(self) -> None:
        for chat in await self._due.claimed_chats(limit=MAX_AT_ONCE):
            try:
                async with self._leases.acquired(chat, after=None):
                    owners = self._turns.claim_owners()
                    await self._ledger.mark_unknown(chat, owners_alive=owners)
            except HeldByAnotherOwner:
                # Its process lives, or its lease has not ended yet.
                continue
