"""Approvals in a live run: a call that requires approval is held where it is, until its decision.

ADK requests no approval in a live run. The guard stores the request and its placeholder response as
ADK does in a turn, so that the call can also be answered when the run is gone.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Final

from sluicegate.core.closed_approval_outcomes import shown_decision
from sluicegate.errors import StoreError
from sluicegate.wire.live_frames import ApprovalFrame

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from sluicegate.core.approvals import ApprovalRow
    from sluicegate.live.context import LiveContext
    from sluicegate.live.exchange import LiveExchange
    from sluicegate.wire.live_frames import FinalApprovalState

NOT_YET: Final = "Not run: another call has no result yet; do this again when it has one."

_ENDS: Final[dict[str, FinalApprovalState]] = {
    "denied": "denied",
    "expired": "expired",
    "superseded": "superseded",
}


class PendingApprovals:
    """The calls of a run that wait for a decision, by ADK's id."""

    def __init__(self, context: LiveContext) -> None:
        self._context = context
        self._futures: dict[str, asyncio.Future[bool]] = {}
        self._requested: set[str] = set()
        self._reported: set[str] = set()
        self._cancelled: set[str] = set()
        self._woken = asyncio.Event()
        self._rows: dict[str, ApprovalRow] = {}
        """The last row of each of the run's calls, by call id, as the ledger was last read."""

    async def wait(self, call_id: str) -> bool:
        """Wait until a call is decided; return whether it may run."""
        self._requested.add(call_id)
        if call_id in self._cancelled:
            await self._withdraw()
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._futures[call_id] = future
        self.wake()
        try:
            return await future
        finally:
            self._futures.pop(call_id, None)

    def is_waiting(self, call_id: str) -> bool:
        """Whether a call waits for its decision."""
        return call_id in self._futures

    def resolve(self, call_id: str, *, confirmed: bool) -> None:
        """Resume a call that waits."""
        future = self._futures.get(call_id)
        if future is not None and not future.done():
            future.set_result(confirmed)

    async def withdraw(self, call_ids: Sequence[str]) -> None:
        """Close the requests of calls that the model has cancelled; decided calls go on."""
        self._cancelled.update(call_ids)
        await self._withdraw()

    def is_withdrawn(self, call_id: str) -> bool:
        """Whether the model has cancelled a call, which was closed for it."""
        row = self._rows.get(call_id)
        return call_id in self._cancelled and row is not None and row.state == "superseded"

    def wake(self) -> None:
        """Read the ledger now."""
        self._woken.set()

    def approval_of(self, call_id: str) -> str | None:
        """Return the id of the request for a call that waits for its decision."""
        row = self._rows.get(call_id)
        return row.approval_id if row is not None and row.state == "requested" else None

    def are_decided(self, exchange: LiveExchange) -> bool:
        """Whether an exchange has open calls and each is decided; none waits for the browser."""
        for call_id in exchange.open_calls:
            row = self._rows.get(call_id)
            # The row of the next request follows that of a call that asks again.
            if row is None or row.state in ("requested", "asked_again"):
                return False
            if call_id in exchange.client_calls and row.state == "approved":
                return False
        return bool(exchange.open_calls)

    async def _withdraw(self) -> None:
        ledger, chat = self._context.resources.ledger, self._context.chat
        while True:
            # A ledger that is not available is written later.
            with contextlib.suppress(StoreError):
                rows = await ledger.rows(chat)
                await ledger.withdraw(
                    [row.key for row in rows if row.key.call_id in self._cancelled]
                )
                self.wake()
                return
            await asyncio.sleep(self._context.timings.approval_poll)

    async def watch(self, ledger_read: Callable[[], Awaitable[None]]) -> None:
        """Read the ledger whenever it may have changed; ``ledger_read`` follows each read."""
        while True:
            seconds = self._context.timings.approval_poll if self._futures else None
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._woken.wait()
            self._woken.clear()
            # A ledger that is not available is read again later.
            with contextlib.suppress(StoreError):
                await self.read()
                await ledger_read()

    async def read(self) -> None:
        """Read the ledger, and report new decisions to the client."""
        ledger, chat = self._context.resources.ledger, self._context.chat
        await ledger.expire(chat)
        rows = [r for r in await ledger.rows(chat) if r.key.call_id in self._requested]
        rows.sort(key=lambda row: row.key.request_number)
        self._rows = {row.key.call_id: row for row in rows}
        for row in rows:
            if row.state != "requested" and row.approval_id not in self._reported:
                self._reported.add(row.approval_id)
                _, reason = shown_decision(row)
                end = _ENDS.get(row.state, "approved")
                self._context.outbox.send(ApprovalFrame(row.approval_id, end, reason))
