"""Agent classes with their own `_run_async_impl`, as ADK's documentation writes them."""

from __future__ import annotations

import asyncio
import logging
import random
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.invocation_context import InvocationContext
from google.adk.agents.llm_agent import LlmAgent
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.tools.agent_tool import AgentTool
from google.adk.utils.context_utils import Aclosing
from google.genai import types
from pydantic import ConfigDict, Field

from sluicegate.engine.agents.repeated_effects import repeated_effect
from sluicegate.engine.agents.survey import survey
from sluicegate.engine.agents.unsupported_agents import refusals
from sluicegate.testing.message_comparison import comparable
from sluicegate.wire.ui_messages import tool_name
from tests.engine.adk_story import Story, call, step, words_of
from tests.engine.talk import Talk, decide
from tests.engine.test_transfers_to_shells import plain, said, with_restarts
from tests.engine.topologies import delegate, flow, parallel, runs_at_once, sequence

if TYPE_CHECKING:
    from sluicegate.engine.chat_engine import ChatEngine

    Build = Callable[[Story], Any]
    OpenEngine = Callable[..., AbstractAsyncContextManager[ChatEngine]]

pytestmark = [
    pytest.mark.filterwarnings("ignore:The `plugins` argument is deprecated"),
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),
]

logger = logging.getLogger("stories")


class StoryFlow(BaseAgent):
    """Runs a writer, an editor, and the writer once more if the editor wants it."""

    writer: BaseAgent
    editor: BaseAgent
    reviewer: BaseAgent

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        async for event in self.writer.run_async(ctx):
            yield event
        if "draft" not in ctx.session.state:
            return
        rounds = ctx.session.state.get("rounds", 0)
        yield self._note(ctx, f"round {rounds}.")
        async for event in self.editor.run_async(ctx):
            yield event
        if ctx.session.state.get("edited") == "editor done" and rounds == 0:
            ctx.session.state["again"] = True
            async for event in self.writer.run_async(ctx):
                yield event
        async for event in self.reviewer.run_async(ctx):
            yield event

    def _note(self, ctx: InvocationContext, text: str) -> Event:
        content = types.Content(role="model", parts=[types.Part(text=text)])
        actions = EventActions(state_delta={"rounds": 1})
        return Event(
            author=self.name, invocation_id=ctx.invocation_id, content=content, actions=actions
        )


class InOrder(BaseAgent):
    """Runs its sub-agents in order, one of them twice."""

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        for agent in [*self.sub_agents, self.sub_agents[0]]:
            async for event in agent.run_async(ctx):
                yield event


def story_flow(story: Story, name: str = "story") -> StoryFlow:
    """The class of ADK's documentation, with a gate in each of its sub-agents."""
    pay = call("pay_writer")
    writer = LlmAgent(
        name="writer",
        model=story.model(pay, "writer done", pay, "writer again"),
        tools=[story.gated("pay_writer")],
        output_key="draft",
    )
    editor = story.asker("editor", output_key="edited")
    reviewer = story.asker("reviewer", "pay_one", "pay_two")
    agents: list[BaseAgent] = [writer, editor, reviewer]
    return StoryFlow(name=name, writer=writer, editor=editor, reviewer=reviewer, sub_agents=agents)


def in_order(story: Story, *agents: BaseAgent) -> InOrder:
    """A class that runs its first sub-agent twice."""
    pay = call("pay_first")
    model = story.model(pay, "first done", pay, "first again")
    first = LlmAgent(name="first", model=model, tools=[story.gated("pay_first")])
    return InOrder(name="own", sub_agents=[first, *agents])


TREES: dict[str, Build] = {
    "the root": story_flow,
    "one agent twice": lambda s: in_order(s, s.asker("b")),
    "around a sequence": lambda s: in_order(s, sequence(s.asker("a"), s.asker("b"))),
    "around parallel agents": lambda s: in_order(s, parallel(s.asker("a"), s.asker("b"))),
    "around another one": lambda s: in_order(s, story_flow(s), s.asker("b")),
    "in a sequence": lambda s: sequence(s.asker("a"), story_flow(s), s.asker("b")),
    "beside another agent": lambda s: parallel(story_flow(s), s.asker("b")),
    "below a transfer": lambda s: s.hander("root", flow_ := story_flow(s), sub_agents=[flow_]),
    "in an AgentTool": lambda s: s.talker(
        "root", *delegate("story"), tools=[AgentTool(story_flow(s))]
    ),
    "a node of a Workflow": lambda s: flow("wf", s.asker("a"), story_flow(s), step("end")),
}


@pytest.mark.parametrize("name", TREES)
async def test_a_conversation_is_that_of_plain_adk_without_the_gates(
    open_engine: OpenEngine, name: str
) -> None:
    free, story = Story(has_gates=False), Story(is_stateless=True)
    texts = await plain(tree := TREES[name](free), ["go"])
    talk = await with_restarts(open_engine, lambda: TREES[name](story), ["go"])
    order, as_compared = (sorted, words_of) if runs_at_once(tree) else (str, str)
    assert order("".join(said(talk))) == order("".join(texts))
    assert Counter(story.effects) == Counter(free.effects)
    assert Counter(map(as_compared, story.requests)) == Counter(map(as_compared, free.requests))


@pytest.mark.parametrize("denied", ["pay_writer", "pay_editor", "pay_one"])
async def test_a_denied_call_does_not_run_and_the_rest_goes_on(
    open_engine: OpenEngine, denied: str
) -> None:
    free, story = Story(has_gates=False), Story(is_stateless=True)
    await plain(story_flow(free), ["go"])
    talk: Talk | None = None
    while talk is None or talk.pending():
        async with open_engine(story_flow(story)) as engine:
            if talk is None:
                talk = Talk(engine)
                await talk.say("go")
                continue
            talk.engine = engine
            for part in talk.pending():
                decide(part, approved=tool_name(part) != denied)
            assert not (await talk.post_last()).failed
            assert comparable(await talk.history()) == comparable(talk.messages[-1])
    assert Counter(story.effects) == Counter(e for e in free.effects if e != denied)


class Moody(InOrder):
    """Decides by what it cannot know after a restart."""

    moods: dict[str, int] = Field(default_factory=dict)

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        agents = self.sub_agents if len(self.moods) == 0 else self.sub_agents[::-1]
        for agent in agents:
            async for event in agent.run_async(ctx):
                yield event


async def test_a_class_that_decides_otherwise_after_an_answer_fails_by_name(
    open_engine: OpenEngine, caplog: pytest.LogCaptureFixture
) -> None:
    story = Story(is_stateless=True)

    def build(**moods: int) -> Moody:
        return Moody(name="own", sub_agents=[story.asker("a"), story.asker("b")], moods=moods)

    async with open_engine(build()) as engine:
        talk = Talk(engine)
        await talk.say("go")
    async with open_engine(build(bad=1)) as engine:
        talk.engine = engine
        decide(talk.pending()[0], approved=True)
        assert (await talk.post_last()).failed
    assert "the agent 'own' ran 'b' after an answer where it had run 'a'" in caplog.text
    assert story.effects == []


async def _waits(agent: BaseAgent, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
    await asyncio.sleep(0)
    yield Event(author=agent.name)


async def _draws(agent: BaseAgent, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
    yield Event(author=random.choice(["a", "b"]))


async def _imports(agent: BaseAgent, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
    import time  # noqa: PLC0415

    yield Event(author=str(time.time()))


async def _writes(agent: BaseAgent, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
    open("/dev/null").close()  # noqa: ASYNC230
    yield Event(author=agent.name)


async def _remembers(agent: Any, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
    agent.description = "x"
    yield Event(author=agent.name)


async def _calls_out(agent: Any, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
    agent.client.post()
    yield Event(author=agent.name)


async def _stores(agent: BaseAgent, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
    yield Event(author=str(ctx.artifact_service))


async def _creates(agent: BaseAgent, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
    async for event in LlmAgent(name="new").run_async(ctx):
        yield event


def _helper() -> None:
    random.random()


async def _by_a_helper(agent: BaseAgent, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
    _helper()
    yield Event(author=agent.name)


async def _only_runs(agent: BaseAgent, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
    logger.info("[%s] begins", agent.name)
    last = None
    for index, each in enumerate(agent.sub_agents):
        async with Aclosing(each.run_async(ctx)) as events:
            async for event in events:
                last = event
                yield event
        if index and last is not None and last.actions.escalate:
            return
    text = str(ctx.session.state.get("mood", "")).strip().lower()
    if isinstance(text, str) and text.startswith("bad"):
        ctx.session.state["again"] = len(agent.sub_agents)
        yield Event(author=agent.name, actions=EventActions(escalate=True))


class Client:
    def post(self) -> None:
        """Send something."""


class Custom(BaseAgent):
    model_config = ConfigDict(arbitrary_types_allowed=True)
    client: Client = Client()


@pytest.mark.parametrize(
    ("code", "effect"),
    [
        (_only_runs, ""),
        (_waits, "uses asyncio"),
        (_draws, "uses random"),
        (_imports, "uses time"),
        (_writes, "uses open"),
        (_remembers, "sets description"),
        (_calls_out, "uses client"),
        (_stores, "uses artifact_service"),
        (_creates, "uses LlmAgent"),
        (_by_a_helper, "uses random"),
    ],
)
async def test_a_class_that_does_more_than_to_run_sub_agents_is_refused_by_name(
    code: Any, effect: str
) -> None:
    kind = type("Special", (Custom,), {"_run_async_impl": code, "__module__": __name__})
    agent = kind(name="own", sub_agents=[Story().asker("a")])
    assert repeated_effect(agent) == effect
    refused = refusals(agent, await survey(agent))
    assert bool(refused) is bool(effect)
    for each in refused:
        assert f"the code of Special runs again after an answer, and it {effect}; let" in each
