"""Turns whose process dies: from the last decision on, each event may be the last one stored."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from copy import deepcopy
from functools import wraps
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.agents.llm_agent import LlmAgent
from google.adk.agents.loop_agent import LoopAgent
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.tool_context import ToolContext
from google.genai import types
from sqlalchemy import text

from sluicegate.core.exchanges import exchanges
from sluicegate.engine.chat_engine import ChatEngine
from sluicegate.errors import ToolError
from sluicegate.testing.message_comparison import comparable
from tests.engine.adk_story import Story, call
from tests.engine.lost_topologies import LOST, TO_SHELLS
from tests.engine.talk import Talk, decide
from tests.engine.topologies import RESUMED, delegate
from tests.parts import long_table

if TYPE_CHECKING:
    from google.adk.events.event import Event
    from google.adk.models.llm_request import LlmRequest

    from sluicegate.core.release.base import ApprovalStyle
    from sluicegate.wire.ui_messages import UIMessage
    from tests.engine.topologies import Build

OpenEngine = Callable[..., AbstractAsyncContextManager[ChatEngine]]

pytestmark = [
    pytest.mark.filterwarnings("ignore:The `plugins` argument is deprecated"),  # AgentTool's own
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),
]

TREES: dict[str, Build] = {
    "one agent": lambda s: s.asker("a", "pay_1", "pay_2"),
    "two AgentTools": lambda s: s.talker(
        "root", *delegate("a", "b"), tools=[AgentTool(s.asker("a")), AgentTool(s.asker("b"))]
    ),
    **{name: LOST[name][0] for name in TO_SHELLS},
    **{
        name: RESUMED[name]
        for name in (
            "single_turn: nested",
            "task: two",
            "transfer: child of a child",
            "parallel: with a sequence inside",
            "sequence: around transfers",
            "loop: asking in each round",
            "workflow: fan-out and join",
            "workflow: tool node",
            "tool: a Workflow",
        )
    },
}


async def events_of(engine: ChatEngine, talk: Talk) -> list[Event]:
    session = await engine.resources.session_log.load(talk.key)
    assert session is not None
    return session.events


async def forget(engine: ChatEngine, events: list[Event]) -> None:
    """Delete stored events, as if the process had died before it stored them."""
    ids = [{"id": event.id} for event in events]
    statement = text("DELETE FROM events WHERE id = :id")
    await engine.resources.database.write(
        lambda connection: connection.execute(statement, ids).rowcount
    )


def after_last_decision(events: list[Event]) -> int:
    """The position after the last event of the user."""
    return max(number for number, event in enumerate(events) if event.author == "user") + 1


def shown(message: UIMessage) -> list[Any]:
    """What a message shows, without the ids of calls that a model makes again."""
    return [{**part, "toolCallId": ""} for part in comparable(message)]


class OrderedStory(Story):
    """Its tools run in the event loop, so that those of one step end in their order."""

    def function(self, name: str) -> Callable[[], Any]:
        effect = super().function(name)

        @wraps(effect)
        async def awaited() -> dict[str, str]:
            return effect()

        return awaited


@long_table
@pytest.mark.parametrize("style", ["call", "confirmation"])
@pytest.mark.parametrize("tree", TREES)
async def test_a_turn_goes_on_wherever_its_process_died(
    open_engine: OpenEngine, tree: str, style: ApprovalStyle
) -> None:
    story = OrderedStory(is_stateless=True)
    sent: Any = None
    async with open_engine(TREES[tree](story), approval_style=style) as engine:
        talk = Talk(engine)
        await talk.say("go")
        while talk.pending():
            for part in talk.pending():
                decide(part, approved=True)
            sent = deepcopy(talk.messages[-1])
            await talk.post_last()
        whole, effects = shown(await talk.history()), list(story.effects)
        events = await events_of(engine, talk)
        await forget(engine, events[after_last_decision(events) :])
    for kept in range(after_last_decision(events), len(events) - 1):
        async with open_engine(TREES[tree](story), approval_style=style) as engine:
            talk.engine, talk.messages = engine, [*talk.messages[:1], deepcopy(sent)]
            stored, asked = len(await events_of(engine, talk)), len(story.requests)
            if kept % 2:
                # In place of sending the decisions again.
                talk.messages[-1] = await talk.history()
            turn = await talk.post_last()
            assert not turn.failed, (kept, turn.chunks[-1])
            assert shown(await talk.history()) == whole, kept
            assert shown(talk.messages[-1]) == whole, kept
            assert story.effects == effects
            events = await events_of(engine, talk)
            said = sum(is_answer(event) for event in events[stored:])
            assert len(story.requests) - asked == said, "a stored answer was asked for again"
            assert not exchanges(events)[-1].was_abandoned
            await forget(engine, events[kept + 1 :])


@pytest.mark.parametrize("fails", [False, True], ids=["executed", "failed"])
async def test_what_a_call_did_beside_its_result_is_kept_when_its_event_is_lost(
    open_engine: OpenEngine, *, fails: bool
) -> None:
    story = Story(is_stateless=True)

    async def publish(tool_context: ToolContext) -> str:
        """Publish the text, and end the loop."""
        story.effects.append("publish")
        tool_context.state["published"] = len(story.effects)
        tool_context.state["temp:seen"] = True
        part = types.Part.from_bytes(data=b"text", mime_type="text/plain")
        await tool_context.save_artifact("text.txt", part)
        tool_context.actions.escalate = True
        if fails:
            raise ToolError("The printer is out of paper.")
        return "published"

    tool = FunctionTool(publish, require_confirmation=True)
    agent = LlmAgent(name="a", model=story.model(call("publish"), "a done"), tools=[tool])
    loop = LoopAgent(name="loop", description="l", max_iterations=3, sub_agents=[agent])
    async with open_engine(loop) as engine:
        talk = Talk(engine)
        await talk.say("go")
        decide(talk.pending()[0], approved=True)
        sent = deepcopy(talk.messages[-1])
        await talk.post_last()
        whole, events = shown(await talk.history()), await events_of(engine, talk)
        await forget(engine, events[after_last_decision(events) :])
    async with open_engine(loop) as engine:
        talk.engine, talk.messages = engine, [*talk.messages[:1], sent]
        await talk.post_last()
        assert shown(await talk.history()) == whole
        again = await events_of(engine, talk)
        assert actions_in(again) == actions_in(events) != []
    assert story.effects == ["publish"]


def actions_in(events: list[Event]) -> list[Any]:
    """What calls did beside their results."""
    every = [(e.actions.state_delta, e.actions.artifact_delta, e.actions.escalate) for e in events]
    return [found for found in every if any(found)]


def is_answer(event: Event) -> bool:
    """Whether a model has said this."""
    content = event.content
    asks = any(str(each.name).startswith("adk_") for each in event.get_function_calls())
    return content is not None and content.role == "model" and not asks


def looker(story: Story) -> LlmAgent:
    model = story.model(call("look"), "a done")
    return LlmAgent(name="a", model=model, tools=[story.function("look")])


def handed(story: Story) -> LlmAgent:
    return story.hander("root", a := story.talker("a"), sub_agents=[a])


@pytest.mark.parametrize("build", [looker, handed])
async def test_a_question_sent_again_gets_the_rest_of_its_answer(
    open_engine: OpenEngine, build: Callable[[Story], LlmAgent]
) -> None:
    story = Story(is_stateless=True)
    async with open_engine(build(story)) as engine:
        talk = Talk(engine)
        await talk.say("go")
        whole, events = shown(await talk.history()), await events_of(engine, talk)
    # The process dies after each event that follows the first result.
    for kept in reversed(range(3, len(events))):
        async with open_engine(build(story)) as engine:
            await forget(engine, (await events_of(engine, talk))[kept:])
        async with open_engine(build(story)) as engine:
            again = Talk(engine, chat_id=talk.chat_id, messages=talk.messages[:1])
            turn = await again.post({"message": talk.messages[0]})
            assert shown(turn.message) == whole, kept
            assert shown(await again.history()) == whole, kept
    assert story.effects == ["look"] * (build is looker)


@pytest.mark.parametrize("is_stopped", [False, True], ids=["failed", "stopped"])
async def test_a_turn_that_failed_or_was_stopped_is_not_continued(
    open_engine: OpenEngine, is_stopped: bool
) -> None:
    story = Story(is_stateless=True)
    running: list[Talk] = []

    async def breaks(callback_context: object, llm_request: LlmRequest) -> None:
        if llm_request.contents[-1].role == "model" or not story.effects:
            return
        if is_stopped:
            running[0].running.abort.set()
            await asyncio.sleep(0)
        raise RuntimeError("The model is gone.")

    async with open_engine(story.asker("a", before_model_callback=breaks)) as engine:
        talk = Talk(engine)
        running.append(talk)
        await talk.say("go")
        await talk.approve()
        chat = await engine.get_chat(talk.chat_id, user=talk.user)
        assert chat["status"] == "ready"
        asked = len(story.requests)
        talk.messages = list(chat["messages"])
        assert (await talk.post_last()).failed
        assert (len(story.requests), story.effects) == (asked, ["pay_a"])
