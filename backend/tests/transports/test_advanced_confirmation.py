"""ADK's advanced confirmation, hint and payload from request to tool, over every transport."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from google.adk.agents.llm_agent import LlmAgent
from google.adk.apps.app import App
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.tool_context import ToolContext

from sluicegate.core.json_values import hash_arguments
from tests.engine.stage import calls, says, scripted
from tests.parts import long_table
from tests.server.exchange import PATIENCE, over_socket
from tests.transports.card_stories import TRANSPORTS, Tab, tab_on

pytestmark = [long_table, pytest.mark.parametrize("transport", TRANSPORTS)]

HINT = "How many days may they take?"
ASKED: dict[str, Any] = {"approved_days": 0, "note": "", "dates": ["2026-08-03"]}
FILLED: dict[str, Any] = {
    "approved_days": 3,
    "note": "Enjoy.",
    "dates": ["2026-08-04", "2026-08-05"],
}
SCRIPT = [calls(("time_off", {"days": 5})), says("done")]


@dataclass
class Desk:
    """Time off, whose approval says how much of it; it records what each run read."""

    payloads: list[Any] = field(default_factory=list)
    days: list[int] = field(default_factory=list)
    asked: Any = field(default_factory=lambda: dict(ASKED))

    def asking_tool(self) -> FunctionTool:
        """A tool that asks in its own code."""

        def time_off(days: int, tool_context: ToolContext) -> dict[str, Any]:
            """Request time off."""
            if not self.is_confirmed(tool_context):
                return {"status": "waiting"}
            return self._granted(days, tool_context)

        return FunctionTool(time_off)

    def by_tool(self) -> LlmAgent:
        """An agent whose tool asks."""
        return scripted(SCRIPT, [self.asking_tool()])

    def by_callback(self) -> LlmAgent:
        """An agent that asks in its callback."""

        async def before(tool: Any, args: dict[str, Any], tool_context: ToolContext) -> Any:
            return None if self.is_confirmed(tool_context) else {"status": "waiting"}

        return scripted(SCRIPT, [FunctionTool(self.aware())], before_tool_callback=before)

    def by_careless_callback(self) -> LlmAgent:
        """An agent whose callback asks, and lets the call go on."""

        async def before(tool: Any, args: dict[str, Any], tool_context: ToolContext) -> None:
            self.is_confirmed(tool_context)

        return scripted(SCRIPT, [FunctionTool(self.aware())], before_tool_callback=before)

    def by_plugin(self) -> App:
        """An App whose plugin asks."""
        desk = self

        class Asking(BasePlugin):
            async def before_tool_callback(
                self, *, tool: Any, tool_args: dict[str, Any], tool_context: ToolContext
            ) -> dict[str, Any] | None:
                return None if desk.is_confirmed(tool_context) else {"status": "waiting"}

        root = scripted(SCRIPT, [FunctionTool(self.aware())])
        return App(name=root.name, root_agent=root, plugins=[Asking(name="asking")])

    def is_confirmed(self, context: ToolContext) -> bool:
        if context.tool_confirmation is None:
            context.request_confirmation(hint=HINT, payload=self.asked)
            return False
        return True

    def aware(self) -> Callable[..., dict[str, Any]]:
        def time_off(days: int, tool_context: ToolContext, unit: str = "day") -> dict[str, Any]:
            """Request time off."""
            return self._granted(days, tool_context)

        return time_off

    def unaware(self) -> Callable[..., dict[str, Any]]:
        """A tool without a context."""

        def time_off(days: int) -> dict[str, Any]:
            """Request time off."""
            self.payloads.append(None)
            return {"granted": True}

        return time_off

    def _granted(self, days: int, context: ToolContext) -> dict[str, Any]:
        confirmation = context.tool_confirmation
        self.days.append(days)
        self.payloads.append(None if confirmation is None else confirmation.payload)
        return {"granted": True}


ASKING = pytest.mark.parametrize(
    "asking", [Desk.by_tool, Desk.by_callback, Desk.by_careless_callback, Desk.by_plugin]
)


def approval_of(tab: Tab) -> str:
    [card] = tab.cards()
    return str(card["approval"]["id"])


async def wait_executed(tab: Tab, approval_id: str) -> None:
    async with asyncio.timeout(PATIENCE):
        while (await tab.get(f"/api/approvals/{approval_id}"))["state"] != "executed":
            pass


async def decide_elsewhere(tab: Tab, approval_id: str, body: dict[str, Any]) -> Any:
    async with over_socket(tab.address, timeout=60) as http:
        return await http.post(f"/api/approvals/{approval_id}", json=body)


@ASKING
async def test_the_payload_that_was_shown_is_what_the_tool_reads(
    tmp_path: Path, transport: str, asking: Callable[[Desk], Any]
) -> None:
    desk = Desk()
    async with tab_on(asking(desk), transport, tmp_path) as tab:
        await tab.say()
        [card] = tab.cards()
        assert card["approval"]["requestReason"] == HINT
        assert card["approval"]["descriptor"]["payload"] == ASKED
        [listed] = (await tab.get("/api/approvals"))["approvals"]
        assert (listed["hint"], listed["payload"]) == (HINT, ASKED)
        [row] = await tab.rows()
        defaults = {} if asking is Desk.by_tool else {"unit": "day"}
        assert row.args_hash == hash_arguments({"days": 5}, defaults, ASKED)
        assert desk.payloads == []
        await tab.decide()
        assert desk.payloads == [ASKED]
        assert tab.parts("time_off")[0]["output"] == {"granted": True}


@ASKING
async def test_an_edited_payload_is_what_the_tool_reads(
    tmp_path: Path, transport: str, asking: Callable[[Desk], Any]
) -> None:
    desk = Desk()
    async with tab_on(asking(desk), transport, tmp_path) as tab:
        await tab.say()
        approval_id = approval_of(tab)
        await tab.decide(payload={approval_id: FILLED})
        assert desk.payloads == [FILLED]
        assert tab.parts("time_off")[0]["output"] == {"granted": True}
        stored = (await tab.get("/api/chats/c1"))["messages"][-1]
        assert tab.messages[-1]["metadata"]["approvals"] == stored["metadata"]["approvals"]
        assert stored["metadata"]["approvals"][approval_id]["editedPayload"] == FILLED
        shown = await tab.get(f"/api/approvals/{approval_id}")
        assert (shown["payload"], shown["editedPayload"]) == (ASKED, FILLED)


@ASKING
async def test_arguments_and_payload_are_edited_in_one_decision(
    tmp_path: Path, transport: str, asking: Callable[[Desk], Any]
) -> None:
    desk = Desk()
    async with tab_on(asking(desk), transport, tmp_path) as tab:
        await tab.say()
        approval_id = approval_of(tab)
        await tab.decide(payload={approval_id: FILLED}, edits={approval_id: {"days": 4}})
        assert (desk.days, desk.payloads) == ([4], [FILLED])
        [part] = tab.parts("time_off")
        assert part["output"]["edited_by_user"]["arguments"] == {"days": 4}
        trace = tab.messages[-1]["metadata"]["approvals"][approval_id]
        assert (trace["edits"], trace["editedPayload"]) == ({"days": 4}, FILLED)


async def test_a_payload_is_edited_without_the_chat_page(tmp_path: Path, transport: str) -> None:
    desk = Desk()
    async with tab_on(desk.by_tool(), transport, tmp_path) as tab:
        await tab.say()
        approval_id = approval_of(tab)
        yes = {"approved": True, "payload": FILLED}
        assert (await decide_elsewhere(tab, approval_id, yes)).status_code == 202
        assert (await decide_elsewhere(tab, approval_id, yes)).status_code == 202
        other = await decide_elsewhere(tab, approval_id, {"approved": True})
        assert (other.status_code, "already decided" in other.text) == (409, True)
        await wait_executed(tab, approval_id)
        assert desk.payloads == [FILLED]


@pytest.mark.parametrize(
    "payload",
    [
        {**FILLED, "approved_days": "three"},
        {**FILLED, "more": 1},
        {"approved_days": 3, "note": ""},
        {**FILLED, "dates": [1]},
        [FILLED],
    ],
)
async def test_a_payload_of_another_shape_changes_nothing(
    tmp_path: Path, transport: str, payload: Any
) -> None:
    desk = Desk()
    async with tab_on(desk.by_tool(), transport, tmp_path) as tab:
        await tab.say()
        approval_id = approval_of(tab)
        refused = await decide_elsewhere(tab, approval_id, {"approved": True, "payload": payload})
        assert (refused.status_code, "payload of time_off" in refused.text) == (400, True)
        [row] = await tab.rows()
        assert (row.state, desk.payloads) == ("requested", [])


async def test_an_approval_without_a_payload_takes_none(tmp_path: Path, transport: str) -> None:
    desk = Desk(asked=None)
    async with tab_on(desk.by_tool(), transport, tmp_path) as tab:
        await tab.say()
        [card] = tab.cards()
        assert "payload" not in card["approval"]["descriptor"]
        approval_id = approval_of(tab)
        refused = await decide_elsewhere(tab, approval_id, {"approved": True, "payload": FILLED})
        assert refused.status_code == 400
        await tab.decide()
        assert desk.payloads == [None]


@pytest.mark.parametrize("asked", [object(), float("nan"), {"of": 2**60}])
async def test_a_payload_that_cannot_be_shown_is_refused_before_the_question(
    tmp_path: Path, transport: str, asked: Any
) -> None:
    desk = Desk(asked=asked)
    async with tab_on(desk.by_tool(), transport, tmp_path) as tab:
        await tab.say()
        assert (tab.cards(), await tab.rows(), desk.payloads) == ([], [], [])
        [part] = tab.parts("time_off")
        assert part["state"] == "output-error"
        assert "cannot be shown" in part["errorText"]
        assert tab.read[-1]["finishReason"] == "stop"


async def test_a_denial_brings_the_payload_nowhere(tmp_path: Path, transport: str) -> None:
    desk = Desk()
    async with tab_on(desk.by_tool(), transport, tmp_path) as tab:
        await tab.say()
        await tab.decide(approved=False)
        assert desk.payloads == []
        assert tab.parts("time_off")[0]["state"] == "output-denied"


def _long(days: int) -> bool:
    return days > 1


def _with_context(days: int, tool_context: ToolContext) -> bool:
    return days > 1 and bool(tool_context.function_call_id)


async def _async_long(days: int) -> bool:
    return days > 1


async def _async_with_context(days: int, tool_context: ToolContext) -> bool:
    return days > 1 and bool(tool_context.function_call_id)


@pytest.mark.parametrize(
    ("tool", "requirement"),
    [
        (Desk.unaware, True),
        (Desk.unaware, _long),
        (Desk.unaware, _async_long),
        (Desk.aware, True),
        (Desk.aware, _with_context),
        (Desk.aware, _async_with_context),
    ],
)
async def test_every_form_of_require_confirmation_asks_and_runs(
    tmp_path: Path, transport: str, tool: Callable[[Desk], Any], requirement: Any
) -> None:
    desk = Desk()
    gated = FunctionTool(tool(desk), require_confirmation=requirement)
    script = [calls(("time_off", {"days": 1}), ("time_off", {"days": 5})), says("done")]
    async with tab_on(scripted(script, [gated]), transport, tmp_path) as tab:
        await tab.say()
        asked = [card["input"]["days"] for card in tab.cards()]
        assert asked == ([1, 5] if requirement is True else [5])
        assert len(desk.payloads) == 2 - len(asked)
        await tab.decide()
        assert desk.payloads == [None, None]
        assert [part["state"] for part in tab.parts()] == ["output-available"] * 2


async def test_a_predicate_that_takes_no_context_is_not_called_for_a_tool_that_does(
    tmp_path: Path, transport: str
) -> None:
    """ADK: a predicate gets the parameters of its tool, the context included."""
    desk = Desk()
    gated = FunctionTool(desk.aware(), require_confirmation=_long)
    async with tab_on(scripted(SCRIPT, [gated]), transport, tmp_path) as tab:
        await tab.say()
        assert (tab.cards(), desk.payloads) == ([], [])
        assert tab.parts("time_off")[0]["state"] == "output-error"


async def test_a_grant_gives_each_call_its_own_payload(tmp_path: Path, transport: str) -> None:
    desk = Desk()
    script = [*SCRIPT[:1], calls(("time_off", {"days": 7})), says("done")]
    async with tab_on(scripted(script, [desk.asking_tool()]), transport, tmp_path) as tab:
        await tab.say()
        approval_id = approval_of(tab)
        await tab.decide(payload={approval_id: FILLED}, remember={approval_id: "chat"})
        assert desk.payloads == [FILLED, ASKED]
        assert len((await tab.get("/api/approvals"))["approvals"]) == 0
