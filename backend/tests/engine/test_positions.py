"""Gates wherever an agent can stand: each way to run an agent, with each way to run others.

Each conversation is compared with the one that plain ADK has without the gates: the same texts,
effects and requests of the models, although each request finds a new server.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.agents.llm_agent import LlmAgent
from google.adk.agents.loop_agent import LoopAgent
from google.adk.agents.parallel_agent import ParallelAgent
from google.adk.agents.sequential_agent import SequentialAgent
from google.adk.tools.agent_tool import AgentTool
from google.adk.workflow import BaseNode

from sluicegate.engine.agents.survey import survey
from sluicegate.engine.agents.unsupported_agents import refusals
from sluicegate.testing.message_comparison import comparable
from tests.engine.adk_story import Story, call, step, words_of
from tests.engine.test_transfers_to_shells import plain, said, with_restarts
from tests.engine.topologies import (
    Request,
    delegate,
    dynamic,
    flow,
    looping,
    parallel,
    sequence,
    singles,
    tool_flow,
)
from tests.parts import plays

if TYPE_CHECKING:
    from sluicegate.engine.chat_engine import ChatEngine

    OpenEngine = Callable[..., AbstractAsyncContextManager[ChatEngine]]

pytestmark = [
    pytest.mark.filterwarnings("ignore:The `plugins` argument is deprecated"),  # AgentTool's own
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),
]

Middle = Callable[..., LlmAgent]


def _caller(s: Story, *agents: Any, **settings: Any) -> LlmAgent:
    calls = delegate(*(agent.name for agent in agents))
    return s.talker("m", *calls, tools=[AgentTool(agent) for agent in agents], **settings)


def _hander(s: Story, to: Any, **settings: Any) -> LlmAgent:
    return s.hander("m", to, sub_agents=[to], **settings)


def _tasker(s: Story, name: str, **settings: Any) -> LlmAgent:
    task = s.tasker("t", *delegate("x"), tools=[s.gated("x")])
    return s.talker(name, *delegate("t"), sub_agents=[task], **settings)


def _with_both(s: Story, **settings: Any) -> LlmAgent:
    """An agent that delegates to another one, and transfers to a sequence."""
    model = s.model(delegate("z"), call("transfer_to_agent", agent_name="seq"))
    others = [sequence(s.asker("a"), s.asker("b")), *singles(s, "z")]
    return LlmAgent(name="m", description="m", model=model, sub_agents=others, **settings)


def _loop(s: Story) -> LoopAgent:
    return LoopAgent(name="loop", description="l", max_iterations=2, sub_agents=[looping(s)])


def _around_parallel(s: Story) -> SequentialAgent:
    return sequence(parallel(s.asker("a"), s.asker("b")), s.asker("c"))


MIDDLES: dict[str, Middle] = {
    "a gate": lambda s, **k: s.asker("m", **k),
    "a transfer": lambda s, **k: _hander(s, s.asker("a"), **k),
    "single_turn agents": lambda s, **k: s.talker(
        "m", *delegate("a", "b"), sub_agents=singles(s, "a", "b"), **k
    ),
    "a task": lambda s, **k: _tasker(s, "m", **k),
    "a Workflow in tools": lambda s, **k: s.talker(
        "m", *delegate("flow"), tools=[tool_flow(s)], **k
    ),
    "two AgentTools": lambda s, **k: _caller(s, s.asker("a"), s.asker("b"), **k),
    "an AgentTool of a sequence": lambda s, **k: _caller(s, _around_parallel(s), **k),
    "an AgentTool of a loop": lambda s, **k: _caller(s, _loop(s), **k),
    "an AgentTool that transfers": lambda s, **k: _caller(
        s, s.hander("n", a := s.asker("a"), sub_agents=[a]), **k
    ),
    "an AgentTool with a single_turn agent": lambda s, **k: _caller(
        s, s.talker("n", *delegate("a"), sub_agents=singles(s, "a")), **k
    ),
    "an AgentTool with a task": lambda s, **k: _caller(s, _tasker(s, "n"), **k),
    "a transfer to a sequence": lambda s, **k: _hander(s, _around_parallel(s), **k),
    "a transfer to a loop": lambda s, **k: _hander(s, _loop(s), **k),
    "a single_turn agent and a sequence": _with_both,
}
"""What the agent in the middle does."""


def _then(s: Story, middle: LlmAgent) -> SequentialAgent:
    return SequentialAgent(name="top", description="t", sub_agents=[middle, s.talker("last")])


def _beside(s: Story, middle: LlmAgent) -> ParallelAgent:
    return ParallelAgent(name="top", description="t", sub_agents=[middle, s.asker("other")])


def _calls(s: Story, agent: Any) -> LlmAgent:
    return s.talker("root", *delegate(agent.name), tools=[AgentTool(agent)])


def _in_tools(s: Story, middle: LlmAgent) -> LlmAgent:
    inner = flow("wf", step("prep", {"k": 1}), middle, step("end"), input_schema=Request)
    return s.talker("root", *delegate("wf"), tools=[inner])


PLACES: dict[str, Callable[[Story, Middle], BaseNode]] = {
    "the root": lambda s, m: m(s),
    "a transfer": lambda s, m: s.hander("root", a := m(s), sub_agents=[a]),
    "a task": lambda s, m: s.talker("root", *delegate("m"), sub_agents=[m(s, mode="task")]),
    "a single_turn agent": lambda s, m: s.talker(
        "root", *delegate("m"), sub_agents=[m(s, mode="single_turn")]
    ),
    "a node of a Workflow": lambda s, m: flow("wf", m(s), step("end")),
    "a chat node of a Workflow": lambda s, m: flow("wf", m(s, mode="chat"), step("end")),
    "a node of a Workflow in tools": lambda s, m: _in_tools(s, m(s)),
    "a function of a Workflow": lambda s, m: flow("wf", dynamic(m(s)), step("end")),
    "a step": lambda s, m: _then(s, m(s)),
    "a step that is transferred to": lambda s, m: _then(
        s, s.hander("n0", a := m(s), sub_agents=[a])
    ),
    "a branch": lambda s, m: _beside(s, m(s)),
    "a sequence that is transferred to": lambda s, m: s.hander(
        "root", top := _then(s, m(s)), sub_agents=[top]
    ),
    "parallel agents that are transferred to": lambda s, m: s.hander(
        "root", top := _beside(s, m(s)), sub_agents=[top]
    ),
    "a sequence in a Workflow": lambda s, m: flow("wf", _then(s, m(s)), step("end")),
    "parallel agents in a Workflow": lambda s, m: flow("wf", _beside(s, m(s)), step("end")),
    "an AgentTool": lambda s, m: _calls(s, m(s)),
    "an AgentTool of a sequence": lambda s, m: _calls(s, _then(s, m(s))),
    "an AgentTool of parallel agents": lambda s, m: _calls(
        s, SequentialAgent(name="both", sub_agents=[_beside(s, m(s)), s.talker("last")])
    ),
}
"""Where the agent in the middle stands."""

LOST: set[tuple[str, str]] = {
    ("a task", "a transfer"),
    ("a chat node of a Workflow", "a transfer"),
    *((place, "an AgentTool with a task") for place in PLACES),
    ("an AgentTool", "a task"),
}
"""What plain ADK runs and the engine refuses."""


TWICE = {
    ("a node of a Workflow", "a transfer"),
    ("a node of a Workflow in tools", "a transfer"),
    ("a function of a Workflow", "a transfer"),
}
"""Where ADK runs the agent again that it has transferred to."""

EVERY_TREE = sorted({(place, middle) for place in PLACES for middle in MIDDLES} - TWICE)
_PLACE_NUMBERS = {place: number for number, place in enumerate(PLACES)}
_MIDDLE_NUMBERS = {middle: number for number, middle in enumerate(MIDDLES)}

TREES = [
    (place, middle)
    for place, middle in EVERY_TREE
    if plays(_PLACE_NUMBERS[place] + _MIDDLE_NUMBERS[middle])
]
"""Each third of them has each place and each middle."""


async def _runs(story: Story, root: BaseNode) -> list[str] | None:
    """The texts of plain ADK without gates; None if it does not run the tree."""
    try:
        texts = await plain(root, ["go"])
    except Exception:  # noqa: BLE001 - ADK fails in many ways where it cannot run an agent
        return None
    failed = any("Error" in request for request in story.requests)
    return None if failed or not _has_run(story) else texts


def _has_run(story: Story) -> bool:
    return bool(set(story.effects) - {"pay_other"})


@pytest.mark.parametrize(("place", "middle"), TREES)
async def test_a_gate_is_served_wherever_adk_runs_an_agent_without_one(
    open_engine: OpenEngine, place: str, middle: str
) -> None:
    free = Story(has_gates=False, is_stateless=True)
    story = Story(is_stateless=True)

    def build(of: Story) -> BaseNode:
        return PLACES[place](of, MIDDLES[middle])

    texts = await _runs(free, build(free))
    gated = build(story)
    refused = refusals(gated, await survey(gated))
    if texts is None or (place, middle) in LOST:
        assert refused
        return
    assert not refused
    talk = await with_restarts(open_engine, lambda: build(story), ["go"])
    assert sorted("".join(said(talk))) == sorted("".join(texts))
    assert Counter(story.effects) == Counter(free.effects)
    assert Counter(map(words_of, story.requests)) == Counter(map(words_of, free.requests))
    if place != "a task":  # Its agent in the middle never finishes the task.
        async with open_engine(build(story)) as talk.engine:
            assert comparable(await talk.history()) == comparable(talk.messages[-1])
