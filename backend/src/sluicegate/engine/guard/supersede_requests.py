"""Approval requests that ADK ends by itself: they are superseded once they are in the ledger."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from sluicegate.core.call_keys import CallKey
from sluicegate.core.event_reading import CONFIRMATION, adk_calls_of, arguments_of, text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from google.adk.events.event import Event

    from sluicegate.core.approvals import ApprovalRow
    from sluicegate.core.chat_and_turn_keys import ChatKey
    from sluicegate.stores.approvals.ledger import Ledger


class ApprovalRequests:
    """The approval requests that ADK has stored in a turn, by ADK's ids of their calls.

    ``superseded`` are the rows, by approval id, of requests that ended with the turn.
    """

    def __init__(self) -> None:
        self.superseded: dict[str, ApprovalRow] = {}
        self._stored: dict[str, asyncio.Event] = {}
        self._keys: dict[str, CallKey] = {}

    def observe(self, event: Event) -> None:
        """Record the requests of an event that is about to be stored."""
        for call in adk_calls_of(event):
            if call.name == CONFIRMATION:
                original = arguments_of(call).get("originalFunctionCall")
                self._stored.setdefault(text(original, "id"), asyncio.Event())

    def mark_stored(self, call: str, key: CallKey) -> None:
        """Record that the request of a call is in the ledger, or failed to be stored."""
        self._keys[call] = key
        self._stored.setdefault(call, asyncio.Event()).set()

    async def supersede(
        self, chat: ChatKey, invocation: str, calls: Iterable[str], ledger: Ledger
    ) -> list[ApprovalRow]:
        """Supersede the requests of calls that ADK ends by itself, before it stores their end.

        The turn reads a request after ADK has stored it, so this waits for its row.

        Raises:
            StoreError: The ledger cannot be written.
        """
        requested = [call for call in calls if call in self._stored]
        for call in requested:
            await self._stored[call].wait()
        keys = [self._keys.get(call, CallKey(*chat, invocation, call)) for call in requested]
        rows = await ledger.supersede(keys)
        self.superseded.update((row.approval_id, row) for row in rows)
        return rows
