"""The outbox, on every database: events are written with the change, and leave it when accepted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import func, select

from sluicegate.errors import StoreError
from sluicegate.stores.approvals.ledger import Ledger
from sluicegate.stores.approvals.outbox import DEAD_KEPT, NOT_CONFIGURED, Outbox, QueuedEvent
from sluicegate.stores.approvals.sweep_queries import SweepQueries
from sluicegate.stores.sql.database import Database
from sluicegate.stores.sql.schema import OUTBOX
from tests.stores.builders import CHAT, LIMIT, Clock, approve, claim, key, no, request, yes

DAY = 86_400.0


@pytest.fixture
async def outbox(database: Database) -> Outbox:
    outbox = Outbox(database, CHAT.app)
    await outbox.set_endpoints(["ops"])
    return outbox


async def stored(database: Database) -> list[tuple[str, str, str]]:
    """The endpoint, call and state of each row, in the order of their ids."""
    statement = select(OUTBOX.c.endpoint, OUTBOX.c.call, OUTBOX.c.state).order_by(OUTBOX.c.id)
    return [
        (row.endpoint, row.call, row.state)
        for row in await database.read(lambda connection: list(connection.execute(statement)))
    ]


async def states(database: Database) -> list[str]:
    return [state for _, _, state in await stored(database)]


async def due(outbox: Outbox, endpoint: str = "ops") -> list[QueuedEvent]:
    return await outbox.due(endpoint, limit=100)


TRIGGERS = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type = 'trigger'",
    "postgresql": "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal",
}


async def triggers(database: Database) -> set[str]:
    """The triggers of the outbox."""
    statement = TRIGGERS[database.sessions.dialect.name]
    found = await database.read(
        lambda connection: set(connection.exec_driver_sql(statement).scalars())
    )
    return {name for name in found if "outbox" in name}


async def test_approvals_run_no_trigger_while_no_app_has_an_endpoint(
    database: Database, ledger: Ledger
) -> None:
    one, other = Outbox(database, CHAT.app), Outbox(database, "another app")
    assert await triggers(database) == set()
    await one.set_endpoints(["ops"])
    await other.set_endpoints(["ops"])
    names = ("requested", "changed", "reminded")
    all_of_them = {f"sluicegate_outbox_{name}" for name in names}
    assert await triggers(database) == all_of_them
    await one.set_endpoints([])
    assert await triggers(database) == all_of_them
    await other.set_endpoints([])
    assert await triggers(database) == set()
    await ledger.request([request()])
    await one.set_endpoints(["ops"])
    await approve(ledger)
    # What happened before is no event.
    assert await states(database) == ["approved"]


async def test_without_an_endpoint_nothing_is_written(database: Database, ledger: Ledger) -> None:
    await Outbox(database, "another app").set_endpoints(["ops"])
    await claim(ledger)
    await ledger.store_outcome(key(), owner="me", state="executed", outcome={"ok": True})
    assert await stored(database) == []


async def test_each_change_of_an_approval_is_an_event(
    database: Database, ledger: Ledger, outbox: Outbox
) -> None:
    await claim(ledger)
    await ledger.mark_unknown(CHAT, owners_alive=set())
    await ledger.store_outcome(key(), owner="me", state="executed", outcome={"ok": True})
    # The claim itself is none: what it leads to is one.
    assert await states(database) == ["requested", "approved", "unknown", "executed"]


async def test_the_delay_of_the_oldest_event_and_the_dead_letters_are_counted(
    database: Database, ledger: Ledger, outbox: Outbox, clock: Clock
) -> None:
    waits = SweepQueries(database, CHAT.app)
    assert await waits.count_undelivered() == (0.0, 0)
    await ledger.request([request("a"), request("b")])
    clock.ahead += 500
    age, dead = await waits.count_undelivered()
    assert 500 <= age < 500 + LIMIT
    assert dead == 0
    # Those of another app are not counted.
    assert await SweepQueries(database, "another app").count_undelivered() == (0.0, 0)
    await outbox.set_endpoints([])
    assert await waits.count_undelivered() == (0.0, 2)


ENDS: dict[str, tuple[Any, list[str]]] = {
    "denied": (lambda ledger: ledger.record_decisions([no()], by="ann"), ["denied"]),
    "superseded": (lambda ledger: ledger.supersede([key()]), ["superseded"]),
    "withdrawn": (lambda ledger: ledger.withdraw([key()]), ["superseded"]),
}


@pytest.mark.parametrize("end", ENDS)
async def test_an_approval_that_ends_undone_is_an_event(
    database: Database, ledger: Ledger, outbox: Outbox, end: str
) -> None:
    act, expected = ENDS[end]
    await ledger.request([request()])
    await act(ledger)
    await act(ledger)
    assert await states(database) == ["requested", *expected]


async def test_a_failed_call_and_a_refused_one_are_events(
    database: Database, ledger: Ledger, outbox: Outbox
) -> None:
    await claim(ledger, "call-1")
    await ledger.store_outcome(key("call-1"), owner="me", state="failed", outcome={"error": "no"})
    await approve(ledger, "call-2")
    await ledger.refuse(key("call-2"), "the policy forbids it")
    assert await stored(database) == [
        ("ops", "call-1", "requested"),
        ("ops", "call-1", "approved"),
        ("ops", "call-1", "failed"),
        ("ops", "call-2", "requested"),
        ("ops", "call-2", "approved"),
        ("ops", "call-2", "refused"),
    ]


async def test_a_question_within_a_call_is_an_event_of_its_own(
    database: Database, ledger: Ledger, outbox: Outbox
) -> None:
    await claim(ledger)
    assert await ledger.ask_again(key(), owner="me")
    await ledger.request([request("call-1?2")])
    assert await states(database) == ["requested", "approved", "requested"]


async def test_an_expiry_is_one_event_whoever_notices_it_and_whatever_follows(
    database: Database, ledger: Ledger, outbox: Outbox, clock: Clock
) -> None:
    await ledger.request([request("call-1"), request("call-2")])
    clock.ahead += DAY
    assert await ledger.expire_due(CHAT.app, limit=10) == 2
    await ledger.expire_due(CHAT.app, limit=10)
    # A late decision is recorded without effect.
    [row] = await ledger.record_decisions([yes("call-1")], by="ann")
    assert (row.state, row.answer) == ("expired", True)
    await ledger.expire(CHAT)
    assert sorted(await stored(database)) == [
        ("ops", "call-1", "expired"),
        ("ops", "call-1", "requested"),
        ("ops", "call-2", "expired"),
        ("ops", "call-2", "requested"),
    ]


async def test_an_event_is_written_for_each_endpoint_and_not_for_another_app(
    database: Database, ledger: Ledger, outbox: Outbox
) -> None:
    await Outbox(database, "another app").set_endpoints(["theirs"])
    await outbox.set_endpoints(["ops", "audit"])
    await ledger.request([request()])
    assert sorted(await stored(database)) == [
        ("audit", "call-1", "requested"),
        ("ops", "call-1", "requested"),
    ]
    assert [event.state for event in await due(outbox)] == ["requested"]
    assert [event.state for event in await due(outbox, "audit")] == ["requested"]
    assert await Outbox(database, "another app").due("ops", limit=9) == []


async def test_an_event_has_its_approval_and_the_time_of_the_change(
    ledger: Ledger, outbox: Outbox
) -> None:
    await approve(ledger)
    [asked] = await due(outbox)
    assert (asked.state, asked.endpoint, asked.attempts, asked.title) == (
        "requested",
        "ops",
        0,
        None,
    )
    assert asked.at == asked.approval.requested_at
    assert (asked.approval.key, asked.approval.decided_by) == (key(), "ann")
    assert 0 <= asked.age < 60
    await outbox.delivered(asked)
    [decided] = await due(outbox)
    assert decided.at == decided.approval.decided_at


async def test_of_each_approval_only_the_first_event_is_due(ledger: Ledger, outbox: Outbox) -> None:
    await approve(ledger, "call-1")
    await approve(ledger, "call-2")
    delivered = []
    while events := await due(outbox):
        delivered.append([(event.approval.key.call, event.state) for event in events])
        for event in events:
            await outbox.delivered(event)
    assert delivered == [
        [("call-1", "requested"), ("call-2", "requested")],
        [("call-1", "approved"), ("call-2", "approved")],
    ]


async def test_a_failed_attempt_delays_its_approval_alone(
    ledger: Ledger, outbox: Outbox, clock: Clock
) -> None:
    await approve(ledger, "call-1")
    await approve(ledger, "call-2")
    [first, second] = await due(outbox)
    await outbox.postpone(first, pause=60, error="The endpoint answered 503.")
    assert [event.id for event in await due(outbox)] == [second.id]
    clock.ahead += 61
    found = await due(outbox)
    assert [(event.id, event.attempts) for event in found] == [(second.id, 0), (first.id, 1)]
    await outbox.delivered(found[1])
    # What follows had to wait as long as the first, and no longer.
    after = [event.state for event in await due(outbox) if event.approval.key.call == "call-1"]
    assert after == ["approved"]


async def test_what_has_failed_goes_behind_what_has_not(
    ledger: Ledger, outbox: Outbox, clock: Clock
) -> None:
    await ledger.request([request("call-1")])
    [old] = await due(outbox)
    await outbox.postpone(old, pause=60, error="no")
    clock.ahead += 61
    await ledger.request([request("call-2")])
    [first] = await outbox.due("ops", limit=1)
    assert first.approval.key.call == "call-2"


async def test_a_dead_letter_is_not_due_and_holds_nothing_up(
    database: Database, ledger: Ledger, outbox: Outbox
) -> None:
    await approve(ledger)
    [asked] = await due(outbox)
    await outbox.give_up(asked, error="The endpoint answered 410.")
    [decided] = await due(outbox)
    assert decided.state == "approved"
    await outbox.postpone(decided, pause=0, error="no")
    assert [event.state for event in await due(outbox)] == ["approved"]
    assert await states(database) == ["requested", "approved"]


async def test_dead_letters_are_removed_after_their_time(
    database: Database, ledger: Ledger, outbox: Outbox, clock: Clock
) -> None:
    await approve(ledger)
    [asked] = await due(outbox)
    await outbox.give_up(asked, error="no")
    clock.ahead += DEAD_KEPT - 60
    assert await outbox.remove_old_dead_letters() == 0
    clock.ahead += 120
    assert await outbox.remove_old_dead_letters() == 1
    assert await states(database) == ["approved"]


async def test_events_of_an_endpoint_that_is_removed_become_dead_letters(
    database: Database, ledger: Ledger, outbox: Outbox
) -> None:
    await ledger.request([request("call-1")])
    await outbox.set_endpoints(["new"])
    await ledger.request([request("call-2")])
    rows = select(OUTBOX.c.endpoint, OUTBOX.c.next_at, OUTBOX.c.error).order_by(OUTBOX.c.id)
    found = await database.read(lambda connection: list(connection.execute(rows)))
    assert [tuple(row) for row in found] == [("ops", None, NOT_CONFIGURED), ("new", 0, None)]
    await outbox.set_endpoints([])
    await ledger.request([request("call-3")])
    assert await states(database) == ["requested", "requested"]


async def test_a_change_that_is_rolled_back_is_no_event(
    database: Database, ledger: Ledger, outbox: Outbox
) -> None:
    broken = replace(request("call-2"), arguments=float("nan"))
    with pytest.raises(StoreError):
        await ledger.request([request("call-1"), broken])
    assert await stored(database) == []


async def test_an_id_is_never_used_twice(
    database: Database, ledger: Ledger, outbox: Outbox
) -> None:
    await ledger.request([request("call-1")])
    [event] = await due(outbox)
    await outbox.delivered(event)
    await ledger.request([request("call-2")])
    newest = await database.read(
        lambda connection: connection.scalar(select(func.max(OUTBOX.c.id)))
    )
    assert newest is not None
    assert newest > event.id


async def test_a_reminder_is_one_event_of_an_approval_that_waits(
    database: Database, ledger: Ledger, outbox: Outbox, clock: Clock
) -> None:
    due = SweepQueries(database, CHAT.app)
    await ledger.request(
        [replace(request(call), remind_after=60.0) for call in ("call-1", "call-2", "call-3")]
    )
    await ledger.supersede([key("call-2")])
    assert await due.remind() == 0
    clock.ahead += 61
    await ledger.request([request("call-4")])
    assert await due.remind() == 2
    assert await due.remind() == 0
    assert sorted(call for _, call, state in await stored(database) if state == "reminder") == [
        "call-1",
        "call-3",
    ]
