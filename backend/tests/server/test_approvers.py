"""Approvals that other people decide: one story for each rule, over HTTP with the real engine."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import sqlite3
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.requests import HTTPConnection

from sluicegate import User, create_app
from sluicegate.server.cli import main
from sluicegate.tools import Approvers, GatedCall, Role, gated
from sluicegate.wire.reducer import reduce_chunks
from tests.engine.stage import Counted, calls, says, scripted
from tests.patience import LEASE
from tests.server.event_stream import EventStream, events_of
from tests.server.exchange import PATIENCE, client, over_socket, serving_alone, started
from tests.server.page import CHUNK, Page, patient_engines
from tests.transports.socket_client import opened, send_frame

PAY = [calls(("pay", {"n": 7})), says("done")]
USERS = {"ada": "", "bob": "finance", "cat": "finance,legal", "dan": "", "eve": "auditor,finance"}


@dataclass
class Office:
    """A server with users that have tokens; the roles are a column of the token file."""

    app: Any
    tokens: Path
    database: str

    def write(self, users: dict[str, str]) -> None:
        """Write the token file: the roles of each user."""
        lines = [
            f"sha256:{hashlib.sha256(user.encode()).hexdigest()} {user} {roles}"
            for user, roles in users.items()
        ]
        self.tokens.write_text("\n".join(lines))

    def of(self, user: str) -> httpx.AsyncClient:
        """An HTTP client of a user."""
        return client(self.app, headers={"authorization": f"Bearer {user}"})

    async def audit(self, capsys: pytest.CaptureFixture[str]) -> list[str]:
        """The audit trail as ``action by``."""
        capsys.readouterr()
        assert await asyncio.to_thread(main, ["audit", "--sessions", self.database]) == 0
        lines = [line.split() for line in capsys.readouterr().out.splitlines()]
        assert (
            await asyncio.to_thread(main, ["audit", "--sessions", self.database, "--verify"]) == 0
        )
        capsys.readouterr()
        return [f"{line[1]} {line[3].removeprefix('by=')}" for line in lines]


@contextlib.asynccontextmanager
async def office(
    folder: Path, tools: list[Any], script: Any = PAY, **more: Any
) -> AsyncIterator[Office]:
    url = f"sqlite+aiosqlite:///{folder}/chats.db"
    tokens = folder / "tokens"
    made = Office(None, tokens, url)
    made.write(USERS)
    with patient_engines():
        made.app = create_app(
            scripted(script, tools),
            sessions=url,
            artifacts=f"file:{folder}/files",
            **{"auth": f"bearer:{tokens}", "lease_ttl": LEASE, **more},
        )
    async with started(made.app):
        yield made


async def asked(office: Office, user: str = "ada") -> tuple[Page, str]:
    """The chat of a user that waits for one approval, and its path."""
    page = Page(office.of(user))
    await page.say("pay")
    [approval] = page.asks()
    return page, f"/api/approvals/{approval}"


async def ended(office: Office, path: str, state: str = "executed") -> dict[str, Any]:
    """The approval once it has a state."""
    async with asyncio.timeout(PATIENCE):
        while (card := (await office.of("ada").get(path)).json())["state"] != state:
            pass
    found: dict[str, Any] = card
    return found


async def final_part(page: Page) -> Any:
    """The part of the payment in the stored message, which has its outcome at the turn's end."""
    async with asyncio.timeout(PATIENCE):
        while (await page.http.get(f"/api/chats/{page.chat_id}")).json()["status"] != "ready":
            pass
    return next(p for p in (await page.history())["parts"] if p["type"] == "tool-pay")


async def decide(office: Office, user: str, path: str, **body: Any) -> httpx.Response:
    return await office.of(user).post(path, json={"approved": True, **body})


async def test_the_quorum_of_two_people_runs_the_call_once(
    tmp_path: Path, counted: Counted, capsys: pytest.CaptureFixture[str]
) -> None:
    tool = gated(counted.tool(), approvers=Role("finance"), quorum=2)
    async with office(tmp_path, [tool]) as people:
        _, path = await asked(people)
        card = (await people.of("bob").get(path)).json()
        assert card["approvers"] == {
            "users": [],
            "roles": ["finance"],
            "quorum": 2,
            "requesterMayApprove": True,
            "veto": True,
        }
        assert (card["mayDecide"], card["missing"], card["decisions"]) == (True, 2, [])
        assert (await people.of("ada").get(path)).json()["mayDecide"] is False
        [listed] = (await people.of("bob").get("/api/approvals")).json()["approvals"]
        assert listed == card
        first = await decide(people, "bob", path, reason="fine", digest=card["digest"])
        assert (first.status_code, first.json()["state"]) == (202, "requested")
        assert first.json()["missing"] == 1
        [decision] = first.json()["decisions"]
        assert (decision["by"], decision["approved"], decision["reason"]) == ("bob", True, "fine")
        again = await decide(people, "bob", path)
        assert (again.status_code, again.json()["missing"]) == (202, 1)
        contrary = await decide(people, "bob", path, approved=False)
        assert (contrary.status_code, contrary.headers["x-error-code"]) == (409, "already_decided")
        assert counted.runs == []
        last = await decide(people, "cat", path)
        assert last.status_code == 202
        card = await ended(people, path)
        assert counted.runs == [7]
        assert [each["by"] for each in card["decisions"]] == ["bob", "cat"]
        late = await decide(people, "eve", path)
        assert late.status_code == 403
        assert await people.audit(capsys) == [
            "requested -",
            "yes bob",
            "yes cat",
            "approved cat",
            "executing cat",
            "executed cat",
        ]


@pytest.mark.parametrize(
    ("user", "status", "code"),
    [("ada", 403, "not_entitled"), ("dan", 404, "unknown"), ("eve", 403, "not_entitled")],
)
@pytest.mark.parametrize("approved", [True, False])
async def test_only_entitled_people_decide(
    tmp_path: Path, counted: Counted, user: str, status: int, code: str, approved: bool
) -> None:
    tool = gated(counted.tool(), approvers=[Role("finance"), "ada"], requester_may_approve=False)
    async with office(tmp_path, [tool]) as people:
        _, path = await asked(people)
        seen = await people.of(user).get(path)
        assert seen.status_code == (404 if status == 404 else 200)
        refused = await decide(people, user, path, approved=approved)
        assert (refused.status_code, refused.headers["x-error-code"]) == (status, code)
        assert (await people.of("ada").get(path)).json()["decisions"] == []
        assert (await decide(people, "bob", path)).status_code == 202
        await ended(people, path)
        assert counted.runs == [7]


async def test_an_auditor_reads_the_history_of_all_users_and_decides_nothing(
    tmp_path: Path, counted: Counted
) -> None:
    async with office(tmp_path, [gated(counted.tool(), approvers=Role("finance"))]) as people:
        _, path = await asked(people)
        await asked(people, "dan")
        eve = people.of("eve")
        for body, of in (
            ({"approved": True}, ""),
            ({"approved": False}, ""),
            ({"outcome": "executed", "reason": "seen"}, "/resolution"),
        ):
            refused = await eve.post(f"{path}{of}", json=body)
            assert (refused.status_code, refused.headers["x-error-code"]) == (403, "not_entitled")
        assert (await decide(people, "bob", path, approved=False, reason="too much")).is_success

        async def requesters(user: str, file: str = "", **query: str) -> set[str]:
            response = await people.of(user).get(f"/api/history{file}", params=query)
            assert response.is_success, response.text
            return {each["requester"] for each in response.json()["entries"]}

        assert await requesters("eve") == {"ada", "dan"}
        assert await requesters("eve", "/export.json") == {"ada", "dan"}
        csv = (await eve.get("/api/history/export.csv")).text
        assert "dan" in csv
        assert "too much" in csv
        # Among all users, one of them can be searched for.
        assert await requesters("eve", q="DAN") == {"dan"}
        assert (await eve.get("/api/history/verification")).json()["state"] == "intact"
        for user, own in (("ada", {"ada"}), ("dan", {"dan"}), ("cat", set())):
            assert await requesters(user) == own
            assert await requesters(user, "/export.json") == own
        # The role counts as long as the user has it.
        people.write({**USERS, "eve": "finance"})
        assert await requesters("eve") == set()


async def test_the_history_of_a_person_has_the_decisions_on_calls_of_others(
    tmp_path: Path, counted: Counted
) -> None:
    async with office(tmp_path, [gated(counted.tool(), approvers=Role("finance"))]) as people:
        _, denied = await asked(people)
        _, other = await asked(people, "dan")
        assert (await decide(people, "bob", denied, approved=False, reason="no")).is_success
        assert (await decide(people, "cat", other)).status_code == 202

        async def history(user: str, **query: str) -> list[tuple[str, str, str | None]]:
            entries = (await people.of(user).get("/api/history", params=query)).json()["entries"]
            return [(each["action"], each["requester"], each.get("reason")) for each in entries]

        assert await history("bob") == [("denied", "ada", "no"), ("no", "ada", "no")]
        assert await history("bob", q="no", action="no") == [("no", "ada", "no")]
        assert await history("bob", q="ADA") == await history("bob")
        assert await history("bob", q="dan") == []
        # Neither the request nor what others did, and nothing once somebody else has decided.
        assert [action for action, *_ in await history("ada")] == ["denied", "no", "requested"]
        exported = (await people.of("bob").get("/api/history/export.json")).json()["entries"]
        assert [each["requester"] for each in exported] == ["ada", "ada"]


async def test_the_requester_counts_where_the_rule_names_them(
    tmp_path: Path, counted: Counted
) -> None:
    tool = gated(counted.tool(), approvers=["ada", "bob"], quorum=2)
    async with office(tmp_path, [tool]) as people:
        page, path = await asked(people)
        read = await page.answer()
        assert [chunk["type"] for chunk in read] == ["start", "error"]
        assert read[-1]["errorText"] == (
            "Your answer is noted; pay still needs 1 more yes, of ada or bob."
        )
        # The stock rule sends the same answer again.
        assert [chunk["type"] for chunk in await page.post()] == ["start", "error"]
        assert (await people.of("ada").get(path)).json()["missing"] == 1
        assert (await decide(people, "bob", path)).status_code == 202
        await ended(people, path)
        assert counted.runs == [7]
        part = await final_part(page)
        assert part["state"] == "output-available"


async def test_a_requester_who_is_not_entitled_changes_nothing_from_the_page(
    tmp_path: Path, counted: Counted
) -> None:
    async with office(tmp_path, [gated(counted.tool(), approvers="bob")]) as people:
        page, path = await asked(people)
        [part] = page.pending()
        part["state"], part["approval"]["approved"] = "approval-responded", True
        body = {"id": page.chat_id, "messages": page.messages}
        refused = await people.of("ada").post("/api/chat", json=body)
        assert (refused.status_code, refused.headers["x-error-code"]) == (403, "not_entitled")
        assert refused.text == "Only bob may decide this; wait for the answer."
        card = (await people.of("ada").get(path)).json()
        assert (card["state"], card["decisions"]) == ("requested", [])


@pytest.mark.parametrize("veto", [True, False])
async def test_one_no_ends_it_unless_there_is_no_veto(
    tmp_path: Path, counted: Counted, veto: bool
) -> None:
    tool = gated(counted.tool(), approvers=["bob", "cat", "dan"], quorum=2, veto=veto)
    async with office(tmp_path, [tool]) as people:
        _, path = await asked(people)
        refused = await decide(people, "bob", path, approved=False, reason="too much")
        assert refused.json()["state"] == ("denied" if veto else "requested")
        if veto:
            assert (await decide(people, "cat", path)).status_code == 409
        else:
            assert (await decide(people, "cat", path)).status_code == 202
            assert (await decide(people, "dan", path)).status_code == 202
            await ended(people, path)
        assert counted.runs == ([] if veto else [7])


async def test_noes_without_a_veto_end_it_once_the_quorum_cannot_be_reached(
    tmp_path: Path, counted: Counted
) -> None:
    tool = gated(counted.tool(), approvers=["bob", "cat"], quorum=2, veto=False)
    async with office(tmp_path, [tool]) as people:
        _, path = await asked(people)
        refused = await decide(people, "bob", path, approved=False)
        assert refused.json()["state"] == "denied"


async def test_an_edit_voids_the_yes_before_it_and_a_yes_names_what_it_saw(
    tmp_path: Path, counted: Counted, capsys: pytest.CaptureFixture[str]
) -> None:
    tool = gated(counted.tool(), approvers=Role("finance"), quorum=2)
    async with office(tmp_path, [tool]) as people:
        _, path = await asked(people)
        before = (await decide(people, "bob", path)).json()
        edited = await decide(people, "cat", path, edits={"n": 5}, digest=before["digest"])
        card = edited.json()
        assert (edited.status_code, card["missing"], card["edits"]) == (202, 1, {"n": 5})
        assert card["digest"] != before["digest"]
        assert [(d["by"], d.get("voided", False)) for d in card["decisions"]] == [
            ("bob", True),
            ("cat", False),
        ]
        for stated in ({}, {"digest": before["digest"]}):
            refused = await decide(people, "bob", path, **stated)
            assert (refused.status_code, refused.headers["x-error-code"]) == (409, "changed")
        assert counted.runs == []
        assert (await decide(people, "bob", path, digest=card["digest"])).status_code == 202
        await ended(people, path)
        assert counted.runs == [5]
        assert await people.audit(capsys) == [
            "requested -",
            "yes bob",
            "voided bob",
            "yes cat",
            "yes bob",
            "approved bob",
            "executing bob",
            "executed bob",
        ]


async def test_a_role_that_was_revoked_after_a_yes_does_not_count(
    tmp_path: Path, counted: Counted
) -> None:
    tool = gated(counted.tool(), approvers=Role("finance"), quorum=2)
    async with office(tmp_path, [tool]) as people:
        _, path = await asked(people)
        assert (await decide(people, "bob", path)).status_code == 202
        people.write({**USERS, "bob": "sales", "dan": "finance"})
        card = (await decide(people, "cat", path)).json()
        assert (card["state"], card["missing"]) == ("requested", 1)
        assert (await people.of("bob").get(path)).json()["mayDecide"] is False
        assert (await decide(people, "dan", path)).status_code == 202
        await ended(people, path)
        assert counted.runs == [7]


async def test_a_role_that_is_revoked_before_the_claim_refuses_the_call(
    tmp_path: Path, counted: Counted
) -> None:
    async def policy(call: GatedCall, user: str) -> bool | str:
        # The last code of the author before the claim.
        if call.approval is not None:
            people.write({**USERS, "bob": ""})
        return True

    tool = gated(counted.tool(), approvers=Role("finance"), quorum=2)
    async with office(tmp_path, [tool], policy=policy) as people:
        page, path = await asked(people)
        assert (await decide(people, "bob", path)).status_code == 202
        assert (await decide(people, "cat", path)).status_code == 202
        await ended(people, path, "refused")
        assert counted.runs == []
        part = await final_part(page)
        assert part["errorText"] == (
            "Not run: it needs 2 people, and of those who approved only 1 may still do so."
        )


async def test_a_function_decides_by_the_call_who_approves(
    tmp_path: Path, counted: Counted
) -> None:
    async def approvers(call: GatedCall) -> Approvers | None:
        if call.arguments["n"] < 10:
            return None
        return Approvers(call.user, Role("finance"), quorum=2)

    script = [calls(("pay", {"n": 7})), calls(("pay", {"n": 1000})), says("done")]
    async with office(tmp_path, [gated(counted.tool(), approvers=approvers)], script) as people:
        page, path = await asked(people)
        assert "approvers" not in (await people.of("ada").get(path)).json()
        assert (await people.of("bob").get(path)).status_code == 404
        await page.answer()
        assert counted.runs == [7]
        [approval] = page.asks()
        await page.answer()
        assert counted.runs == [7]
        assert (await decide(people, "bob", f"/api/approvals/{approval}")).status_code == 202
        await ended(people, f"/api/approvals/{approval}")
        assert counted.runs == [7, 1000]


@pytest.mark.parametrize("failing", ["raises", "reaches nobody", "returns nonsense"])
async def test_a_call_that_nobody_could_approve_is_refused_without_asking(
    tmp_path: Path, counted: Counted, failing: str
) -> None:
    def approvers(call: GatedCall) -> Any:
        if failing == "raises":
            raise OSError("the directory does not answer")
        return 5 if failing == "returns nonsense" else Approvers(call.user, quorum=2)

    async with office(tmp_path, [gated(counted.tool(), approvers=approvers)]) as people:
        page = Page(people.of("ada"))
        await page.say("pay")
        assert page.asks() == []
        part = next(p for p in page.messages[-1]["parts"] if p["type"] == "tool-pay")
        sentence = (
            "Not run: it needs the yes of 2 people, and fewer may approve it."
            if failing == "reaches nobody"
            else "Not run: who may approve it could not be determined (error "
        )
        assert part["errorText"].startswith(sentence)
        assert counted.runs == []


async def test_the_wire_and_the_rows_are_as_before_without_approvers(
    tmp_path: Path, counted: Counted
) -> None:
    async with office(tmp_path, [gated(counted.tool())]) as people:
        page, path = await asked(people)
        card = (await people.of("ada").get(path)).json()
        new = {"approvers", "digest", "decisions", "missing", "mayDecide"}
        assert not (new - {"decisions"}) & card.keys()
        assert card["decisions"] == []
        assert (await people.of("bob").get(path)).status_code == 404
        read = await page.answer()
        [finish] = [chunk for chunk in read if chunk["type"] == "finish"]
        [trace] = finish["messageMetadata"]["approvals"].values()
        assert not new & trace.keys()
    with contextlib.closing(sqlite3.connect(people.database.partition("///")[2])) as database:
        for table in ("decisions", "entitlements", "user_roles"):
            count = database.execute(f"SELECT count(*) FROM sluicegate_{table}").fetchone()
            assert count == (0,), table


async def status_of(people: Office, page: Page) -> str:
    chat = (await people.of("ada").get(f"/api/chats/{page.chat_id}")).json()
    status: str = chat["status"]
    return status


@pytest.mark.parametrize("approvers", [None, Role("finance")])
async def test_a_person_answers_in_place_of_the_tool(
    tmp_path: Path, counted: Counted, approvers: Role | None
) -> None:
    schema = {"type": "object", "properties": {"price": {"type": "number"}}, "required": ["price"]}
    tool = gated(counted.tool(), respond=schema, approvers=approvers)
    person = "ada" if approvers is None else "bob"
    async with office(tmp_path, [tool]) as people:
        page, path = await asked(people)
        [part] = page.pending()
        assert part["approval"]["descriptor"]["responseSchema"] == schema
        assert (await people.of(person).get(path)).json()["responseSchema"] == schema
        answer = {"approved": False, "response": {"price": "much"}}
        refused = await people.of(person).post(path, json=answer)
        assert (refused.status_code, refused.headers["x-error-code"]) == (400, "malformed")
        assert refused.text == (
            "The answer in place of pay does not fit: price: 'much' is not of type 'number'."
        )
        answer["response"] = {"price": 12.5}
        for _ in range(2):
            given = await people.of(person).post(path, json=answer)
            assert (given.status_code, given.json()["response"]) == (202, {"price": 12.5})
        await ended(people, path, "denied")
        async with asyncio.timeout(PATIENCE):
            # The turn that the answer started announces its end to its readers alone.
            while await status_of(people, page) != "ready":  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        shown = next(p for p in (await page.history())["parts"] if p["type"] == "tool-pay")
        assert shown["state"] == "output-denied"
        assert counted.runs == []
    read = events_with(people.database, "answered_by_person")
    assert '"answered_by_person": {"price": 12.5}' in read


def events_with(database: str, text: str) -> str:
    """The stored event that holds a text, which the model reads."""
    with contextlib.closing(sqlite3.connect(database.partition("///")[2])) as stored:
        [(found,)] = stored.execute(
            "SELECT event_data FROM events WHERE event_data LIKE ?", (f"%{text}%",)
        )
    return str(found)


async def test_an_answer_in_place_of_a_tool_that_takes_none_is_refused(
    tmp_path: Path, counted: Counted
) -> None:
    async with office(tmp_path, [gated(counted.tool())]) as people:
        _, path = await asked(people)
        answer = {"approved": False, "response": {"price": 1}}
        refused = await people.of("ada").post(path, json=answer)
        assert refused.text == "pay accepts no answer in its place; approve or deny the call."


async def test_the_chat_of_the_requester_goes_on_with_the_last_yes(
    tmp_path: Path, counted: Counted
) -> None:
    tool = gated(counted.tool(), approvers=Role("finance"), quorum=2)
    async with office(tmp_path, [tool]) as people, serving_alone(people.app) as address:
        ada = {"authorization": "Bearer ada"}
        async with over_socket(address, headers=ada) as http, events_of(http) as events:
            page = Page(http)
            await page.say("pay")
            [approval] = page.asks()
            await events.until(type="chat", status="waiting")
            path = f"/api/approvals/{approval}"
            assert (await decide(people, "bob", path)).status_code == 202
            await events.until(type="approval", approvalId=approval, state="requested")
            assert (await decide(people, "cat", path)).status_code == 202
            await events.until(type="approval", approvalId=approval, state="executed")
            await events.until(type="chat", status="ready")
        assert counted.runs == [7]


async def test_people_whom_the_rule_names_see_a_request_and_each_decision_at_once(
    tmp_path: Path, counted: Counted
) -> None:
    tool = gated(counted.tool(), approvers=["bob", "cat"], quorum=2)
    async with office(tmp_path, [tool]) as people, serving_alone(people.app) as address:
        bob, dan = {"authorization": "Bearer bob"}, {"authorization": "Bearer dan"}
        async with (
            over_socket(address, headers=bob) as http,
            over_socket(address, headers=dan) as other,
            events_of(http) as events,
            events_of(other) as of_dan,
        ):
            _, path = await asked(people)
            approval = path.rpartition("/")[2]
            await events.until(type="approval", approvalId=approval, state="requested")
            assert (await decide(people, "cat", path)).status_code == 202
            await events.until(type="approval", approvalId=approval, state="requested")
            assert (await decide(people, "bob", path)).status_code == 202
            await events.until(type="approval", approvalId=approval, state="executed")
            # A person whom no rule names hears of the own chats alone.
            await Page(people.of("dan")).say("pay")
            *_, first = await of_dan.until(type="approval")
            assert first["approvalId"] != approval


async def test_holders_of_a_role_see_requests_and_decisions_at_once(
    tmp_path: Path, counted: Counted
) -> None:
    tool = gated(counted.tool(), approvers=[Role("finance"), Role("legal"), "bob"], quorum=2)
    async with (
        office(tmp_path, [tool]) as people,
        serving_alone(people.app) as address,
        listening(address, "bob", "cat", "dan") as (of_bob, of_cat, of_dan),
    ):
        _, path = await asked(people)
        approval = path.rpartition("/")[2]
        for each in (of_bob, of_cat):
            [event] = await each.until(type="approval", approvalId=approval)
            assert event["state"] == "requested"
        assert (await decide(people, "bob", path)).status_code == 202
        assert (await decide(people, "cat", path)).status_code == 202
        for each in (of_bob, of_cat):
            events = await each.until(type="approval", approvalId=approval, state="executed")
            # One for the first yes, though a user is named and holds two of the roles.
            states = [event["state"] for event in events]
            assert states == ["requested", "approved", "executing", "executed"]
        # A person without the role hears of the own chats alone.
        await Page(people.of("dan")).say("pay")
        *_, first = await of_dan.until(type="approval")
        assert first["approvalId"] != approval


async def test_a_role_counts_as_it_is_when_an_event_is_delivered(
    tmp_path: Path, counted: Counted
) -> None:
    tool = gated(counted.tool(), approvers=Role("finance"), quorum=2)
    async with (
        office(tmp_path, [tool], recheck_interval=0.05) as people,
        serving_alone(people.app) as address,
        listening(address, "bob", "dan") as (of_bob, of_dan),
    ):
        people.write(USERS | {"bob": "sales", "dan": "finance"})
        # Both load what they see again: bob has lost the role, and dan has it now.
        for each in (of_bob, of_dan):
            assert await each.next() == {"type": "reset"}
        _, path = await asked(people)
        await of_dan.until(type="approval", state="requested")
        assert (await decide(people, "dan", path)).status_code == 202
        await of_dan.until(type="approval", state="requested")
        await Page(people.of("bob")).say("pay")
        approvals = {event.get("approvalId") for event in await of_bob.until(state="requested")}
        assert path.rpartition("/")[2] not in approvals


async def test_a_role_that_was_lost_ends_its_events_before_the_next_one(
    tmp_path: Path, counted: Counted
) -> None:
    async with (
        office(tmp_path, [gated(counted.tool(), approvers=Role("finance"))]) as people,
        serving_alone(people.app) as address,
        listening(address, "bob") as (of_bob,),
    ):
        people.write(USERS | {"bob": ""})
        await asked(people)
        assert await of_bob.next() == {"type": "reset"}
        await Page(people.of("bob")).say("pay")
        assert (await of_bob.next())["type"] == "chat"


@contextlib.asynccontextmanager
async def listening(address: tuple[str, int], *users: str) -> AsyncIterator[list[EventStream]]:
    """The events of users, each over a connection that is ready."""
    async with contextlib.AsyncExitStack() as stack:
        streams = []
        for user in users:
            headers = {"authorization": f"Bearer {user}"}
            http = await stack.enter_async_context(over_socket(address, headers=headers))
            streams.append(await stack.enter_async_context(events_of(http)))
            assert await streams[-1].next() == {"type": "ready"}
        yield streams


async def test_the_rule_holds_for_a_chat_on_a_socket(tmp_path: Path, counted: Counted) -> None:
    async with (
        office(tmp_path, [gated(counted.tool(), approvers=["ada", "bob"], quorum=2)]) as (people),
        serving_alone(people.app) as address,
    ):
        headers = {"authorization": "Bearer ada"}
        async with opened(address, additional_headers=headers) as socket:
            frames = await socket.exchange(send_frame(text="pay"))
            said = [CHUNK.validate_python(frame["chunk"]) for frame in chunk_frames(frames)]
            message = reduce_chunks(said)
            part = next(p for p in message["parts"] if p["type"] == "tool-pay")
            path = f"/api/approvals/{part['approval']['id']}"
            part["state"], part["approval"]["approved"] = "approval-responded", True
            answer = {**send_frame("r2"), "messages": [message]}
            frames = await socket.exchange(answer)
            assert [frame["chunk"]["type"] for frame in chunk_frames(frames)] == ["start", "error"]
            assert (await decide(people, "bob", path)).status_code == 202
            await ended(people, path)
        assert counted.runs == [7]


def chunk_frames(frames: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [frame for frame in frames if frame["type"] == "chunk"]


async def test_roles_of_a_proxy_count_as_they_were_last_seen(
    tmp_path: Path, counted: Counted
) -> None:
    tool = gated(counted.tool(), approvers=Role("finance"), quorum=2)

    async with office(tmp_path, [tool], auth="header:x-user", role_header="x-groups") as people:

        def of(user: str, groups: str = "") -> httpx.AsyncClient:
            return client(people.app, headers={"x-user": user, "x-groups": groups})

        page = Page(of("ada"))
        await page.say("pay")
        [approval] = page.asks()
        path = f"/api/approvals/{approval}"
        assert (await of("bob", "sales").get(path)).status_code == 404
        assert (await of("bob", "sales, finance").post(path, json={"approved": True})).is_success
        # The proxy says on another request that the role is gone.
        assert (await of("bob", "sales").get("/api/chats")).is_success
        card = (await of("cat", "finance").post(path, json={"approved": True})).json()
        assert (card["state"], card["missing"]) == ("requested", 1)
        assert (await of("bob", "finance").get("/api/chats")).is_success
        assert (await of("dan", "finance").post(path, json={"approved": True})).is_success
        while (await of("ada").get(path)).json()["state"] != "executed":
            pass
        assert counted.runs == [7]


async def test_a_page_of_the_inbox_reads_the_roles_of_its_person_once(
    tmp_path: Path, counted: Counted
) -> None:
    class Directory:
        def __init__(self) -> None:
            self.asked: list[str] = []

        async def __call__(self, connection: HTTPConnection) -> User | None:
            return User(connection.headers["authorization"].removeprefix("Bearer "))

        def roles_of(self, user: str) -> set[str]:
            self.asked.append(user)
            return set() if user == "ada" else {"finance"}

    directory = Directory()
    tool = gated(counted.tool(), approvers=Role("finance"))
    async with office(tmp_path, [tool], authenticate=directory) as people:
        for _ in range(3):
            await asked(people)
        directory.asked.clear()
        page = (await people.of("bob").get("/api/approvals")).json()["approvals"]
        assert [each["mayDecide"] for each in page] == [True] * 3
        assert directory.asked == ["bob"]


async def test_an_open_connection_does_not_bring_back_a_role_that_is_gone(
    tmp_path: Path, counted: Counted
) -> None:
    tool = gated(counted.tool(), approvers=Role("finance"))
    settings = {"auth": "header:x-user", "role_header": "x-groups", "recheck_interval": 0.05}
    async with office(tmp_path, [tool], **settings) as people, serving_alone(people.app) as address:
        bob = {"x-user": "bob", "x-groups": "finance"}
        async with over_socket(address, headers=bob) as http, events_of(http) as events:
            assert await events.next() == {"type": "ready"}
            sales = bob | {"x-groups": "sales"}
            assert (await http.get("/api/chats", headers=sales)).is_success
            assert await events.next() == {"type": "reset"}


async def test_roles_are_too_old_after_a_while(tmp_path: Path, counted: Counted) -> None:
    tool = gated(counted.tool(), approvers=Role("finance"), quorum=2)
    settings = {"auth": "header:x-user", "role_header": "x-groups", "role_max_age": 1e-6}
    async with office(tmp_path, [tool], **settings) as people:
        headers = {"x-user": "bob", "x-groups": "finance"}
        page = Page(client(people.app, headers={"x-user": "ada"}))
        await page.say("pay")
        [approval] = page.asks()
        async with client(people.app, headers=headers) as bob:
            assert (await bob.get(f"/api/approvals/{approval}")).status_code == 404


async def test_an_authenticator_is_asked_for_the_roles_of_absent_people(
    tmp_path: Path, counted: Counted
) -> None:
    class Directory:
        def __init__(self) -> None:
            self.roles = {"bob": {"finance"}, "cat": {"finance"}}

        async def __call__(self, connection: HTTPConnection) -> User | None:
            name = connection.headers["authorization"].removeprefix("Bearer ")
            return User(name, self.roles.get(name, ()))

        async def roles_of(self, user: str) -> set[str]:
            return self.roles.get(user, set())

    directory = Directory()
    tool = gated(counted.tool(), approvers=Role("finance"), quorum=2)
    async with office(tmp_path, [tool], authenticate=directory) as people:
        _, path = await asked(people)
        assert (await decide(people, "bob", path)).status_code == 202
        directory.roles["bob"] = set()
        assert (await decide(people, "cat", path)).json()["missing"] == 1
        directory.roles["bob"] = {"finance"}
        assert (await people.of("cat").get(path)).json()["missing"] == 0
