"""Calls with an unknown outcome that a person resolves, who has checked what happened (A5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from sluicegate.stores.approvals.statements import key_values, to_json

if TYPE_CHECKING:
    from pydantic import JsonValue

    from sluicegate.core.chat_keys import CallKey
    from sluicegate.stores.approvals.statements import LedgerTransitions, TransitionName


@dataclass(frozen=True, slots=True)
class Resolver:
    """The person who resolves an outcome, the transport, and why: as the audit trail names them."""

    user: str
    via: str
    reason: str


class Resolutions:
    """Moves calls out of ``unknown`` by the word of a person.

    Every method is one compare-and-set with its line of the audit trail, and raises StoreError when
    the database fails.
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
        """Store an outcome; False when the outcome is known, or the call runs."""
        name: TransitionName = "resolve executed" if state == "executed" else "resolve failed"
        return await self._resolve(name, key, by, new_outcome=to_json(outcome))

    async def claim(self, key: CallKey, *, owner: str, by: Resolver) -> bool:
        """Claim a call that is to run again; False when the outcome is known, or the call runs."""
        return await self._resolve("resolve again", key, by, new_owner=owner)

    async def _resolve(
        self, name: TransitionName, key: CallKey, by: Resolver, **stored: Any
    ) -> bool:
        values = {**key_values(key), "audit_by": by.user, "audit_via": by.via, **stored}
        return bool(await self._transitions.execute(name, values, reason=by.reason))
