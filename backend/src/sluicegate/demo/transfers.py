"""Transfers of money, which another person approves above an amount."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sluicegate.tools import Approvers, GatedCall, Role, gated

if TYPE_CHECKING:
    from google.adk.tools.base_tool import BaseTool

ALONE: Final = 1_000
"""Up to this amount the user of the chat approves alone."""


FINANCE: Final = Role("finance")


def approvers(call: GatedCall) -> Approvers | None:
    """Return who approves a transfer: above `ALONE` the user of the chat and finance."""
    if call.arguments["amount"] <= ALONE:
        return None
    return Approvers(call.user, FINANCE, quorum=2)


def transfer_tool(record: Any) -> BaseTool:
    """Make the gated tool ``transfer_money``; ``record`` notes its effects."""

    def transfer_money(recipient: str, amount: float) -> dict[str, str | float]:
        """Transfer an amount in euros from the account of the company."""
        record("transfer_money", recipient=recipient, amount=amount)
        return {"recipient": recipient, "transferred": amount}

    return gated(transfer_money, approvers=approvers)
