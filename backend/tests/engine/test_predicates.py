"""A tool's predicate is called as often as by a bare Runner of ADK."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from google.adk.agents.llm_agent import LlmAgent
from google.adk.events.event import Event
from google.adk.runners import InMemoryRunner
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.tool_context import ToolContext
from google.genai import types

from sluicegate.core.event_reading import CONFIRMATION
from sluicegate.tools import gated, typed_tool
from tests.engine.stage import Open, calls, part_of, says, scripted
from tests.engine.talk import Talk


@dataclass
class RecordedPredicates:
    """Predicates of the three kinds that ADK knows; each call is recorded."""

    requires: bool
    calls: list[int] = field(default_factory=list)

    def _answer(self, n: int) -> bool:
        self.calls.append(n)
        return self.requires

    def synchronous(self) -> Callable[..., Any]:
        def predicate(n: int) -> bool:
            return self._answer(n)

        return predicate

    def asynchronous(self) -> Callable[..., Any]:
        async def predicate(n: int) -> bool:
            return self._answer(n)

        return predicate

    def with_context(self) -> Callable[..., Any]:
        async def predicate(n: int, tool_context: ToolContext) -> bool:
            assert tool_context.function_call_id
            return self._answer(n)

        return predicate


async def pay(n: int) -> dict[str, int]:
    """Pay.

    Args:
        n: How much.
    """
    return {"paid": n}


async def pay_in_context(n: int, tool_context: ToolContext) -> dict[str, int]:
    """Pay."""
    return await pay(n)


pay_in_context.__name__ = "pay"


class Pay(BaseTool):
    """A tool whose class decides per call."""

    def __init__(self, asked: RecordedPredicates) -> None:
        super().__init__(name="pay", description="Pay.")
        self._predicate = asked.synchronous()

    def _get_declaration(self) -> types.FunctionDeclaration:
        return types.FunctionDeclaration(name="pay", parameters_json_schema={"type": "object"})

    async def check_require_confirmation(
        self, args: dict[str, Any], tool_context: ToolContext
    ) -> bool:
        return bool(self._predicate(**args))

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        return await pay(**args)


TOOLS: dict[str, Callable[[RecordedPredicates], BaseTool]] = {
    "synchronous": lambda asked: FunctionTool(pay, require_confirmation=asked.synchronous()),
    "asynchronous": lambda asked: FunctionTool(pay, require_confirmation=asked.asynchronous()),
    "with a context": lambda asked: FunctionTool(
        pay_in_context, require_confirmation=asked.with_context()
    ),
    "typed": lambda asked: typed_tool(pay, require_confirmation=asked.synchronous()),
    "of gated": lambda asked: gated(pay, require_confirmation=asked.synchronous()),
    "of the class": Pay,
}


def agent(tool: BaseTool) -> LlmAgent:
    return scripted([calls(("pay", {"n": 3})), says("Done.")], [tool])


async def by_adk(tool: BaseTool, *, approves: bool) -> None:
    """Request and approve with a bare Runner."""
    async with InMemoryRunner(agent(tool), app_name="app") as runner:
        await runner.session_service.create_session(app_name="app", user_id="u", session_id="s")

        async def run(part: types.Part) -> list[Event]:
            message = types.Content(role="user", parts=[part])
            events = runner.run_async(user_id="u", session_id="s", new_message=message)
            return [event async for event in events]

        events = await run(types.Part(text="pay"))
        if approves:
            [request] = [
                call
                for event in events
                for call in event.get_function_calls()
                if call.name == CONFIRMATION
            ]
            answer = types.FunctionResponse(
                id=request.id, name=CONFIRMATION, response={"confirmed": True}
            )
            events = await run(types.Part(function_response=answer))
        results = [r.response for event in events for r in event.get_function_responses()]
        assert results == [{"paid": 3}]


@pytest.mark.parametrize("requires", [True, False])
@pytest.mark.parametrize("kind", TOOLS)
async def test_a_predicate_is_called_as_often_as_under_adk(
    open_stage: Open, kind: str, requires: bool
) -> None:
    expected, actual = RecordedPredicates(requires), RecordedPredicates(requires)
    await by_adk(TOOLS[kind](expected), approves=requires)

    talk = Talk(await open_stage(agent(TOOLS[kind](actual))))
    turn = await talk.say("pay")
    if requires:
        assert len(talk.pending()) == 1
        turn = await talk.approve()

    assert part_of(turn.message, "pay")["output"] == {"paid": 3}
    assert actual.calls == expected.calls
    assert actual.calls


@pytest.mark.parametrize("kind", TOOLS)
async def test_a_call_above_the_limits_is_refused_without_another_call_of_its_predicate(
    open_stage: Open, kind: str
) -> None:
    asked = RecordedPredicates(requires=True)
    two = scripted(
        [calls(("pay", {"n": 1}), ("pay", {"n": 2})), says("Done.")], [TOOLS[kind](asked)]
    )
    talk = Talk(await open_stage(two, max_requests_per_turn=1))

    await talk.say("pay")

    assert len(talk.pending()) == 1
    assert sorted(asked.calls) == [1, 2]


async def test_the_model_continues_after_a_call_that_is_refused_by_the_policy(
    open_stage: Open,
) -> None:
    async def never(call: Any, user: str) -> str:
        return "payments are closed"

    asked = RecordedPredicates(requires=True)
    tool = FunctionTool(pay, require_confirmation=asked.synchronous())
    talk = Talk(await open_stage(agent(tool), policy=never))

    turn = await talk.say("pay")

    assert part_of(turn.message, "pay")["errorText"] == "Not run: payments are closed"
    assert turn.message["parts"][-1]["text"] == "Done."
    assert asked.calls == [3]
