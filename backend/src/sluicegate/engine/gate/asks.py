"""Questions of a turn: on their way into the ledger, and closed there when the turn is cut (A5)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from sluicegate.core.event_parts import CONFIRMATION, arguments_of, calls_of, text
from sluicegate.core.keys import CallKey

if TYPE_CHECKING:
    from collections.abc import Iterable

    from google.adk.events.event import Event

    from sluicegate.core.keys import ChatKey
    from sluicegate.core.ledger import ApprovalRow
    from sluicegate.stores.base import Ledger


class Asks:
    """The questions that ADK has stored in this turn, by ADK's ids of their calls."""

    def __init__(self) -> None:
        """Begin without a question."""
        self.closed: dict[str, ApprovalRow] = {}
        """The rows, by approval id, of questions that ended with the turn."""
        self._written: dict[str, asyncio.Event] = {}

    def meet(self, event: Event) -> None:
        """Notice the questions of an event that is about to be stored."""
        for call in calls_of(event):
            if call.name == CONFIRMATION:
                original = arguments_of(call).get("originalFunctionCall")
                self._written.setdefault(text(original, "id"), asyncio.Event())

    def written(self, call: str) -> None:
        """The question about a call is in the ledger, or never gets there."""
        self._written.setdefault(call, asyncio.Event()).set()

    async def close(
        self, chat: ChatKey, invocation: str, calls: Iterable[str], ledger: Ledger
    ) -> list[ApprovalRow]:
        """Close the questions about calls which ADK ends by itself, before it stores their end.

        The turn hears of a question after ADK, so its row may be still to come.

        Raises:
            StoreError: The ledger cannot be written.
        """
        asked = [call for call in calls if call in self._written]
        for call in asked:
            await self._written[call].wait()
        rows = await ledger.supersede([CallKey(*chat, invocation, call) for call in asked])
        self.closed.update((row.approval_id, row) for row in rows)
        return rows
