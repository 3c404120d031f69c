"""The decisions of several people on one approval, counted in the ledger's transactions (A1)."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import and_, bindparam, insert, select, tuple_, update

from sluicegate.core.approval_previews import is_failed
from sluicegate.core.approvers import (
    PersonalDecision,
    approving,
    decision_of,
)
from sluicegate.stores.approvals.ledger_rows import key_values, row_of, to_json
from sluicegate.stores.approvals.ledger_statement_values import decision_values, preview_values
from sluicegate.stores.approvals.ledger_statements import ROW, ROW_LOCKED
from sluicegate.stores.sql.schema import APPROVALS, AUDIT, DECISIONS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from sqlalchemy import Connection

    from sluicegate.core.approvals import ApprovalRow, Decision
    from sluicegate.core.call_keys import CallKey
    from sluicegate.stores.approvals.execute_ledger_transitions import LedgerTransitions
    from sluicegate.stores.sql.database import Database

_C = DECISIONS.c
KEY: Final = ("app", "user", "chat", "invocation", "call")
_KEY_COLUMNS: Final = tuple(_C[name] for name in KEY)
_IS_APPROVAL: Final = and_(*(column == bindparam(f"its_{column.name}") for column in _KEY_COLUMNS))


_EDITED: Final = ("edits", "edits_hash", "edited_payload", "preview", "preview_hash")
"""The columns that an edit sets; the preview only where there is one."""


def with_decisions(connection: Connection, rows: Sequence[ApprovalRow]) -> list[ApprovalRow]:
    """Add the decisions of people to the rows that have a rule; others need no query."""
    keys = [row.key for row in rows if row.approvers is not None]
    if not keys:
        return list(rows)
    statement = (
        select(DECISIONS).where(tuple_(*_KEY_COLUMNS).in_(keys)).order_by(*_KEY_COLUMNS, _C.number)
    )
    found: dict[tuple[str, ...], list[PersonalDecision]] = defaultdict(list)
    for each in connection.execute(statement):
        decision = PersonalDecision(
            number=each.number,
            by=each.by,
            approved=bool(each.approved),
            at=each.at,
            digest=each.digest,
            reason=each.reason,
            via=each.via,
            is_edit=each.edits is not None or each.edited_payload is not None,
            voided_by=each.voided_by,
        )
        found[(each.app, each.user, each.chat, each.invocation, each.call)].append(decision)
    return [replace(row, decisions=tuple(found[tuple(row.key)])) for row in rows]


def select_rows(
    connection: Connection, keys: Iterable[CallKey], *, is_locked: bool = False
) -> dict[CallKey, ApprovalRow]:
    """Return the rows of calls with their decisions; ``is_locked`` holds them until the commit."""
    statement = ROW_LOCKED if is_locked else ROW
    rows = (connection.execute(statement, key_values(key)).one_or_none() for key in sorted(keys))
    found = [row_of(each._asdict()) for each in rows if each is not None]
    return {row.key: row for row in with_decisions(connection, found)}


class PersonalDecisions:
    """Adds the decision of one person to a row, which the transaction holds locked."""

    def __init__(self, database: Database, transitions: LedgerTransitions) -> None:
        self._database = database
        self._transitions = transitions

    def record(
        self,
        connection: Connection,
        decision: Decision,
        row: ApprovalRow,
        values: Mapping[str, Any],
        *,
        revoked: Collection[str],
    ) -> ApprovalRow:
        """Record a decision if it counts, and decide the row if the quorum is complete.

        ``values`` are those of the row's transition; ``revoked`` are people who have decided and
        are not entitled any more. Returns the row after that; unchanged if the decision is not
        about what would run, or if the person has decided.
        """
        by = str(values["new_decided_by"])
        if has_lost(decision, row, by) or decision_of(row.decisions, by) is not None:
            return row
        if row.state == "expired" or self._is_late(connection, row):
            return self._decide(connection, row, values)
        if decision.approved:
            return self._approve(connection, decision, row, values, revoked)
        row = self._add(connection, row, decision, values)
        rule = row.approvers
        refusing = {each.by for each in row.decisions if not each.approved}
        if decision.response is not None or rule is None or rule.veto:
            return self._decide(connection, row, values)
        if not rule.can_reach_quorum(row.key.user, refusing):
            return self._decide(connection, row, values)
        self._transitions.note_in(connection, row)
        return row

    async def propose_edit(
        self, decision: Decision, preview: dict[str, Any], *, by: str, via: str
    ) -> bool:
        """Store what a yes with edits would run and its new preview, which has no approval yet.

        The yeses before are void. Returns whether it was stored; False if the call does not wait
        any more, or is another one than the person saw.
        """
        key = decision.request.key
        values = decision_values(replace(decision, payload=None), by, via) | preview_values(preview)

        def propose(connection: Connection) -> bool:
            row = select_rows(connection, [key], is_locked=True).get(key)
            if row is None or row.state != "requested" or self._is_late(connection, row):
                return False
            if not row.is_seen(decision.digest):
                return False
            edited = self._edit(connection, row, values)
            self._audit(connection, row, "edited", by, values, digest=edited.digest)
            self._transitions.note_in(connection, edited)
            return True

        return await self._transitions.transact(propose, user=key.user)

    def may_claim(self, row: ApprovalRow, entitled: Collection[str]) -> bool:
        """Whether enough people who are entitled now have approved what would run."""
        rule = row.approvers
        return rule is None or len(set(row.approved_by) & set(entitled)) >= rule.quorum

    def _approve(
        self,
        connection: Connection,
        decision: Decision,
        row: ApprovalRow,
        values: Mapping[str, Any],
        revoked: Collection[str],
    ) -> ApprovalRow:
        if decision.is_edit:
            row = self._edit(connection, row, values)
        row = self._add(connection, row, decision, values)
        counted = set(approving(row.decisions, row.digest)) - set(revoked)
        if row.approvers is None or len(counted) >= row.approvers.quorum:
            return self._decide(connection, row, values)
        self._transitions.note_in(connection, row)
        return row

    def _decide(
        self, connection: Connection, row: ApprovalRow, values: Mapping[str, Any]
    ) -> ApprovalRow:
        """Decide the row by this decision; what was edited before stays."""
        edited = {
            "new_edits": None if row.edits is None else to_json(row.edits),
            "new_edited_payload": None
            if row.edited_payload is None
            else to_json(row.edited_payload),
            "new_edits_hash": row.edits_hash,
        }
        decided = self._transitions.execute_in(
            connection, "answer", {**values, **edited, "its_quorum": 1}
        )
        return replace(decided[0], decisions=row.decisions) if decided else row

    def _edit(
        self, connection: Connection, row: ApprovalRow, values: Mapping[str, Any]
    ) -> ApprovalRow:
        """Replace what would run, and void the yeses before."""
        number = len(row.decisions) + 1
        voided = []
        for each in row.decisions:
            if each.approved and each.voided_by is None:
                self._audit(connection, row, "voided", each.by, values, digest=each.digest)
                voided.append(replace(each, voided_by=number))
            else:
                voided.append(each)
        connection.execute(
            update(DECISIONS)
            .where(_IS_APPROVAL, _C.approved.is_(True), _C.voided_by.is_(None))
            .values(voided_by=number),
            key_values(row.key),
        )
        edits = {name: values[f"new_{name}"] for name in _EDITED if f"new_{name}" in values}
        of_row = (APPROVALS.c[name] == getattr(row.key, name) for name in KEY)
        connection.execute(update(APPROVALS).where(*of_row).values(edits))
        [stored] = _rows(connection, [row.key])
        return replace(stored, decisions=tuple(voided))

    def _add(
        self,
        connection: Connection,
        row: ApprovalRow,
        decision: Decision,
        values: Mapping[str, Any],
    ) -> ApprovalRow:
        at = float(connection.scalar(select(self._database.now())) or 0.0)
        added = PersonalDecision(
            number=len(row.decisions) + 1,
            by=str(values["new_decided_by"]),
            approved=decision.approved,
            at=at,
            digest=row.digest,
            reason=decision.reason,
            via=values["new_via"],
            is_edit=decision.is_edit,
        )
        stored = {name: getattr(row.key, name) for name in KEY} | {
            "number": added.number,
            "approval_id": row.approval_id,
            "by": added.by,
            "approved": added.approved,
            "reason": added.reason,
            "via": added.via,
            "at": at,
            "digest": added.digest,
            "edits": values["new_edits"],
            "edited_payload": values["new_edited_payload"],
        }
        connection.execute(insert(DECISIONS).values(stored))
        action = "yes" if decision.approved else "no"
        self._audit(connection, row, action, added.by, values, digest=added.digest)
        return replace(row, decisions=(*row.decisions, added))

    def _audit(
        self,
        connection: Connection,
        row: ApprovalRow,
        action: str,
        by: str,
        values: Mapping[str, Any],
        *,
        digest: str,
    ) -> None:
        entry = {name: getattr(row.key, name) for name in KEY} | {
            "at": self._database.now(),
            "approval_id": row.approval_id,
            "tool": row.tool,
            "action": action,
            "by": by,
            "via": values["new_via"],
            "reason": None if action == "voided" else values["new_reason"],
            "args_hash": digest,
        }
        connection.execute(insert(AUDIT).values(entry))

    def _is_late(self, connection: Connection, row: ApprovalRow) -> bool:
        return bool(connection.scalar(select(self._database.now() >= row.deadline)))


def has_lost(decision: Decision, row: ApprovalRow, by: str) -> bool:
    """Whether a decision cannot be recorded and repeats none, as the row is now (A4)."""
    if row.approvers is None:
        is_contradicted = row.answer is not None and not decision.equals(row)
        return is_contradicted or row.state == "superseded" or has_not_seen(decision, row)
    own = decision_of(row.decisions, by)
    if own is not None:
        return own.approved is not decision.approved
    is_open = row.state == "requested" or row.is_expiry_unreported
    is_blind = decision.approved and not row.is_seen(decision.digest)
    return not is_open or is_blind or has_not_seen(decision, row)


def has_not_seen(decision: Decision, row: ApprovalRow) -> bool:
    """Whether a yes is for something else than the preview shows, or the preview has failed."""
    if row.preview is None or row.state != "requested" or not decision.approved:
        return False
    return is_failed(row.preview) or not row.is_seen(decision.digest) or decision.edits is not None


def _rows(connection: Connection, keys: Iterable[CallKey]) -> list[ApprovalRow]:
    statement = select(APPROVALS).where(
        tuple_(*(APPROVALS.c[name] for name in KEY)).in_(list(keys))
    )
    return [row_of(row._asdict()) for row in connection.execute(statement)]
