"""Looks up the outcome of a call that a crash interrupted, by the `find` of its tool."""

from __future__ import annotations

import asyncio
import inspect
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from sluicegate.core.call_keys import idempotency_key
from sluicegate.core.json_values import json_safe
from sluicegate.engine.guard.call_responses import outcome_with_edits

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluicegate.core.approvals import ApprovalRow
    from sluicegate.stores.approvals.ledger import Ledger
    from sluicegate.tools.approval_terms import OutcomeLookup

LOOK_UP_SECONDS: Final = 10.0


async def look_up(
    ledger: Ledger,
    find: OutcomeLookup | None,
    row: ApprovalRow,
    *,
    owner: str,
    report: Callable[[BaseException], str],
    seconds: float = LOOK_UP_SECONDS,
) -> ApprovalRow | None:
    """Ask a tool for the outcome of a call that a crash interrupted, and store it.

    Returns the row with the outcome; None if the tool has no look-up, knows of no outcome, fails,
    or takes longer than ``seconds``.
    """
    if find is None:
        return None
    try:
        async with asyncio.timeout(seconds):
            result = await _call(find, idempotency_key(row.key))
    except Exception as error:  # noqa: BLE001 - it is the user's and may raise anything
        report(error)
        return None
    if result is None:
        return None
    outcome = json_safe(result)
    if isinstance(row.edits, dict):
        outcome = outcome_with_edits(outcome, row.edits)
    await ledger.store_outcome(row.key, owner=owner, state="executed", outcome=outcome)
    return replace(row, state="executed", outcome=outcome)


async def _call(find: OutcomeLookup, key: str) -> Any:
    if inspect.iscoroutinefunction(find):
        return await find(key)
    result = await asyncio.to_thread(find, key)
    return await result if inspect.isawaitable(result) else result
