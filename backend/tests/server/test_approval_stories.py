"""Approvals over HTTP with the real engine: one story for each operation."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from google.adk.agents.callback_context import CallbackContext
from google.adk.agents.sequential_agent import SequentialAgent

from sluicegate.server.cli import main
from sluicegate.testing.message_comparison import comparable
from sluicegate.tools import GatedCall
from tests.engine.adk_story import Story
from tests.engine.stage import Counted, calls, says, scripted
from tests.server.page import Page, served

PAY_TWICE = [calls(("pay", {"n": 1})), calls(("pay", {"n": 2})), says("done")]


def kinds(chunks: list[dict[str, Any]]) -> list[str]:
    return [chunk["type"] for chunk in chunks]


@pytest.mark.parametrize("major", [6, 7])
async def test_an_approval_for_the_whole_chat_is_listed_and_revoked(
    tmp_path: Path, counted: Counted, major: Any
) -> None:
    async with served(scripted(PAY_TWICE, [counted.tool()]), tmp_path) as http:
        page = Page(http, major)
        await page.say("pay")
        read = await page.answer(remember=dict.fromkeys(page.asks(), "chat"))
        assert (counted.runs, page.posts, page.pending()) == ([1, 2], 2, [])
        assert ("tool-approval-request" in kinds(read)) == (major == 7)
        live = page.messages[-1]
        assert comparable(await page.history(), major=major) == comparable(live, major=major)
        grants = f"/api/chats/{page.chat_id}/grants"
        [grant] = (await http.get(grants)).json()["grants"]
        assert (grant["tool"], grant["where"]) == ("pay", {})
        assert (await http.delete(f"{grants}/pay")).status_code == 404
        assert (await http.delete(f"{grants}/{grant['id']}")).status_code == 204
        assert (await http.get(grants)).json() == {"grants": []}
        assert (await http.delete(f"{grants}/{grant['id']}")).status_code == 404
        assert (await http.get("/api/chats/none/grants")).status_code == 404
        await page.say("pay again")
        assert len(page.pending()) == 1


async def test_arguments_are_edited_before_the_approval(tmp_path: Path, counted: Counted) -> None:
    async with served(scripted(PAY_TWICE[1:], [counted.tool()]), tmp_path) as http:
        page = Page(http)
        read = await page.say("pay")
        [request] = [chunk for chunk in read if chunk["type"] == "tool-approval-request"]
        assert request["approvalDescriptor"]["editable"] is True
        assert request["approvalDescriptor"]["schema"]["properties"]["n"]["type"] == "integer"
        [asked] = page.asks()
        body = {"id": page.chat_id, "messages": page.messages, "edits": {asked: {"n": "two"}}}
        [part] = page.pending()
        part["state"], part["approval"]["approved"] = "approval-responded", True
        refused = await http.post("/api/chat", json=body)
        assert (refused.status_code, refused.headers["x-error-code"]) == (400, "malformed")
        assert refused.text == (
            "The changed arguments of pay do not fit: n: 'two' is not of type 'integer'."
        )
        await page.post(edits={asked: {"n": 20}})
        assert counted.runs == [20]
        live = page.messages[-1]
        assert comparable(await page.history()) == comparable(live)
        [shown] = [part for part in live["parts"] if part["type"] == "tool-pay"]
        assert shown["output"]["edited_by_user"]["arguments"] == {"n": 20}


async def test_a_policy_overrides_an_approval(tmp_path: Path, counted: Counted) -> None:
    allowed = True

    async def policy(call: GatedCall, user: str) -> bool | str:
        return allowed or f"{user} may not call {call.tool}."

    agent = scripted(PAY_TWICE[1:], [counted.tool()])
    async with served(agent, tmp_path, policy=policy) as http:
        page = Page(http)
        await page.say("pay")
        allowed = False
        await page.answer()
        [shown] = [part for part in page.messages[-1]["parts"] if part["type"] == "tool-pay"]
        assert shown["errorText"] == "Not run: local may not call pay."
        assert counted.runs == []


@pytest.mark.parametrize("is_requested", [False, True])
async def test_a_refusal_by_the_policy_is_in_the_audit_log(
    tmp_path: Path, counted: Counted, capsys: pytest.CaptureFixture[str], is_requested: bool
) -> None:
    async def policy(call: GatedCall, user: str) -> bool | str:
        return (is_requested and call.approval is None) or "Not on Sundays."

    agent = scripted(PAY_TWICE[1:], [counted.tool()])
    async with served(agent, tmp_path, policy=policy) as http:
        page = Page(http)
        await page.say("pay")
        if is_requested:
            await page.answer()
    url = f"sqlite+aiosqlite:///{tmp_path}/chats.db"
    assert await asyncio.to_thread(main, ["audit", "--sessions", url, "--verify"]) == 0
    capsys.readouterr()
    assert await asyncio.to_thread(main, ["audit", "--sessions", url]) == 0
    [*before, refused] = capsys.readouterr().out.splitlines()
    decided = "by=local via=sse" if is_requested else "by=- via=-"
    assert f" refused pay {decided} user=local chat={page.chat_id} approval=" in refused
    assert ("approval=-" in refused, len(before)) == ((False, 2) if is_requested else (True, 0))
    assert re.search(r' args=[0-9a-f]{12} reason="Not on Sundays\."$', refused)
    assert counted.runs == []


async def test_the_audit_log_is_printed_while_the_server_runs(
    tmp_path: Path, counted: Counted, capsys: pytest.CaptureFixture[str]
) -> None:
    async with served(scripted(PAY_TWICE, [counted.tool()]), tmp_path) as http:
        page = Page(http)
        await page.say("pay")
        await page.answer(approved=False)
        url = f"sqlite+aiosqlite:///{tmp_path}/chats.db"
        argv = ["audit", "--sessions", url, "--chat", page.chat_id, "--user", "local"]
        assert await asyncio.to_thread(main, argv) == 0
        await page.answer()
    asked, denied, again = capsys.readouterr().out.splitlines()
    assert " requested pay by=- via=- " in asked
    assert " denied pay by=local via=sse " in denied
    assert " requested pay by=- via=- " in again


async def test_a_decision_made_outside_the_page_is_shown_on_the_page(
    tmp_path: Path, counted: Counted
) -> None:
    async with served(scripted(PAY_TWICE[1:], [counted.tool()]), tmp_path) as http:
        page = Page(http)
        await page.say("pay")
        [card] = (await http.get("/api/approvals")).json()["approvals"]
        assert (card["approvalId"], card["chatId"]) == (page.asks()[0], page.chat_id)
        where = f"/api/approvals/{card['approvalId']}"
        decided = await http.post(where, json={"approved": True, "reason": "on the way home"})
        assert (decided.status_code, decided.json()["reason"]) == (202, "on the way home")
        while (await http.get(where)).json()["state"] != "executed":
            pass
        assert (await http.get("/api/approvals")).json() == {"approvals": [], "next": None}
        refused = await http.post(where, json={"approved": False})
        assert (refused.status_code, refused.headers["x-error-code"]) == (409, "already_decided")
        while (await http.get(f"/api/chats/{page.chat_id}")).json()["status"] != "ready":
            pass
        assert [p["state"] for p in (await page.history())["parts"] if "output" in p] == [
            "output-available"
        ]
        read = await page.answer()
        assert kinds(read)[-1] == "finish"
        assert counted.runs == [2]
        argv = ["audit", "--sessions", f"sqlite+aiosqlite:///{tmp_path}/chats.db"]
        assert await asyncio.to_thread(main, argv) == 0


async def test_callbacks_around_agents_act_once_although_the_server_restarts_at_each_answer(
    tmp_path: Path,
) -> None:
    story = Story(is_stateless=True)
    agents = [story.asker("a", "pay", "book"), story.asker("b")]
    root = SequentialAgent(name="both", sub_agents=list(agents))
    for agent in (root, *agents):
        for when in ("before", "after"):
            noted = partial(_notes, story.effects, f"{when} {agent.name}")
            setattr(agent, f"{when}_agent_callback", noted)
    page: Page | None = None
    while page is None or page.pending():
        async with served(root, tmp_path) as http:
            page = Page(http) if page is None else replace(page, http=http)
            await (page.answer() if page.messages else page.say("go"))
    assert page.posts == 3
    assert story.effects == [
        *("before both", "before a", "pay", "book", "after a"),
        *("before b", "pay_b", "after b", "after both"),
    ]


def _notes(effects: list[str], what: str, callback_context: CallbackContext) -> None:
    effects.append(what)
