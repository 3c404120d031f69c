"""The approval inbox of a user on every database."""

from __future__ import annotations

import base64
import contextlib
import json
import sqlite3
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import insert, select
from sqlalchemy.dialects import sqlite

from sluicegate.core.approvers import ApproverRule
from sluicegate.core.chat_and_turn_keys import ChatKey
from sluicegate.errors import Unknown
from sluicegate.stores.approvals.inbox import ApprovalFilter, ApprovalInbox, visible_to
from sluicegate.stores.approvals.ledger import Ledger
from sluicegate.stores.sql.schema import APPROVALS, ENTITLEMENTS
from tests.stores.builders import CHAT, TTL, key, open_database, request, yes

if TYPE_CHECKING:
    from pathlib import Path

    from sqlalchemy import Connection

    from sluicegate.stores.sql.database import Database
    from tests.stores.builders import Clock

OTHER = ChatKey("app", "ann", "chat-2")


async def listed(inbox: ApprovalInbox, limit: int = 100, after: str | None = None) -> list[str]:
    page = await inbox.page("app", "ann", limit=limit, after=after)
    return [f"{row.key.chat}/{row.key.call}" for row in page.rows]


async def test_pending_requests_of_all_chats_are_listed_newest_first(
    ledger: Ledger, inbox: ApprovalInbox, clock: Clock
) -> None:
    await ledger.request([request("a")])
    clock.ahead = 1.0
    await ledger.request([request("b", OTHER)])
    clock.ahead = 2.0
    await ledger.request([request("c")])
    assert await listed(inbox) == ["chat-1/c", "chat-2/b", "chat-1/a"]


async def test_only_pending_requests_of_the_user_are_listed(
    ledger: Ledger, inbox: ApprovalInbox, clock: Clock
) -> None:
    await ledger.request([request("late", ttl=5.0), request("closed"), request("open")])
    await ledger.record_decisions([yes("given")], by="ann")
    await ledger.supersede([key("closed")])
    for stranger in (ChatKey("app", "bob", "chat-1"), ChatKey("other", "ann", "chat-1")):
        await ledger.request([request("foreign", stranger)])
    clock.ahead = 6.0
    assert await listed(inbox) == ["chat-1/open"]


async def test_a_request_has_its_arguments_and_hint(ledger: Ledger, inbox: ApprovalInbox) -> None:
    new = replace(request(), arguments={"z": 1, "a": ["é", None]}, hint="Really?")
    await ledger.request([new])
    [row] = (await inbox.page("app", "ann", limit=1, after=None)).rows
    assert (row.arguments, row.hint, row.tool) == ({"z": 1, "a": ["é", None]}, "Really?", "pay")
    assert isinstance(row.arguments, dict)
    assert list(row.arguments) == ["z", "a"]


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 8])
async def test_pages_hold_each_request_once(
    ledger: Ledger, inbox: ApprovalInbox, clock: Clock, limit: int
) -> None:
    # Requests of one moment are ordered by their keys.
    for moment, calls in enumerate((["a", "b", "c"], ["d"], ["e", "f", "g"])):
        clock.ahead = float(moment)
        for chat in (CHAT, OTHER)[: 1 + moment % 2]:
            await ledger.request([request(call, chat) for call in calls])
    whole = await listed(inbox)
    found: list[str] = []
    after: str | None = None
    while True:
        page = await inbox.page("app", "ann", limit=limit, after=after)
        found += [f"{row.key.chat}/{row.key.call}" for row in page.rows]
        after = page.next
        if after is None:
            break
        assert len(page.rows) == limit
    assert found == whole
    assert len(set(whole)) == 8


async def test_a_cursor_stays_valid_when_requests_are_added_and_decided(
    ledger: Ledger, inbox: ApprovalInbox, clock: Clock
) -> None:
    for moment in range(4):
        clock.ahead = float(moment)
        await ledger.request([request(f"n{moment}")])
    page = await inbox.page("app", "ann", limit=2, after=None)
    clock.ahead = 10.0
    await ledger.request([request("new")])
    await ledger.record_decisions([yes("n2"), yes("n1")], by="ann")
    assert await listed(inbox, after=page.next) == ["chat-1/n0"]


def made_up(*values: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(values).encode()).decode()


@pytest.mark.parametrize(
    "after",
    [
        "",
        "nonsense",
        "é",
        "[" * 9_999,
        made_up(),
        made_up(1.5, "a", "b"),
        made_up(1.5, "a", "b", "c", "d"),
        made_up("1.5", "a", "b", "c"),
        made_up(1e999, "a", "b", "c"),
        made_up(1.5, "a", 2, "c"),
        made_up(1.5, "a", "b\0", "c"),
        made_up(1.5, "a", "b\ud800", "c"),
    ],
)
async def test_an_invalid_cursor_of_approvals_is_refused(inbox: ApprovalInbox, after: str) -> None:
    with pytest.raises(Unknown, match="load the list again"):
        await inbox.page("app", "ann", limit=1, after=after)


async def test_an_approval_is_found_in_any_state_but_only_by_its_user(
    ledger: Ledger, inbox: ApprovalInbox
) -> None:
    await ledger.record_decisions([yes()], by="ann")
    [row] = await ledger.rows(CHAT)
    assert await inbox.find("app", "ann", "ask-call-1") == row
    assert await inbox.find("app", "bob", "ask-call-1") is None
    assert await inbox.find("other", "ann", "ask-call-1") is None
    assert await inbox.find("app", "ann", "ask-call-2") is None


async def test_the_newer_of_two_approvals_with_one_id_is_found(
    ledger: Ledger, inbox: ApprovalInbox, clock: Clock
) -> None:
    await ledger.request([request()])
    clock.ahead = TTL
    await ledger.request([request(chat=OTHER)])
    found = await inbox.find("app", "ann", "ask-call-1")
    assert found is not None
    assert found.key.chat_key == OTHER


async def test_the_decisions_of_a_deleted_chat_stay_without_their_details(ledger: Ledger) -> None:
    new = replace(request(), arguments={"n": 1}, hint="Really?")
    decision = replace(yes(reason="go on"), request=new, edits={"n": 2})
    await ledger.record_decisions([decision], by="ann")
    await ledger.claim(key(), owner="me", args_hash="hash")
    done: dict[str, Any] = {"outcome": {"paid": 2}, "actions": {"state_delta": {"paid": 2}}}
    await ledger.store_outcome(key(), owner="me", state="executed", **done)
    assert (await ledger.rows(CHAT))[0].actions == {"state_delta": {"paid": 2}}
    await ledger.erase_details(CHAT)
    [row] = await ledger.rows(CHAT)
    assert (row.arguments, row.hint, row.edits, row.outcome) == (None, None, None, None)
    assert row.actions is None
    assert (row.state, row.decided_by, row.args_hash) == ("executed", "ann", "hash")


async def test_requests_are_selected_by_tool_agent_and_age(
    ledger: Ledger, inbox: ApprovalInbox, clock: Clock
) -> None:
    old = [
        replace(request("a"), agent="shop/till"),
        replace(request("b"), tool="refund", agent="shop"),
    ]
    await ledger.request(old)
    clock.ahead = 100.0
    await ledger.request([replace(request("c", OTHER), agent="shop")])

    async def found(**selected: Any) -> list[str]:
        page = await inbox.page(
            "app", "ann", limit=9, after=None, selection=ApprovalFilter(**selected)
        )
        return sorted(row.key.call for row in page.rows)

    assert await found() == ["a", "b", "c"]
    assert await found(tool="pay") == ["a", "c"]
    assert await found(agent="shop") == ["b", "c"]
    assert await found(agent="shop/till", tool="pay") == ["a"]
    assert await found(agent="till") == []
    assert await found(older_than=50.0) == ["a", "b"]
    assert await found(older_than=600.0) == []
    assert await found(tool="pay' OR 1=1 --") == []


async def test_calls_with_an_unknown_outcome_are_listed_by_themselves(
    ledger: Ledger, inbox: ApprovalInbox, clock: Clock
) -> None:
    await ledger.request([request("open")])
    for call in ("lost", "done"):
        await ledger.record_decisions([yes(call)], by="ann")
        await ledger.claim(key(call), owner="gone", args_hash="hash")
    assert await inbox.chats_with_claims("app", "ann") == [CHAT]
    assert await inbox.chats_with_claims("app", "bob") == []
    await ledger.store_outcome(key("done"), owner="gone", state="executed", outcome=1)
    await ledger.mark_unknown(CHAT, owners_alive=[])
    # The deadline of a request says nothing of a call that was approved.
    clock.ahead = 2 * TTL
    page = await inbox.page(
        "app", "ann", limit=9, after=None, selection=ApprovalFilter(state="unknown")
    )
    assert [row.key.call for row in page.rows] == ["lost"]
    assert (
        await inbox.page(
            "app", "bob", limit=9, after=None, selection=ApprovalFilter(state="unknown")
        )
    ).rows == []


async def test_the_first_page_of_ten_thousand_waiting_approvals_comes_at_once(
    database: Database, ledger: Ledger, inbox: ApprovalInbox
) -> None:
    users, each = 1_000, 10
    await ledger.request([request("a", ChatKey("app", "user-0", "chat-0"))])
    [row] = await database.read(lambda c: c.execute(select(APPROVALS)).all())
    rows = [
        {
            **row._mapping,
            "user": f"user-{user}",
            "chat": f"chat-{number}",
            "call": f"call-{user}-{number}",
            "approval_id": f"ask-{user}-{number}",
            "requested_at": row.requested_at - number,
        }
        for user in range(users)
        for number in range(1, each + 1)
    ]
    await database.write(lambda connection: connection.execute(insert(APPROVALS), rows))
    seconds = []
    for user in range(0, users, 50):
        start = time.perf_counter()
        page = await inbox.page("app", f"user-{user}", limit=30, after=None)
        seconds.append(time.perf_counter() - start)
        assert len(page.rows) == each + (user == 0)
    # A busy machine delays some of them.
    assert sorted(seconds)[len(seconds) // 2] < 0.1


async def test_closed_approvals_of_a_role_do_not_slow_its_inbox_down(tmp_path: Path) -> None:
    file = tmp_path / "chats.db"
    database = await open_database(f"sqlite+aiosqlite:///{file}")
    ledger = Ledger(database)
    rule = ApproverRule(users=(), roles=("finance",))
    await ledger.request([replace(request("open"), approvers=rule)])
    statement = select(APPROVALS.c.call).where(
        visible_to("app", "boss", ["finance"]), APPROVALS.c.state == "requested"
    )
    text = str(statement.compile(dialect=sqlite.dialect(), compile_kwargs={"literal_binds": True}))

    def work() -> int:
        """The steps of SQLite's virtual machine until the page is read."""
        steps = 0

        def step() -> None:
            nonlocal steps
            steps += 1

        with contextlib.closing(sqlite3.connect(file)) as connection:
            connection.set_progress_handler(step, 1)
            assert connection.execute(text).fetchall() == [("open",)]
        return steps

    before = work()
    closed = [replace(request(f"closed-{n}"), approvers=rule) for n in range(100)]
    await ledger.request(closed)
    await ledger.supersede([new.key for new in closed])
    assert work() < 2 * before
    await database.close()


async def test_a_page_of_a_role_costs_the_same_however_much_waits(
    sqlite_url: str, clock: Clock
) -> None:
    database = await open_database(sqlite_url, clock_offset=clock)
    inbox, rule = ApprovalInbox(database), ApproverRule(users=(), roles=("finance",))

    async def cost() -> float:
        """The least CPU time of a page of several."""
        taken = []
        for _ in range(5):
            start = time.process_time()
            page = await inbox.page("app", "boss", limit=10, after=None, roles=["finance"])
            taken.append(time.process_time() - start)
            assert len(page.rows) == 10
        return min(taken)

    first = [replace(request(f"first-{n}"), approvers=rule) for n in range(20)]
    await Ledger(database).request(first)
    few = await cost()

    def repeat(connection: Connection) -> None:
        for table in (APPROVALS, ENTITLEMENTS):
            row = connection.execute(select(table).limit(1)).one()._asdict()
            again = ({"call": f"call-{n}", "approval_id": f"ask-{n}"} for n in range(10_000))
            connection.execute(insert(table), [{**row, **each} for each in again])

    await database.write(repeat)
    assert await cost() < 3 * few
    await database.close()
