"""Calls of a live run that wait for a person: held where they stand, woken by the ledger."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Final

from sluicegate.core.ledger_overlay import shown_answer
from sluicegate.errors import StoreError
from sluicegate.wire.live_frames import ApprovalFrame

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from sluicegate.core.approvals import ApprovalRow
    from sluicegate.live.exchange import LiveExchange
    from sluicegate.live.hold import Hold
    from sluicegate.wire.live_frames import ApprovalEnd

INTERVAL: Final = 1.0
"""Seconds after which the ledger is read again: others may have decided, or nobody in time (A2)."""

_ENDS: Final[dict[str, ApprovalEnd]] = {
    "denied": "denied",
    "expired": "expired",
    "superseded": "superseded",
}


class Asks:
    """The waiting calls, by ADK's id."""

    def __init__(self, hold: Hold, look: Callable[[], Awaitable[None]]) -> None:
        """``look`` is called while calls wait, after the ledger was read."""
        self._hold = hold
        self._look = look
        self._waiting: dict[str, asyncio.Future[bool]] = {}
        self._asked: set[str] = set()
        self._told: set[str] = set()
        self._wake = asyncio.Event()
        self.rows: dict[str, ApprovalRow] = {}
        """The rows of this run's calls, by call id, as they were read last."""

    async def wait(self, call_id: str) -> bool:
        """Wait until the call is decided; whether it may run."""
        self._asked.add(call_id)
        decided: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting[call_id] = decided
        self.wake()
        try:
            return await decided
        finally:
            self._waiting.pop(call_id, None)

    def is_waiting(self, call_id: str) -> bool:
        """Whether somebody waits for a decision on that call."""
        return call_id in self._waiting

    def resolve(self, call_id: str, *, confirmed: bool) -> None:
        """Let a call go on."""
        decided = self._waiting.get(call_id)
        if decided is not None and not decided.done():
            decided.set_result(confirmed)

    def wake(self) -> None:
        """Read the ledger now."""
        self._wake.set()

    def are_decided(self, exchange: LiveExchange) -> bool:
        """Whether an exchange waits for nobody any more; a browser answers by itself."""
        for call_id in exchange.calls:
            row = self.rows.get(call_id)
            if row is None or row.state == "requested":
                return False
            if call_id in exchange.in_browser and row.state == "approved":
                return False
        return bool(exchange.calls)

    async def watch(self) -> None:
        """Follow the ledger for as long as this runs."""
        while True:
            if self._waiting:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(INTERVAL):
                        await self._wake.wait()
            else:
                await self._wake.wait()
            self._wake.clear()
            # A database that does not answer now is asked again.
            with contextlib.suppress(StoreError):
                await self.read()
                await self._look()

    async def read(self) -> None:
        """Read the ledger, and tell what was decided since."""
        ledger, chat = self._hold.parts.ledger, self._hold.chat
        await ledger.expire(chat)
        rows = await ledger.rows(chat)
        self.rows = {row.key.call: row for row in rows if row.key.call in self._asked}
        for row in self.rows.values():
            if row.state != "requested" and row.approval_id not in self._told:
                self._told.add(row.approval_id)
                _, reason = shown_answer(row)
                end = _ENDS.get(row.state, "approved")
                self._hold.out.frame(ApprovalFrame(row.approval_id, end, reason))
