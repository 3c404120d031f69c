"""What people say of requests, as the ledger stores it (A4)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from sqlalchemy import and_, func, select, tuple_, update

from sluicegate.core.approvals import ApprovalRow, sources
from sluicegate.core.json_values import hash_arguments
from sluicegate.errors import StoreError
from sluicegate.stores.approvals.grants import add_grant, find_grant
from sluicegate.stores.approvals.statements import (
    ANSWER,
    CLAIM,
    CLAIM_AGAIN,
    EXECUTED,
    FAILED,
    KEY,
    NEW,
    ROW,
    ROW_LOCKED,
    ROWS,
    LedgerTransitions,
    is_row,
    key_values,
    of_chat,
    row_of,
    to_json,
)
from sluicegate.stores.sql.schema import APPROVALS

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence

    from pydantic import JsonValue
    from sqlalchemy import ColumnElement, Connection, Update

    from sluicegate.core.approvals import ApprovalState, Decision, NewApproval
    from sluicegate.core.keys import CallKey, ChatKey
    from sluicegate.stores.sql.database import Database


def requested(new: NewApproval) -> dict[str, Any]:
    """What binds the values of a new request."""
    return {
        **key_values(new.key),
        "its_args_hash": new.args_hash,
        "new_approval_id": new.approval_id,
        "new_tool": new.tool,
        "new_ttl": new.ttl,
        "new_arguments": to_json(new.arguments),
        "new_hint": new.hint,
    }


def answered(decision: Decision, by: str, via: str) -> dict[str, Any]:
    """What binds the values of an answer, ``by`` a person ``via`` a transport."""
    request, edits = decision.request, decision.edits
    return {
        **key_values(request.key),
        "its_args_hash": request.args_hash,
        "new_state": "approved" if decision.approved else "denied",
        "new_answer": decision.approved,
        "new_reason": decision.reason,
        "new_decided_by": by,
        "new_via": via or None,
        "new_edits": None if edits is None else to_json(edits),
        "new_edits_hash": None if edits is None else hash_arguments(edits),
    }


def without_contradictions(decisions: Sequence[Decision]) -> dict[CallKey, NewApproval]:
    """Return the requests that are decided, each once."""
    answers: dict[CallKey, Decision] = {}
    for decision in decisions:
        first = answers.setdefault(decision.request.key, decision)
        if first.approved != decision.approved:
            raise StoreError("one request was answered with both yes and no")
    return {key: decision.request for key, decision in answers.items()}


def has_lost(decision: Decision, row: ApprovalRow) -> bool:
    """Whether somebody said something else before, or took the question back (A4)."""
    is_contradicted = row.answer is not None and not decision.equals(row)
    return is_contradicted or row.state == "superseded"


_C = APPROVALS.c

PATIENCE = 30.0
"""Seconds for which an outcome is kept while the database does not take it: nobody else has it."""

REMEMBERED = "remembered"
"""What stands in place of a transport where nobody was asked."""

TAKEN_BACK = "the remembered approval was taken back."


class Ledger:
    """The ledger (the port is `Ledger`); its methods say here only what the port leaves open."""

    def __init__(self, database: Database) -> None:
        """Take the database whose tables are there."""
        self._database = database
        self._rows = database.prepare(ROWS)
        insert = database.insert(APPROVALS).values(NEW)
        self._moves = LedgerTransitions(
            database,
            {
                "requested": insert.on_conflict_do_nothing().returning(APPROVALS),
                "answered": ANSWER,
                "executing": CLAIM,
                "executing again": CLAIM_AGAIN,
                "executed": EXECUTED,
                "failed": FAILED,
            },
        )

    async def request(self, new: Sequence[NewApproval]) -> None:
        """Remember requests; those that are known already stay as they are."""
        if len(new) == 1:
            await self._moves.make_alone("requested", requested(new[0]))
        elif new:
            await self._database.write(partial(self._remember, new=new))

    async def record_decisions(
        self, decisions: Sequence[Decision], *, by: str, via: str = ""
    ) -> list[ApprovalRow]:
        """Record the answers of one person, all or none."""
        if not decisions:
            return []
        requests = without_contradictions(decisions)
        if len(decisions) == 1 and not decisions[0].is_remembered:
            # Nearly always nothing was said before, and then one statement does it all.
            rows = await self._moves.make_alone("answered", answered(decisions[0], by, via))
            if rows:
                return rows
        record = partial(self._record, decisions=decisions, requests=requests, by=by, via=via)
        found = await self._database.write(record)
        return [found[decision.request.key] for decision in decisions]

    async def approve_by_grant(self, new: NewApproval) -> ApprovalRow | None:
        """Approve a call of a tool that is remembered in its chat (A8)."""

        def approve(connection: Connection) -> ApprovalRow | None:
            grant = find_grant(connection, new.key.chat_key, new.tool)
            if grant is not None and self._remember(connection, [new]):
                now = self._database.now()
                answer = self._move("approved", is_row(new.key)).values(
                    answer=True,
                    decided_by=grant.granted_by,
                    decided_at=now,
                    grant_id=grant.approval_id,
                    via=REMEMBERED,
                )
                self._change(connection, answer)
            row = _select(connection, [new.key]).get(new.key)
            return row if row is not None and row.is_automatic else None

        return await self._database.write(approve)

    def refuse_granted(self, connection: Connection, chat: ChatKey, tool: str) -> None:
        """Close what was approved by a grant that is taken back and has not begun."""
        is_its = and_(of_chat(chat), _C.tool == tool, _C.grant_id.is_not(None))
        ended = self._end("refused", is_its).values(outcome=_refusal(TAKEN_BACK))
        self._change(connection, ended, reason=TAKEN_BACK)

    async def supersede(self, keys: Sequence[CallKey]) -> list[ApprovalRow]:
        """Close what waits or is approved but not claimed."""
        if not keys:
            return []
        statement = self._end("superseded", tuple_(*KEY).in_(keys))

        def end(connection: Connection) -> dict[CallKey, ApprovalRow]:
            self._change(connection, statement)
            return _select(connection, keys)

        rows = await self._database.write(end)
        return [rows[key] for key in keys if key in rows]

    async def expire(self, chat: ChatKey) -> list[ApprovalRow]:
        """Close what waited past its deadline."""
        is_late = and_(of_chat(chat), _C.answer.is_(None), _C.deadline <= self._database.now())
        return await self._database.write(partial(self._change, by=self._end("expired", is_late)))

    async def claim(
        self, key: CallKey, *, owner: str, args_hash: str, is_again: bool = False
    ) -> ApprovalRow | None:
        """Move an approved call to ``executing``."""
        name = "executing again" if is_again else "executing"
        values = {**key_values(key), "its_args_hash": args_hash, "new_owner": owner}
        if await self._moves.make_alone(name, values):
            return None
        rows = await self._database.read(partial(_select, keys=[key]))
        if key not in rows:
            raise StoreError("a call was claimed that nobody requested")
        return rows[key]

    async def store_outcome(
        self, key: CallKey, *, owner: str, state: Literal["executed", "failed"], outcome: JsonValue
    ) -> bool:
        """Store the outcome of a claimed call, also when the caller is cancelled meanwhile.

        It bears to be stored twice: the second time changes nothing and says so.
        """
        values = {**key_values(key), "its_owner": owner, "new_outcome": to_json(outcome)}
        reason = _why(outcome) if state == "failed" else None
        stored = self._moves.make_alone(
            state, values, reason=reason, is_lasting=True, patience=PATIENCE
        )
        return bool(await stored)

    async def refuse(self, key: CallKey, reason: str) -> bool:
        """Close an approved call that policy forbids."""
        statement = self._end("refused", is_row(key)).values(outcome=_refusal(reason))
        work = partial(self._change, by=statement, reason=reason)
        return bool(await self._database.write(work))

    async def mark_unknown(
        self, chat: ChatKey, *, owners_alive: Container[str]
    ) -> list[ApprovalRow]:
        """Move claimed calls whose owner is gone to ``unknown``."""
        is_claimed = and_(of_chat(chat), _C.state.in_(sources("unknown")))

        def move(connection: Connection) -> list[ApprovalRow]:
            owners = connection.scalars(select(_C.owner).where(is_claimed).distinct())
            gone = [owner for owner in owners if owner not in owners_alive]
            statement = self._move("unknown", and_(is_claimed, _C.owner.in_(gone)))
            return self._change(connection, statement) if gone else []

        return await self._database.write(move)

    async def rows(self, chat: ChatKey) -> list[ApprovalRow]:
        """Return every row of a chat, oldest request first."""
        return [row_of(row) for row in await self._database.fetch(self._rows, key_values(chat))]

    async def erase_details(self, chat: ChatKey) -> None:
        """Drop what the calls of a deleted chat were about."""
        emptied = dict.fromkeys((_C.arguments, _C.edits, _C.hint, _C.outcome))
        statement = update(APPROVALS).where(of_chat(chat)).values(emptied)
        await self._database.write(lambda connection: connection.execute(statement).rowcount)

    async def count_pending(self, app: str, user: str) -> dict[str, int]:
        """Return how many requests wait, by chat id."""
        statement = (
            select(_C.chat, func.count().label("waiting"))
            .where(_C.app == app, _C.user == user)
            .where(_C.state == "requested", _C.deadline > self._database.now())
            .group_by(_C.chat)
        )

        def count(connection: Connection) -> dict[str, int]:
            return {row.chat: row.waiting for row in connection.execute(statement)}

        return await self._database.read(count)

    def _remember(self, connection: Connection, new: Sequence[NewApproval]) -> bool:
        """Add requests that are not known; whether there was one."""
        added = []
        # In the order of the keys, so that two transactions never wait for each other.
        for request in sorted(new, key=lambda request: request.key):
            added += self._moves.make(connection, "requested", requested(request))
        return bool(added)

    def _record(
        self,
        connection: Connection,
        decisions: Sequence[Decision],
        requests: Mapping[CallKey, NewApproval],
        by: str,
        via: str,
    ) -> dict[CallKey, ApprovalRow]:
        """Record all answers or none; returns the rows as they are then."""
        # The rows stay locked from here, so what is judged is what is changed.
        rows = _select(connection, requests, is_locked=True)
        if len(rows) < len(requests):
            self._remember(connection, [requests[key] for key in requests if key not in rows])
            rows = _select(connection, requests, is_locked=True)
        if any(rows[key].args_hash != new.args_hash for key, new in requests.items()):
            raise StoreError("a decision was made on other arguments than were requested")
        if any(has_lost(decision, rows[decision.request.key]) for decision in decisions):
            return rows
        for decision in decisions:
            for row in self._moves.make(connection, "answered", answered(decision, by, via)):
                rows[row.key] = row
                if decision.is_remembered and row.state == "approved":
                    add_grant(connection, self._database, row)
        return rows

    def _change(
        self, connection: Connection, by: Update, *, reason: str | None = None
    ) -> list[ApprovalRow]:
        """Make a move and note it in the trail (A10); returns the rows that changed."""
        rows = self._moves.make(connection, by.returning(APPROVALS), {}, reason=reason)
        return sorted(rows, key=lambda row: (row.requested_at, row.key))

    def _end(self, target: ApprovalState, where: ColumnElement[bool]) -> Update:
        return self._move(target, where).values(finished_at=self._database.now())

    def _move(self, target: ApprovalState, where: ColumnElement[bool]) -> Update:
        """Return the compare-and-set to ``target``: from the states that may be before it."""
        statement = update(APPROVALS).where(where, _C.state.in_(sources(target)))
        return statement.values(state=target)


def _select(
    connection: Connection, keys: Iterable[CallKey], *, is_locked: bool = False
) -> dict[CallKey, ApprovalRow]:
    statement = ROW_LOCKED if is_locked else ROW
    found = (connection.execute(statement, key_values(key)).one_or_none() for key in sorted(keys))
    return {row.key: row for row in (row_of(each._asdict()) for each in found if each is not None)}


def _why(outcome: JsonValue) -> str | None:
    return str(outcome.get("error") or "") or None if isinstance(outcome, dict) else None


def _refusal(reason: str) -> str:
    """Beside the person's own words, which stay theirs."""
    return to_json({"error": reason})
