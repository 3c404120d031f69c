"""Approvals over HTTP, with the real engine behind it: one story for each thing one may do."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from sluicegate.server.cli import main
from sluicegate.wire.messages import comparable
from tests.engine.stage import Counted, calls, says, scripted
from tests.server.page import Page, served

PAY_TWICE = [calls(("pay", {"n": 1})), calls(("pay", {"n": 2})), says("done")]


@pytest.fixture
def counted() -> Counted:
    return Counted()


def kinds(chunks: list[dict[str, Any]]) -> list[str]:
    return [chunk["type"] for chunk in chunks]


@pytest.mark.parametrize("major", [6, 7])
async def test_a_yes_for_the_whole_chat_is_listed_and_taken_back(
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
        assert [g["tool"] for g in (await http.get(grants)).json()["grants"]] == ["pay"]
        assert (await http.delete(f"{grants}/pay")).status_code == 204
        assert (await http.get(grants)).json() == {"grants": []}
        assert (await http.delete(f"{grants}/pay")).status_code == 404
        assert (await http.get("/api/chats/none/grants")).status_code == 404
        await page.say("pay again")
        assert len(page.pending()) == 1


async def test_the_trail_is_printed_while_the_server_runs(
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
