"""Notices that the deadlines of approvals have passed, although nobody uses their chats (A5)."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from sluicegate.engine.telemetry import OBSERVED
from sluicegate.errors import StoreError

if TYPE_CHECKING:
    from sluicegate.stores.approvals.ledger import Ledger

MAX_AT_ONCE: Final = 200
"""Approvals of one statement; further ones follow at once."""

logger = logging.getLogger("sluicegate")


class ApprovalExpiry:
    """Closes the pending approvals of an app whose deadline has passed, in any chat.

    It also counts those that wait, for the metrics.

    Each process does so: an approval expires once, and is published by the one that closed it.

    Args:
        app: The name of the app.
        ledger: Its approvals.
    """

    def __init__(self, app: str, ledger: Ledger) -> None:
        self._app = app
        self._ledger = ledger
        self._task: asyncio.Task[None] | None = None

    def start(self, interval: float) -> None:
        """Look for them from now on, every ``interval`` seconds."""
        self._task = asyncio.create_task(self._run(interval))

    async def aclose(self) -> None:
        """Stop looking."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self, interval: float) -> None:
        while True:
            await self._count()
            await asyncio.sleep(interval)
            try:
                while await self._ledger.expire_due(self._app, limit=MAX_AT_ONCE) == MAX_AT_ONCE:
                    pass
            except StoreError as error:
                logger.warning("approvals were not expired: %s", error)

    async def _count(self) -> None:
        try:
            OBSERVED.waiting_approvals(self._app, *await self._ledger.waiting(self._app))
        except StoreError as error:
            logger.warning("waiting approvals were not counted: %s", error)
