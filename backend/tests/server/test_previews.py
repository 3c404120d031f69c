"""Previews of calls: one story for each rule, over HTTP with the real engine."""

from __future__ import annotations

import asyncio
import base64
import json
import sqlite3
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from google.adk.tools.tool_context import ToolContext

from sluicegate.tools import (
    Approvers,
    Diff,
    GatedCall,
    Image,
    Preview,
    Role,
    approval_of,
    gated,
)
from tests.engine.stage import calls, says
from tests.server.exchange import PATIENCE
from tests.server.page import Page
from tests.server.test_approvers import Office, decide, ended, office

ARCHIVE = ("archive", {"days": 30})
ONCE = [calls(ARCHIVE), says("done")]
AGAIN = [calls(ARCHIVE), calls(ARCHIVE), calls(ARCHIVE), calls(ARCHIVE), says("done")]
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@dataclass
class Desk:
    """Documents that are archived, with a preview of which."""

    documents: list[dict[str, Any]] = field(
        default_factory=lambda: [{"name": "a.pdf", "age": 31}, {"name": "b.pdf", "age": 90}]
    )
    shows: Any = None
    """What the preview returns in place of the documents; an exception is raised."""
    runs: list[tuple[int, str | None]] = field(default_factory=list)
    """The days and the version of the preview of each run."""
    asked: list[GatedCall] = field(default_factory=list)

    async def preview(self, call: GatedCall) -> Any:
        """What a call would archive."""
        self.asked.append(call)
        if isinstance(self.shows, Exception):
            raise self.shows
        if self.shows is not None:
            return self.shows
        return [each for each in self.documents if each["age"] > call.arguments["days"]]

    def tool(self, **terms: Any) -> Any:
        def archive(days: int, tool_context: ToolContext) -> dict[str, int]:
            """Archive the documents that are older than so many days."""
            approval = approval_of(tool_context)
            self.runs.append((days, None if approval is None else approval.preview))
            return {"archived": days}

        return gated(archive, **{"preview": self.preview, **terms})


@pytest.fixture
def desk() -> Desk:
    return Desk()


async def card(people: Office, path: str, user: str = "ada") -> dict[str, Any]:
    found: dict[str, Any] = (await people.of(user).get(path)).json()
    return found


async def asked(people: Office) -> tuple[Page, str]:
    page = Page(people.of("ada"))
    await page.say("archive")
    [approval] = page.asks()
    return page, f"/api/approvals/{approval}"


def error_of(page: Page) -> str:
    part = next(p for p in reversed(page.messages[-1]["parts"]) if p["type"] == "tool-archive")
    return str(part["errorText"])


async def test_the_card_shows_what_a_call_would_do_and_the_model_does_not_read_it(
    tmp_path: Path, desk: Desk
) -> None:
    async with office(tmp_path, [desk.tool()], ONCE) as people:
        page = Page(people.of("ada"))
        read = await page.say("archive")
        [request] = [chunk for chunk in read if chunk["type"] == "tool-approval-request"]
        descriptor = request["approvalDescriptor"]
        table = {
            "kind": "table",
            "columns": ["name", "age"],
            "rows": [["a.pdf", 31], ["b.pdf", 90]],
        }
        assert descriptor["preview"] == table
        assert descriptor["rememberable"] is False
        path = f"/api/approvals/{request['approvalId']}"
        listed = (await people.of("ada").get("/api/approvals")).json()["approvals"]
        for shown in (await card(people, path), *listed):
            assert (shown["preview"], shown["digest"]) == (table, descriptor["digest"])
        stored = (await page.history())["parts"]
        assert "b.pdf" in json.dumps(stored)
        await page.answer()
        assert [days for days, _ in desk.runs] == [30]
        assert [call.approval for call in desk.asked] == [None, None]
    events = sqlite3.connect(people.database.partition("///")[2]).execute(
        "SELECT event_data FROM events"
    )
    assert "b.pdf" not in str(list(events))


async def test_a_call_whose_preview_has_changed_does_not_run_and_is_shown_anew(
    tmp_path: Path, desk: Desk
) -> None:
    async with office(tmp_path, [desk.tool()], AGAIN, release="progressive") as people:
        page, path = await asked(people)
        desk.documents.append({"name": "c.pdf", "age": 40})
        await page.answer()
        assert desk.runs == []
        refused = await card(people, path)
        assert refused["state"] == "refused"
        said = next(p["errorText"] for p in page.messages[-1]["parts"] if p.get("errorText"))
        assert said == (
            "Not run: what it would do is not what was approved any more: 1 row is new. "
            "Call it again; the user is asked anew."
        )
        [again] = page.asks()
        shown_anew = await card(people, f"/api/approvals/{again}")
        # The arguments are the same.
        assert shown_anew["digest"] != refused["digest"]
        renewed = shown_anew["preview"]
        assert len(renewed["rows"]) == 3
        assert len(renewed["previous"]["rows"]) == 2
        assert renewed["previous"]["approvalId"] == path.rpartition("/")[2]
        await page.answer()
        assert [days for days, _ in desk.runs] == [30]


async def test_the_model_asks_anew_twice_by_itself(tmp_path: Path, desk: Desk) -> None:
    async with office(tmp_path, [desk.tool()], AGAIN, release="progressive") as people:
        page, _ = await asked(people)
        for number in range(3):
            desk.documents.append({"name": f"{number}.pdf", "age": 40})
            assert len(page.asks()) == 1
            await page.answer()
        assert page.asks() == []
        assert desk.runs == []
        assert "has changed each time" in error_of(page)


@pytest.mark.parametrize(
    ("shows", "reason"),
    [
        (RuntimeError("secret"), "The preview failed (error "),
        (asyncio.sleep(0), "The preview cannot be shown, since it is no text"),
        ("x" * 70_000, "it has more than 65,536 bytes"),
        (Image(b"GIF89a", "image/png"), "its picture has another type than it says"),
        (Image(PIXEL * 40_000, "image/png"), "its picture has more than"),
        (Preview("x", version=""), "its version is no text"),
    ],
)
async def test_without_a_preview_nothing_can_be_approved(
    tmp_path: Path, desk: Desk, shows: Any, reason: str
) -> None:
    if asyncio.iscoroutine(shows):
        shows.close()
        shows = 7
    desk.shows = shows
    async with office(tmp_path, [desk.tool()], ONCE) as people:
        page, path = await asked(people)
        shown = await card(people, path)
        assert shown["preview"]["kind"] == "failed"
        assert reason in shown["preview"]["reason"]
        assert "secret" not in shown["preview"]["reason"]
        refused = await decide(people, "ada", path)
        assert (refused.status_code, refused.headers["x-error-code"]) == (409, "no_preview")
        assert "Deny this call" in refused.text
        assert (await card(people, path))["state"] == "requested"
        await page.answer(approved=False)
        assert desk.runs == []


async def test_a_preview_that_takes_too_long_has_failed(tmp_path: Path, desk: Desk) -> None:
    async def slow(_call: GatedCall) -> str:
        await asyncio.Event().wait()
        return ""

    tool = desk.tool(preview=slow)
    async with office(tmp_path, [tool], ONCE, preview_timeout=0.05) as people:
        _, path = await asked(people)
        shown = (await card(people, path))["preview"]
        assert shown["reason"] == "The preview took longer than 0.05 seconds."


async def test_a_function_that_is_not_async_does_not_stop_the_server(
    tmp_path: Path, desk: Desk
) -> None:
    loop = asyncio.get_running_loop()

    def preview(call: GatedCall) -> str:
        # It would wait for ever in the thread of the event loop.
        asyncio.run_coroutine_threadsafe(asyncio.sleep(0), loop).result(PATIENCE)
        return f"files of {call.arguments['days']} days"

    async with office(tmp_path, [desk.tool(preview=preview)], ONCE) as people:
        _, path = await asked(people)
        assert (await card(people, path))["preview"]["text"] == "files of 30 days"
        changed = await decide(people, "ada", path, edits={"days": 60})
        assert changed.headers["x-error-code"] == "changed"
        shown = await card(people, path)
        assert shown["preview"]["text"] == "files of 60 days"
        assert (await decide(people, "ada", path, digest=shown["digest"])).status_code == 202
        await ended(people, path)
        assert [days for days, _ in desk.runs] == [60]


async def test_a_preview_that_fails_before_the_claim_refuses_the_call(
    tmp_path: Path, desk: Desk
) -> None:
    async with office(tmp_path, [desk.tool()], ONCE) as people:
        page, path = await asked(people)
        desk.shows = RuntimeError("gone")
        await page.answer()
        assert desk.runs == []
        assert (await card(people, path))["state"] == "refused"
        assert "could not be determined" in error_of(page)


async def test_too_many_previews_are_not_computed(tmp_path: Path, desk: Desk) -> None:
    async with office(tmp_path, [desk.tool()], ONCE, max_previews_per_minute=1) as people:
        _, first = await asked(people)
        _, second = await asked(people)
        assert (await card(people, first))["preview"]["kind"] == "table"
        assert "Too many previews" in (await card(people, second))["preview"]["reason"]
        changed = await decide(people, "ada", first, edits={"days": 60})
        assert changed.status_code == 429
        # What was shown is compared all the same.
        assert (await decide(people, "ada", first)).status_code == 202
        await ended(people, first)


async def test_the_tool_reads_the_version_of_the_approved_preview(
    tmp_path: Path, desk: Desk
) -> None:
    desk.shows = Preview("two documents", version="rev-7")
    async with office(tmp_path, [desk.tool()], AGAIN, release="progressive") as people:
        page, _ = await asked(people)
        desk.shows = Preview("two documents", version="rev-8")
        await page.answer()
        assert "its version has changed" in next(
            p["errorText"] for p in page.messages[-1]["parts"] if p.get("errorText")
        )
        await page.answer()
        assert desk.runs == [(30, "rev-8")]


async def test_a_difference_and_a_picture_are_shown(tmp_path: Path, desk: Desk) -> None:
    async with office(tmp_path, [desk.tool()], ONCE) as people:
        desk.shows = Diff({"n": 1}, "two\n")
        _, path = await asked(people)
        shown = (await card(people, path))["preview"]
        assert shown == {"kind": "diff", "before": '{\n  "n": 1\n}', "after": "two\n"}
        assert (
            await people.of("ada").get(path.replace("approvals", "previews"))
        ).status_code == 404
        desk.shows = Image(PIXEL, "image/png")
        page, path = await asked(people)
        shown = (await card(people, path))["preview"]
        assert (shown["kind"], shown["mediaType"]) == ("image", "image/png")
        picture = await people.of("ada").get(path.replace("approvals", "previews"))
        assert (picture.content, picture.headers["content-type"]) == (PIXEL, "image/png")
        assert (
            await people.of("dan").get(path.replace("approvals", "previews"))
        ).status_code == 404
        await page.answer()
        assert len(desk.runs) == 1


async def test_an_edit_is_approved_only_after_its_preview_was_shown(
    tmp_path: Path, desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    async with office(tmp_path, [desk.tool()], ONCE) as people:
        _, path = await asked(people)
        before = (await card(people, path))["digest"]
        changed = await decide(people, "ada", path, edits={"days": 60})
        assert (changed.status_code, changed.headers["x-error-code"]) == (409, "changed")
        shown = await card(people, path)
        assert (shown["state"], shown["edits"]) == ("requested", {"days": 60})
        assert shown["preview"]["rows"] == [["b.pdf", 90]]
        assert shown["preview"]["editedBy"] == "ada"
        # Neither a yes to the card of before nor one that names nothing counts.
        for stated in ({}, {"digest": before}):
            refused = await decide(people, "ada", path, **stated)
            assert refused.headers["x-error-code"] == "changed"
        assert desk.runs == []
        approved = await decide(people, "ada", path, digest=shown["digest"])
        assert approved.status_code == 202
        done = await ended(people, path)
        assert (done["edits"], [days for days, _ in desk.runs]) == ({"days": 60}, [60])
        # The same again is a repeat.
        repeated = await decide(people, "ada", path, digest=shown["digest"])
        assert repeated.status_code == 202, repeated.text
        assert len(desk.runs) == 1
        assert "edited ada" in await people.audit(capsys)


async def test_an_edit_whose_preview_fails_changes_nothing(tmp_path: Path, desk: Desk) -> None:
    async with office(tmp_path, [desk.tool()], ONCE) as people:
        _, path = await asked(people)
        before = await card(people, path)
        desk.shows = RuntimeError("secret")
        refused = await decide(people, "ada", path, edits={"days": 60})
        assert (refused.status_code, refused.headers["x-error-code"]) == (409, "no_preview")
        assert await card(people, path) == before


async def test_an_edit_in_a_chat_request_is_shown_first(tmp_path: Path, desk: Desk) -> None:
    async with office(tmp_path, [desk.tool()], ONCE) as people:
        page, path = await asked(people)
        [part] = page.pending()
        part["state"], part["approval"]["approved"] = "approval-responded", True
        approval = part["approval"]["id"]
        body = {"id": page.chat_id, "messages": page.messages, "edits": {approval: {"days": 60}}}
        response = await page.http.post("/api/chat", json=body, headers={"x-ai-sdk": "7"})
        assert (response.status_code, response.headers["x-error-code"]) == (409, "changed")
        digest = (await card(people, path))["digest"]
        await page.post(digest={approval: digest}, edits={approval: {"days": 60}})
        assert [days for days, _ in desk.runs] == [60]


async def test_a_quorum_approves_the_preview_that_it_saw(tmp_path: Path, desk: Desk) -> None:
    tool = desk.tool(approvers=Approvers(Role("finance")), quorum=2)
    async with office(tmp_path, [tool], ONCE) as people:
        _, path = await asked(people)
        seen = await card(people, path, "bob")
        assert seen["preview"]["kind"] == "table"
        assert (await decide(people, "bob", path, digest=seen["digest"])).status_code == 202
        changed = await decide(people, "cat", path, digest=seen["digest"], edits={"days": 60})
        assert changed.headers["x-error-code"] == "changed"
        shown = await card(people, path, "cat")
        assert (shown["missing"], shown["preview"]["rows"]) == (2, [["b.pdf", 90]])
        assert [each.get("voided") for each in shown["decisions"]] == [True]
        for user in ("bob", "cat"):
            decided = await decide(people, user, path, digest=shown["digest"])
            assert decided.status_code == 202, decided.text
        await ended(people, path)
        assert [days for days, _ in desk.runs] == [60]
        # A change after the last yes counts as for one person.
        assert len(desk.asked) == 3


async def test_the_last_yes_of_a_quorum_runs_nothing_after_a_change(
    tmp_path: Path, desk: Desk
) -> None:
    tool = desk.tool(approvers=Approvers(Role("finance")), quorum=2)
    async with office(tmp_path, [tool], ONCE) as people:
        _, path = await asked(people)
        assert (await decide(people, "bob", path)).status_code == 202
        desk.documents.clear()
        assert (await decide(people, "cat", path)).status_code == 202
        await ended(people, path, "refused")
        assert desk.runs == []


async def test_an_approval_survives_a_restart_with_its_preview(tmp_path: Path, desk: Desk) -> None:
    async with office(tmp_path, [desk.tool()], AGAIN, release="progressive") as people:
        page, path = await asked(people)
    desk.documents.pop()
    async with office(tmp_path, [desk.tool()], AGAIN, release="progressive") as people:
        page.http = people.of("ada")
        assert len((await card(people, path))["preview"]["rows"]) == 2
        await page.answer()
        assert desk.runs == []
        [again] = page.asks()
        assert len((await card(people, f"/api/approvals/{again}"))["preview"]["rows"]) == 1


@pytest.mark.parametrize("had", [True, False])
async def test_a_tool_that_gets_or_loses_its_preview_asks_anew(
    tmp_path: Path, desk: Desk, had: bool
) -> None:
    tools = [desk.tool(), desk.tool(preview=None)]
    async with office(tmp_path, [tools[not had]], ONCE) as people:
        _, path = await asked(people)
    async with office(tmp_path, [tools[had]], ONCE) as people:
        response = await decide(people, "ada", path)
        if not had:
            assert response.headers["x-error-code"] == "no_preview"
        elif response.status_code == 202:
            await ended(people, path, "refused")
        assert desk.runs == []


async def test_a_confirmation_has_the_preview_too(tmp_path: Path, desk: Desk) -> None:
    style = {"approval_style": "confirmation"}
    async with office(tmp_path, [desk.tool()], ONCE, **style) as people:
        page = Page(people.of("ada"))
        await page.say("archive")
        [part] = page.pending()
        confirmation = part["input"]["toolConfirmation"]
        assert confirmation["preview"]["kind"] == "table"
        assert len(confirmation["digest"]) == 64
        desk.documents.pop()
        await page.answer()
        assert desk.runs == []


async def test_without_a_preview_nothing_is_added(tmp_path: Path, desk: Desk) -> None:
    async with office(tmp_path, [desk.tool(preview=None)], ONCE) as people:
        page = Page(people.of("ada"))
        read = await page.say("archive")
        [request] = [chunk for chunk in read if chunk["type"] == "tool-approval-request"]
        assert not {"preview", "digest"} & request["approvalDescriptor"].keys()
        shown = await card(people, f"/api/approvals/{request['approvalId']}")
        assert not {"preview", "digest"} & shown.keys()
        await page.answer()
        assert desk.runs == [(30, None)]
