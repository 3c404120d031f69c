"""Who may see and decide an approval now: the rule of its row and the roles of people (A1, A4)."""

from __future__ import annotations

import inspect
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from sluicegate.core.approvers import AUDITOR, ApproverRule, Decider
from sluicegate.tools.approvers import Role, as_approvers

if TYPE_CHECKING:
    from sluicegate.core.approvals import ApprovalRow, Rows
    from sluicegate.stores.last_seen_roles import LastSeenRoles
    from sluicegate.tools.approval_terms import ApprovalTerms, GatedCall

RolesOf: TypeAlias = Callable[[str], "Iterable[str] | Awaitable[Iterable[str]]"]
"""Returns the roles that a user has now, also async."""

RECORDED_SECONDS: Final = 60.0
"""How long the same roles of a user are not stored again."""

_MAX_RECORDED: Final = 10_000


class Entitlement:
    """The roles of users, present or absent, and what they may do with an approval.

    Args:
        store: The roles with which users were last seen.
        max_age: Seconds for which these count.
        clock: Returns seconds.
    """

    def __init__(
        self,
        store: LastSeenRoles,
        *,
        max_age: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._max_age = max_age
        self._clock = clock
        self._ask: RolesOf | None = None
        self._recorded: dict[str, tuple[frozenset[str], float]] = {}

    def ask(self, roles_of: RolesOf) -> None:
        """Ask a function for the roles of users, instead of remembering them."""
        self._ask = roles_of

    def read_once(self) -> Entitlement:
        """Return the same for one response, in which the roles of each user are read once."""
        known: dict[str, frozenset[str]] = {}

        async def roles(user: str) -> frozenset[str]:
            if user not in known:
                known[user] = await self.roles(user)
            return known[user]

        once = Entitlement(self._store, max_age=self._max_age, clock=self._clock)
        once.ask(roles)
        return once

    async def record(self, user: str, roles: frozenset[str]) -> None:
        """Record the roles with which a user is seen.

        Raises:
            StoreError: They could not be stored.
        """
        if self._ask is not None:
            return
        now = self._clock()
        known, at = self._recorded.get(user, (None, 0.0))
        if known == roles and now - at < min(RECORDED_SECONDS, self._max_age / 2):
            return
        await self._store.store(user, roles)
        if len(self._recorded) >= _MAX_RECORDED:
            self._recorded.clear()
        self._recorded[user] = (roles, now)

    async def roles(self, user: str) -> frozenset[str]:
        """Return the roles of a user, who may be absent.

        Raises:
            StoreError: They cannot be read.
        """
        if self._ask is None:
            return await self._store.read(user, max_age=self._max_age)
        found: Any = self._ask(user)
        return frozenset(await found if inspect.isawaitable(found) else found)

    async def decider(self, rows: Rows, user: str) -> Decider:
        """Return the person who decides, with roles if an approval of the chat needs them.

        Raises:
            StoreError: They cannot be read.
        """
        if all(row.approvers is None for row in rows.values()):
            return Decider(user)
        return Decider(user, await self.roles(user))

    async def may_decide(self, row: ApprovalRow, user: str) -> bool:
        """Whether a user may decide an approval."""
        if row.approvers is None:
            return user == row.key.user
        roles = await self.roles(user)
        return row.approvers.entitles(user, roles, requester=row.key.user)

    async def may_see(self, row: ApprovalRow, user: str) -> bool:
        """Whether a user may see an approval with a rule; its requester always may."""
        if user == row.key.user or any(each.by == user for each in row.decisions):
            return True
        return await self.may_decide(row, user) or AUDITOR in await self.roles(user)

    async def entitled_among(self, row: ApprovalRow, people: Iterable[str]) -> frozenset[str]:
        """Return those of these people who may decide an approval now."""
        return frozenset([user for user in people if await self.may_decide(row, user)])


async def rule_of(terms: ApprovalTerms, call: GatedCall) -> ApproverRule | None:
    """Return the rule of a call; None if the user of the chat decides it.

    Raises:
        ConfigurationError: The function of the author returns no people.
        Exception: Whatever it raises.
    """
    declared: Any = terms.approvers
    if callable(declared):
        declared = declared(call)
        declared = await declared if inspect.isawaitable(declared) else declared
    if declared is None:
        return None
    approvers = as_approvers(declared)
    own, veto = approvers.requester_may_approve, approvers.veto
    return ApproverRule(
        users=tuple(dict.fromkeys(p for p in approvers.people if isinstance(p, str))),
        roles=tuple(dict.fromkeys(p.name for p in approvers.people if isinstance(p, Role))),
        quorum=terms.quorum if approvers.quorum is None else approvers.quorum,
        requester_may_approve=terms.requester_may_approve if own is None else own,
        veto=terms.veto if veto is None else veto,
    )
