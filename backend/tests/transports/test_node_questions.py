"""The tool of a node of a Workflow that asks more than once, over each transport."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from google.adk.tools.function_tool import FunctionTool
from google.adk.workflow import Workflow

from tests.engine.stage import calls, says, scripted
from tests.engine.test_asked_again import Transfers
from tests.engine.topologies import Request
from tests.parts import long_table
from tests.transports.card_stories import Tab, tab_on
from tests.transports.test_asked_again import STYLES, states, stored

pytestmark = [
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),
    long_table,
    pytest.mark.parametrize("transport", ["sse", "socket"]),
]

RELEASES = pytest.mark.parametrize("release", ["deferred", "progressive"])
KINDS = pytest.mark.parametrize("kind", ["asks itself", "gated", "in tools"])


def amount(node_input: Any) -> dict[str, int]:
    """What to transfer."""
    return {"amount": 5}


def receipt(node_input: Any) -> dict[str, Any]:
    """What the node before has returned."""
    return {"receipt": node_input}


def workflow(transfers: Transfers, kind: str) -> Any:
    """A Workflow with a tool that asks as one of its nodes, perhaps among the tools of an agent."""
    tool = transfers.tool()
    if kind == "gated":
        tool = FunctionTool(tool.func, require_confirmation=True)
    edges: list[Any] = [("START", amount, tool, receipt)]
    if kind != "in tools":
        return Workflow(name="flow", edges=edges)
    flow = Workflow(name="flow", description="Pays.", edges=edges, input_schema=Request)
    entries: list[Any] = [flow]
    return scripted([calls(("flow", {"request": "pay"})), says("done")], entries)


async def questions(tab: Tab) -> list[str | None]:
    """Approve question after question; returns their hints."""
    hints: list[str | None] = []
    while tab.cards():
        [card] = tab.cards()
        hints.append(card["approval"].get("requestReason"))
        assert (await stored(tab))["parts"] == tab.messages[-1]["parts"]
        await tab.decide()
    return hints


@STYLES
@RELEASES
@KINDS
async def test_each_question_is_a_card_and_the_effect_follows_the_last(
    tmp_path: Path, transport: str, style: str, release: str, kind: str
) -> None:
    transfers = Transfers(questions=3)
    options: dict[str, Any] = {"release": release, "approval_style": style}
    async with tab_on(workflow(transfers, kind), transport, tmp_path, **options) as tab:
        await tab.say()
        hints = await questions(tab)
        assert hints[-3:] == ["Question 1?", "Question 2?", "Question 3?"]
        assert len(hints) == (4 if kind == "gated" else 3)
        assert transfers.paid == [{"amount": 5, "step": 3, "to": ""}]
        assert await states(tab) == [*["asked_again"] * (len(hints) - 1), "executed"]
        [part] = tab.parts("transfer")
        assert part["output"] == {"paid": 5}
        assert tab.read[-1]["finishReason"] == "stop"
        assert (await stored(tab))["parts"] == tab.messages[-1]["parts"]


@STYLES
@KINDS
async def test_a_denial_of_a_later_question_has_no_effect(
    tmp_path: Path, transport: str, style: str, kind: str
) -> None:
    transfers = Transfers()
    async with tab_on(workflow(transfers, kind), transport, tmp_path, approval_style=style) as tab:
        await tab.say()
        await tab.decide()
        await tab.decide(approved=False)
        assert transfers.paid == []
        assert await states(tab) == ["asked_again", "denied"]
        assert tab.read[-1]["finishReason"] == "stop"
        assert (await stored(tab))["parts"] == tab.messages[-1]["parts"]


@KINDS
async def test_the_answers_before_a_restart_hold_after_it(
    tmp_path: Path, transport: str, kind: str
) -> None:
    transfers = Transfers()
    for step in range(4 if kind == "gated" else 3):
        async with tab_on(workflow(transfers, kind), transport, tmp_path) as tab:
            if step == 0:
                await tab.say()
                continue
            tab.messages = (await tab.get("/api/chats/c1"))["messages"]
            assert transfers.paid == []
            assert len(tab.cards()) == 1
            await tab.decide()
    assert transfers.paid == [{"amount": 5, "step": 2, "to": ""}]
    assert tab.parts("transfer")[0]["output"] == {"paid": 5}


async def test_the_limit_of_approvals_counts_every_question(tmp_path: Path, transport: str) -> None:
    transfers = Transfers(questions=30)
    flow = workflow(transfers, "asks itself")
    async with tab_on(flow, transport, tmp_path, max_requests_per_exchange=4) as tab:
        await tab.say()
        assert len(await questions(tab)) == 4
        assert transfers.paid == []
        assert "too many approvals" in tab.parts("transfer")[0]["errorText"]
