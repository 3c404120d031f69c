"""The ledger: who decided what and when, and which calls have run (A1, A4)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

from sqlalchemy import insert

from sluicegate.core.approvals import NO_BASIS
from sluicegate.core.chat_and_turn_keys import ChatKey
from sluicegate.errors import StoreError
from sluicegate.stores.approvals.entitlements import entitle
from sluicegate.stores.approvals.execute_ledger_transitions import LedgerTransitions
from sluicegate.stores.approvals.grants import GrantLookup, add_grant, find_grants
from sluicegate.stores.approvals.ledger_rows import key_values, row_of
from sluicegate.stores.approvals.ledger_statement_values import (
    decision_values,
    error_in,
    error_outcome,
    outcome_values,
    proposed_values,
    request_values,
    requests_of,
    resolver_values,
)
from sluicegate.stores.approvals.ledger_statements import (
    CLAIMED_OWNERS,
    CLOSE_EXPIRED,
    DUE,
    ERASE_DECISIONS,
    ERASE_DETAILS,
    PENDING_COUNTS,
    ROWS,
)
from sluicegate.stores.approvals.outcome_resolutions import Resolutions
from sluicegate.stores.approvals.quorum_decisions import (
    PersonalDecisions,
    has_lost,
    select_rows,
    with_decisions,
)
from sluicegate.stores.sql.schema import AUDIT

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence

    from pydantic import JsonValue
    from sqlalchemy import Connection

    from sluicegate.core.approvals import ApprovalRow, ClaimBasis, Decision, Grant, NewApproval
    from sluicegate.core.call_keys import CallKey
    from sluicegate.stores.approvals.ledger_statements import TransitionName
    from sluicegate.stores.sql.database import Database
    from sluicegate.stores.streams.user_events import UserEvents

OUTCOME_RETRY_SECONDS: Final = 30.0
"""How long storing an outcome is retried while the database is unavailable: only we know it."""

BY_GRANT: Final = "remembered"
"""Stored instead of a transport when a grant has approved the call."""

REVOKED: Final = "the remembered approval was taken back."


class Ledger:
    """The approvals of the calls, one row per gated call.

    Every change is a compare-and-set along `TRANSITIONS`, recorded in the audit trail in the same
    transaction (A10), and every time is the database's. All methods raise StoreError when the
    database fails. Nothing has changed then, unless the reply to a commit was lost: read before
    a change is repeated.

    Args:
        database: The database of the ledger.
        events: Where the changes of each user's approvals are published.
        changed: Called with the rows that a commit of this process has changed.
    """

    def __init__(
        self,
        database: Database,
        events: UserEvents | None = None,
        changed: Callable[[Iterable[ApprovalRow]], None] | None = None,
    ) -> None:
        self._database = database
        self._transitions = LedgerTransitions(database, events, changed)
        self.resolutions: Final = Resolutions(self._transitions)
        self._rows = database.prepare(ROWS)
        self.personal = PersonalDecisions(database, self._transitions)

    async def request(self, new: Sequence[NewApproval]) -> None:
        """Record approval requests; existing ones stay unchanged."""
        if len(new) == 1 and new[0].approvers is None:
            await self._transitions.execute("request", request_values(new[0]))
        elif new:
            work = partial(self._request, new=new)
            await self._transitions.transact(work, user=new[0].key.user)

    async def record_decisions(
        self,
        decisions: Sequence[Decision],
        *,
        by: str,
        via: str = "",
        revoked: Collection[str] = (),
    ) -> list[ApprovalRow]:
        """Record the decisions of one person, all or none.

        The first decision on a request wins, and an unknown request is recorded first. A decision
        after the deadline makes the row ``expired`` and is stored in ``answer``. If one of the
        decisions contradicts an earlier one, or its row is superseded, none is recorded (A4).
        ``via`` is the transport that delivered them.
        A request that other people decide is decided once its quorum is complete; a decision that
        is not about what would run, or of a person who has decided, is not recorded. ``by`` is
        entitled; ``revoked`` are people who were, and whose yes no longer counts.

        Returns:
            The rows after that, in the order of the decisions.

        Raises:
            StoreError: the decisions contradict each other, or a row has other arguments.
        """
        if not decisions:
            return []
        requests = requests_of(decisions)
        if len(decisions) == 1 and decisions[0].request.approvers is None:
            # Nearly always this is the first decision, and then one statement records it.
            first = decision_values(decisions[0], by, via)
            rows = await self._transitions.execute("answer", first)
            if rows:
                return rows
        values = [decision_values(decision, by, via) for decision in decisions]
        record = partial(
            self._record, decisions=decisions, requests=requests, values=values, revoked=revoked
        )
        recorded = await self._transitions.transact(record, user=decisions[0].request.key.user)
        return [recorded[decision.request.key] for decision in decisions]

    async def approve_by_grant(self, new: NewApproval) -> GrantLookup:
        """Approve a call that a grant of its chat covers (A8); also finds one approved before."""

        def approve(connection: Connection) -> GrantLookup:
            grants = find_grants(connection, self._database, new)
            grant = next((each for each in grants if each.covers(new)), None)
            if grant is not None and self._request(connection, [new]):
                values = {
                    **key_values(new.key),
                    "new_decided_by": grant.granted_by,
                    "new_grant_id": grant.id,
                    "new_via": BY_GRANT,
                }
                self._transitions.execute_in(connection, "grant", values)
            row = select_rows(connection, [new.key]).get(new.key)
            return GrantLookup(
                row if row is not None and row.is_automatic else None,
                grants[0].definition if grants else None,
            )

        return await self._transitions.transact(approve, user=new.key.user)

    async def refuse_granted(
        self, chat: ChatKey, grant_id: str, *, revoke: Callable[[Connection], bool]
    ) -> bool:
        """Revoke a grant and refuse the calls that it has approved and that have not begun.

        ``revoke`` deletes the grant in the transaction; it returns whether there was one.
        """
        values = {
            **key_values(chat),
            "its_grant_id": grant_id,
            "new_outcome": error_outcome(REVOKED),
        }

        def refuse(connection: Connection) -> bool:
            # The grant goes first: an approval by it holds a lock on it until the call is stored.
            if not revoke(connection):
                return False
            self._transitions.execute_in(connection, "refuse granted", values, reason=REVOKED)
            return True

        return await self._transitions.transact(refuse, user=chat.user)

    async def supersede(self, keys: Sequence[CallKey]) -> list[ApprovalRow]:
        """Close calls that are pending, or approved and not claimed (A5).

        Returns the rows after that, in the order of the keys; unknown keys are left out.
        """
        if not keys:
            return []

        def close(connection: Connection) -> dict[CallKey, ApprovalRow]:
            self._transitions.execute_in(connection, "supersede", {"its_keys": list(keys)})
            return select_rows(connection, keys)

        rows = await self._transitions.transact(close, user=keys[0].user)
        return [rows[key] for key in keys if key in rows]

    async def withdraw(self, keys: Sequence[CallKey]) -> None:
        """Close calls that are pending: the model has cancelled them."""
        if keys:
            values = {"its_keys": list(keys)}
            work = partial(self._transitions.execute_in, name="withdraw", values=values)
            await self._transitions.transact(work, user=keys[0].user)

    async def expire(self, chat: ChatKey) -> list[ApprovalRow]:
        """Close requests that are pending after their deadline, before the agent learns it (A5).

        A decision in time stays valid; a later one is not recorded any more. Returns the rows whose
        state changed, oldest request first.
        """
        values = key_values(chat)

        def close(connection: Connection) -> list[ApprovalRow]:
            connection.execute(CLOSE_EXPIRED, {**values, **self._database.clock_values()})
            return self._transitions.execute_in(connection, "expire", values)

        return await self._transitions.transact(close, user=chat.user)

    async def expire_due(self, app: str, *, limit: int) -> int:
        """Mark pending requests as expired after their deadline, in any chat, the earliest first.

        The agent does not know it yet: the first decision is still recorded, without effect.
        Several processes may do so at once. Returns how many were found, at most ``limit``.
        """
        values = {"its_app": app, "its_limit": limit, **self._database.clock_values()}
        due = await self._database.read(
            lambda connection: [
                ChatKey(app, row.user, row.chat) for row in connection.execute(DUE, values)
            ]
        )
        for chat in sorted(set(due)):
            await self._execute_in_transaction("expire due", key_values(chat))
        return len(due)

    async def claim(
        self,
        key: CallKey,
        *,
        owner: str,
        args_hash: str,
        grant: Grant | None = None,
        is_again: bool = False,
        basis: ClaimBasis = NO_BASIS,
    ) -> ApprovalRow | None:
        """Claim an approved call just before its effect: move it to ``executing``.

        A call whose tool has asked again is claimed too, as long as the next request is not
        recorded: a crash has lost it.

        ``is_again`` claims only a call with an ``unknown`` outcome, of a tool that may run twice
        (A9). Other arguments than the approved ones never win. ``grant`` is that of the call's
        decision; it exists from the moment at which the claim wins (A8). Of a call that other
        people decide no claim wins unless enough of those in ``basis`` have approved it, and of one
        with a preview none unless its preview there is the approved one.

        Returns:
            None to the winner, the unchanged row to everybody else.

        Raises:
            StoreError: also when the row does not exist.
        """
        name: TransitionName = "claim again" if is_again else "claim"
        values = {**key_values(key), "its_args_hash": args_hash, "new_owner": owner}
        values |= resolver_values(basis.resolver) | {"its_preview": basis.preview or ""}
        by, reason = basis.entitled, None if basis.resolver is None else basis.resolver.reason
        work: Callable[[Connection], list[ApprovalRow]] | None = None
        if by is not None:
            work = partial(
                self._claim_by_quorum, name=name, values=values, key=key, by=by, reason=reason
            )
        elif grant is not None:
            work = partial(self._claim_with_grant, name=name, values=values, key=key, grant=grant)
        if work is not None:
            claimed = await self._transitions.transact(work, user=key.user)
        else:
            claimed = await self._transitions.execute(name, values, reason=reason)
        if claimed:
            return None
        rows = await self._database.read(partial(select_rows, keys=[key]))
        if key not in rows:
            raise StoreError("a call without a request was claimed")
        if rows[key].state == "asked_again" and not is_again:
            work = partial(self._claim_asked_again, values=values, key=key, by=by)
            if await self._transitions.transact(work, user=key.user):
                return None
        return rows[key]

    async def ask_again(self, key: CallKey, *, owner: str) -> bool:
        """Release the claim of a call whose tool has asked again, so that it has had no effect.

        Only the owner of the claim may do so.

        Returns:
            False when the owner does not hold the claim any more.
        """
        values = {**key_values(key), "its_owner": owner}
        return bool(
            await self._transitions.execute(
                "ask again", values, shielded=True, retry_for=OUTCOME_RETRY_SECONDS
            )
        )

    async def store_outcome(
        self,
        key: CallKey,
        *,
        owner: str,
        state: Literal["executed", "failed"],
        outcome: JsonValue,
        actions: JsonValue = None,
    ) -> ApprovalRow | None:
        """Store the outcome of a claimed call, and its actions, also when the caller is cancelled.

        Only the owner of the claim may store it, except that anybody may report that an
        ``unknown`` call was executed. It is idempotent, and retried for `OUTCOME_RETRY_SECONDS`.

        Returns:
            The row, without its ``decisions``; None when it did not wait for an outcome.

        Raises:
            StoreError: also when the outcome is not JSON.
        """
        values = {**key_values(key), "its_owner": owner, **outcome_values(outcome, actions)}
        stored = await self._transitions.execute(
            state,
            values,
            reason=error_in(outcome) if state == "failed" else None,
            shielded=True,
            retry_for=OUTCOME_RETRY_SECONDS,
        )
        return stored[0] if stored else None

    async def refuse(self, key: CallKey, reason: str, *, has_drifted: bool = False) -> bool:
        """Close an approved call that may not run; its outcome holds the reason.

        ``has_drifted``: its preview is not the approved one any more.
        """
        outcome = error_outcome(reason, has_drifted=has_drifted)
        values = {**key_values(key), "new_outcome": outcome}
        # A transaction, unlike a single statement, is rolled back when the caller is cancelled.
        return bool(await self._execute_in_transaction("refuse", values, reason=reason))

    async def audit_refusal(
        self, key: CallKey, *, tool: str, args_hash: str | None, reason: str
    ) -> None:
        """Append to the audit trail that a policy forbids a call that has no approval request."""
        entry = {
            **key.chat_key._asdict(),
            "at": self._database.now(),
            "invocation": key.invocation,
            "call": key.call,
            "approval_id": "",
            "tool": tool,
            "action": "refused",
            "reason": reason,
            "args_hash": args_hash,
        }
        await self._database.write(
            lambda connection: connection.execute(insert(AUDIT).values(entry)).rowcount
        )

    async def mark_unknown(
        self, chat: ChatKey, *, owners_alive: Container[str]
    ) -> list[ApprovalRow]:
        """Move claimed calls whose owner has died to ``unknown``; returns the changed rows."""

        def move(connection: Connection) -> list[ApprovalRow]:
            owners = connection.scalars(CLAIMED_OWNERS, key_values(chat))
            dead = [owner for owner in owners if owner not in owners_alive]
            if not dead:
                return []
            values = {**key_values(chat), "its_owners": dead}
            return self._transitions.execute_in(connection, "unknown", values)

        return await self._transitions.transact(move, user=chat.user)

    async def rows(self, chat: ChatKey) -> list[ApprovalRow]:
        """Return all rows of a chat, oldest request first."""
        rows = [row_of(row) for row in await self._database.fetch(self._rows, key_values(chat))]
        if any(row.approvers is not None for row in rows):
            return await self._database.read(partial(with_decisions, rows=rows))
        return rows

    async def erase_details(self, chat: ChatKey) -> None:
        """Erase arguments, payloads, edits, hints and outcomes of a deleted chat.

        Who decided what and when stays, with the hashes of the arguments.
        """

        def erase(connection: Connection) -> None:
            for statement in (ERASE_DETAILS, ERASE_DECISIONS):
                connection.execute(statement, key_values(chat))

        await self._database.write(erase)

    async def count_pending(self, app: str, user: str) -> dict[str, int]:
        """Return the number of pending requests by chat id, without chats that have none."""
        values = {"its_app": app, "its_user": user, **self._database.clock_values()}

        def count(connection: Connection) -> dict[str, int]:
            return {row.chat: row.pending for row in connection.execute(PENDING_COUNTS, values)}

        return await self._database.read(count)

    def _request(self, connection: Connection, new: Sequence[NewApproval]) -> bool:
        """Record requests; returns whether one of them is new."""
        added = []
        # In the order of the keys, so that two transactions cannot deadlock.
        for request in sorted(new, key=lambda request: request.key):
            rows = self._transitions.execute_in(connection, "request", request_values(request))
            for row in rows:
                entitle(connection, request, row)
            added += rows
        return bool(added)

    def _record(
        self,
        connection: Connection,
        decisions: Sequence[Decision],
        requests: Mapping[CallKey, NewApproval],
        values: Sequence[Mapping[str, Any]],
        revoked: Collection[str],
    ) -> dict[CallKey, ApprovalRow]:
        """Record all decisions or none; returns the rows after that."""
        # The rows stay locked from here, so they cannot change between check and update.
        rows = select_rows(connection, requests, is_locked=True)
        if len(rows) < len(requests):
            self._request(connection, [requests[key] for key in requests if key not in rows])
            rows = select_rows(connection, requests, is_locked=True)
        if any(rows[key].args_hash != new.args_hash for key, new in requests.items()):
            raise StoreError("a decision was made on other arguments than were requested")
        by = str(values[0]["new_decided_by"])
        if any(has_lost(decision, rows[decision.request.key], by) for decision in decisions):
            return rows
        for decision, stated in zip(decisions, values, strict=True):
            row = rows[decision.request.key]
            new = {**stated, **proposed_values(decision, row), "its_quorum": 1}
            if row.approvers is not None:
                rows[row.key] = self.personal.record(
                    connection, decision, row, new, revoked=revoked
                )
                continue
            for changed in self._transitions.execute_in(connection, "answer", new):
                rows[changed.key] = changed
        return rows

    def _claim_with_grant(
        self,
        connection: Connection,
        name: TransitionName,
        values: Mapping[str, Any],
        key: CallKey,
        grant: Grant,
    ) -> list[ApprovalRow]:
        claimed = self._transitions.execute_in(connection, name, values)
        for row in claimed:
            add_grant(connection, self._database, key.chat_key, grant, via=row.via or "")
        return claimed

    def _claim_asked_again(
        self,
        connection: Connection,
        values: Mapping[str, Any],
        key: CallKey,
        by: Collection[str] | None,
    ) -> list[ApprovalRow]:
        following = key.with_request_number(key.request_number + 1)
        if select_rows(connection, [following]):
            return []
        name: TransitionName = "claim asked again"
        if by is not None:
            return self._claim_by_quorum(connection, name=name, values=values, key=key, by=by)
        return self._transitions.execute_in(connection, name, values)

    def _claim_by_quorum(
        self,
        connection: Connection,
        name: TransitionName,
        values: Mapping[str, Any],
        key: CallKey,
        by: Collection[str],
        reason: str | None = None,
    ) -> list[ApprovalRow]:
        """Claim a call if enough of these people have approved it."""
        row = select_rows(connection, [key], is_locked=True).get(key)
        if row is None or not self.personal.may_claim(row, by):
            return []
        values = {**values, "its_quorum": 1}
        return self._transitions.execute_in(connection, name, values, reason=reason)

    async def _execute_in_transaction(
        self, name: TransitionName, values: Mapping[str, Any], *, reason: str | None = None
    ) -> list[ApprovalRow]:
        work = partial(self._transitions.execute_in, name=name, values=values, reason=reason)
        return await self._transitions.transact(work, user=values["its_user"])
