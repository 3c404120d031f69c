"""Calls with an unknown outcome that a person resolves, who has checked what happened (A5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from sluicegate.stores.approvals.ledger_rows import key_values, to_json
from sluicegate.stores.approvals.ledger_statement_values import resolver_values

if TYPE_CHECKING:
    from pydantic import JsonValue

    from sluicegate.core.approvals import Resolver
    from sluicegate.core.call_keys import CallKey
    from sluicegate.stores.approvals.execute_ledger_transitions import LedgerTransitions
    from sluicegate.stores.approvals.ledger_statements import TransitionName


class Resolutions:
    """Moves calls out of ``unknown`` by the word of a person.

    It is one compare-and-set with its line of the audit trail; another run is a claim like any
    other, see `Ledger.claim`.
    """

    def __init__(self, transitions: LedgerTransitions) -> None:
        self._transitions = transitions

    async def store(
        self,
        key: CallKey,
        state: Literal["executed", "failed"],
        outcome: JsonValue,
        *,
        by: Resolver,
    ) -> bool:
        """Store an outcome; False when the outcome is known, or the call runs.

        Raises:
            StoreError: The database fails.
        """
        name: TransitionName = "resolve executed" if state == "executed" else "resolve failed"
        values = {**key_values(key), **resolver_values(by), "new_outcome": to_json(outcome)}
        return bool(await self._transitions.execute(name, values, reason=by.reason))
