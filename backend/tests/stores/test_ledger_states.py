"""Every transition between two states, tried against the database."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import pytest
from sqlalchemy import update

from sluicegate.core.approvals import TRANSITIONS, ApprovalRow, ApprovalState
from sluicegate.stores.sql.schema import APPROVALS
from tests.parts import long_table
from tests.stores.builders import CHAT, TTL, key, no, request, yes

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from sluicegate.stores.approvals.ledger import Ledger
    from sluicegate.stores.sql.database import Database
    from tests.stores.builders import Clock

STATES: tuple[ApprovalState, ...] = get_args(ApprovalState)


async def execute(ledger: Ledger, _clock: Clock) -> None:
    await ledger.claim(key(), owner="me", args_hash="hash")


async def execute_again(ledger: Ledger, _clock: Clock) -> None:
    await ledger.claim(key(), owner="me", args_hash="hash", is_again=True)


async def approve(ledger: Ledger, _clock: Clock) -> None:
    await ledger.record_decisions([yes()], by="ann")


async def deny(ledger: Ledger, _clock: Clock) -> None:
    await ledger.record_decisions([no()], by="ann")


async def answer_late(ledger: Ledger, clock: Clock) -> None:
    clock.ahead = TTL + 1
    await ledger.record_decisions([yes()], by="ann")


async def expire(ledger: Ledger, clock: Clock) -> None:
    clock.ahead = TTL + 1
    await ledger.expire(CHAT)


async def supersede(ledger: Ledger, _clock: Clock) -> None:
    await ledger.supersede([key()])


async def refuse(ledger: Ledger, _clock: Clock) -> None:
    await ledger.refuse(key(), "policy")


async def abandon(ledger: Ledger, _clock: Clock) -> None:
    await ledger.mark_unknown(CHAT, owners_alive=())


async def succeed(ledger: Ledger, _clock: Clock) -> None:
    await ledger.store_outcome(key(), owner="me", state="executed", outcome="done")


async def fail(ledger: Ledger, _clock: Clock) -> None:
    await ledger.store_outcome(key(), owner="me", state="failed", outcome="failed")


async def ask_again(ledger: Ledger, _clock: Clock) -> None:
    await ledger.ask_again(key(), owner="me")


MOVES: dict[Callable[[Ledger, Clock], Awaitable[None]], ApprovalState] = {
    approve: "approved",
    deny: "denied",
    answer_late: "expired",
    expire: "expired",
    supersede: "superseded",
    refuse: "refused",
    execute: "executing",
    execute_again: "executing",
    abandon: "unknown",
    succeed: "executed",
    fail: "failed",
    ask_again: "asked_again",
}

NEVER_MADE = {
    (answer_late, "approved"),
    (expire, "approved"),
    (execute, "unknown"),
    (execute_again, "approved"),
    (execute_again, "asked_again"),
}
"""Allowed by the table, but not by this: an answer that came in time holds, and only who says so
runs a call again."""

ANSWERS: dict[ApprovalState, bool | None] = {"requested": None, "denied": False, "expired": None}


async def a_row_in(state: ApprovalState, ledger: Ledger, database: Database) -> ApprovalRow:
    await ledger.request([request()])
    (row,) = await ledger.rows(CHAT)
    is_claimed = state in ("executing", "executed", "failed", "unknown", "asked_again")
    values = {
        "state": state,
        "answer": ANSWERS.get(state, True),
        "owner": "me" if is_claimed else None,
        "finished_at": None if TRANSITIONS[state] else row.requested_at,
    }
    await database.write(lambda connection: connection.execute(update(APPROVALS).values(values)))
    (row,) = await ledger.rows(CHAT)
    return row


@long_table
@pytest.mark.parametrize("before", STATES)
@pytest.mark.parametrize("move", MOVES, ids=lambda move: str(move.__name__))
async def test_a_transition_happens_exactly_where_the_table_allows_it(
    before: ApprovalState,
    move: Callable[[Ledger, Clock], Awaitable[None]],
    ledger: Ledger,
    database: Database,
    clock: Clock,
) -> None:
    row = await a_row_in(before, ledger, database)
    target = MOVES[move]
    await move(ledger, clock)
    (after,) = await ledger.rows(CHAT)
    if target in TRANSITIONS[before] and (move, before) not in NEVER_MADE:
        assert after.state == target
        assert (after.finished_at is not None) == (not TRANSITIONS[target])
    else:
        assert after == row


def test_every_state_but_the_first_has_a_transition_to_it() -> None:
    assert set(MOVES.values()) == set(STATES) - {"requested"}
