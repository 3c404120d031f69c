"""A tool that asks more than once in a call, over every transport and across a restart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.engine.stage import Counted, calls, says, scripted
from tests.engine.test_asked_again import SCRIPT, Transfers
from tests.parts import long_table
from tests.transports.card_stories import TRANSPORTS, Tab, tab_on
from tests.transports.test_card_stories import wait_ready

pytestmark = [long_table, pytest.mark.parametrize("transport", TRANSPORTS)]

STYLES = pytest.mark.parametrize("style", ["call", "confirmation"])
RELEASES = pytest.mark.parametrize("release", ["deferred", "progressive"])


async def stored(tab: Tab) -> Any:
    """The last message as the server has it."""
    return (await tab.get("/api/chats/c1"))["messages"][-1]


async def states(tab: Tab) -> list[str]:
    """The states of the ledger's rows in the order of the questions."""
    rows = await tab.rows()
    return [row.state for row in sorted(rows, key=lambda row: row.key.request_number)]


@STYLES
@RELEASES
async def test_each_question_is_a_card_and_the_effect_follows_the_last(
    tmp_path: Path, transport: str, style: str, release: str
) -> None:
    transfers = Transfers(questions=3)
    agent = scripted(SCRIPT, [transfers.tool()])
    options: dict[str, Any] = {"release": release, "approval_style": style}
    async with tab_on(agent, transport, tmp_path, **options) as tab:
        await tab.say()
        seen = []
        for number in (1, 2, 3):
            [card] = tab.cards()
            seen.append(card["approval"]["id"])
            assert card["approval"]["requestReason"] == f"Question {number}?"
            assert card["approval"]["descriptor"]["payload"] == {"step": number, "to": ""}
            assert transfers.paid == []
            answer = {"step": number, "to": f"answer {number}"}
            await tab.decide(payload={seen[-1]: answer})
        assert transfers.paid == [{"amount": 5, "step": 3, "to": "answer 3"}]
        assert len(transfers.begun) == 4
        assert await states(tab) == ["asked_again", "asked_again", "executed"]
        assert len(set(seen)) == 3
        assert tab.parts("transfer")[0]["output"] == {"paid": 5}
        assert tab.read[-1]["finishReason"] == "stop"
        assert (await stored(tab))["parts"] == tab.messages[-1]["parts"]


@STYLES
async def test_a_denial_of_a_later_question_has_no_effect(
    tmp_path: Path, transport: str, style: str
) -> None:
    transfers = Transfers()
    agent = scripted(SCRIPT, [transfers.tool()])
    async with tab_on(agent, transport, tmp_path, approval_style=style) as tab:
        await tab.say()
        await tab.decide()
        await tab.decide(approved=False)
        assert (transfers.paid, len(transfers.begun)) == ([], 2)
        assert await states(tab) == ["asked_again", "denied"]
        assert tab.read[-1]["finishReason"] == "stop"
        assert (await stored(tab))["parts"] == tab.messages[-1]["parts"]


async def test_a_gated_call_beside_one_that_asks_again_runs_once(
    tmp_path: Path, transport: str
) -> None:
    transfers, counted = Transfers(), Counted()
    script = [calls(("pay", {"n": 1}), ("transfer", {"amount": 5})), says("done")]
    agent = scripted(script, [counted.tool(), transfers.tool()])
    async with tab_on(agent, transport, tmp_path) as tab:
        await tab.say()
        assert len(tab.cards()) == 2
        await tab.decide()
        assert (counted.runs, len(tab.cards())) == ([1], 1)
        await tab.decide()
        assert (counted.runs, len(transfers.paid)) == ([1], 1)
        assert tab.read[-1]["finishReason"] == "stop"
        assert (await stored(tab))["parts"] == tab.messages[-1]["parts"]


async def test_edits_of_an_earlier_question_hold_for_the_later_ones(
    tmp_path: Path, transport: str
) -> None:
    transfers = Transfers()
    async with tab_on(scripted(SCRIPT, [transfers.tool()]), transport, tmp_path) as tab:
        await tab.say()
        [card] = tab.cards()
        await tab.decide(edits={card["approval"]["id"]: {"amount": 3}})
        [card] = tab.cards()
        assert card["approval"]["descriptor"]["arguments"] == {"amount": 3}
        await tab.decide()
        assert transfers.paid == [{"amount": 3, "step": 2, "to": ""}]
        assert tab.parts("transfer")[0]["output"]["edited_by_user"]["arguments"] == {"amount": 3}


async def test_the_limit_of_approvals_counts_every_question(tmp_path: Path, transport: str) -> None:
    transfers = Transfers(questions=30)
    agent = scripted(SCRIPT, [transfers.tool()])
    async with tab_on(agent, transport, tmp_path, max_requests_per_exchange=4) as tab:
        await tab.say()
        times = 0
        while tab.cards():
            await tab.decide()
            times += 1
        assert times == 4
        assert "too many approvals" in tab.parts("transfer")[0]["errorText"]


async def test_a_new_message_closes_a_later_question(tmp_path: Path, transport: str) -> None:
    transfers = Transfers()
    async with tab_on(scripted(SCRIPT, [transfers.tool()]), transport, tmp_path) as tab:
        await tab.say()
        await tab.decide()
        await tab.say("something else")
        assert transfers.paid == []
        closed = (await tab.get("/api/chats/c1"))["messages"][1]
        approvals = closed["metadata"]["approvals"].values()
        assert [approval["state"] for approval in approvals] == ["asked_again", "superseded"]
        [part] = [part for part in closed["parts"] if part["type"] == "tool-transfer"]
        assert part["state"] == "output-denied"


@STYLES
@pytest.mark.parametrize("after", TRANSPORTS)
async def test_the_answers_before_a_restart_hold_after_it(
    tmp_path: Path, transport: str, after: str, style: str
) -> None:
    transfers = Transfers(questions=3)
    agent = scripted(SCRIPT, [transfers.tool()])
    async with tab_on(agent, transport, tmp_path, approval_style=style) as tab:
        await tab.say()
        await tab.decide()
        assert len(tab.cards()) == 1
    async with tab_on(agent, after, tmp_path, approval_style=style) as tab:
        tab.messages = (await tab.get("/api/chats/c1"))["messages"]
        [card] = tab.cards()
        assert card["approval"]["requestReason"] == "Question 2?"
        await tab.decide()
        assert transfers.paid == []
    async with tab_on(agent, transport, tmp_path, approval_style=style) as tab:
        tab.messages = (await tab.get("/api/chats/c1"))["messages"]
        [card] = tab.cards()
        assert card["approval"]["requestReason"] == "Question 3?"
        await tab.decide()
        assert transfers.paid == [{"amount": 5, "step": 3, "to": ""}]
        assert await states(tab) == ["asked_again", "asked_again", "executed"]
        assert tab.parts("transfer")[0]["output"] == {"paid": 5}


async def test_a_callback_that_fails_after_a_later_question_has_no_effect(
    tmp_path: Path, transport: str
) -> None:
    transfers, fails = Transfers(), [False]

    async def before(tool: Any, args: dict[str, Any], tool_context: Any) -> None:
        if fails[0]:
            raise RuntimeError("secret")

    agent = scripted(SCRIPT, [transfers.tool()], before_tool_callback=before)
    async with tab_on(agent, transport, tmp_path) as tab:
        await tab.say()
        await tab.decide()
        fails[0] = True
        await tab.decide()
        await wait_ready(tab)
        assert transfers.paid == []
        if transport == "live":
            assert tab.parts("transfer")[0]["state"] == "output-error"
            assert await states(tab) == ["asked_again", "refused"]
