"""What ADK keeps of an agent only during one run, and an agent that waits must not lose.

Each conversation is compared with the one that plain ADK has without the gates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from google.adk.agents.llm_agent import LlmAgent
from google.adk.agents.loop_agent import LoopAgent
from google.adk.agents.parallel_agent import ParallelAgent
from google.adk.tools.agent_tool import AgentTool
from google.genai import types

from tests.engine.adk_story import call
from tests.engine.topologies import delegate
from tests.engine.tree_oracle import compare
from tests.engine.tree_world import Segment, World

if TYPE_CHECKING:
    from collections.abc import Callable

    from google.adk.agents.base_agent import BaseAgent

    from tests.engine.tree_oracle import OpenEngine

    Build = Callable[[World], BaseAgent]

pytestmark = [
    pytest.mark.filterwarnings("ignore:The `plugins` argument is deprecated"),  # AgentTool's own
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),
]


def _agent(world: World, name: str, *turns: list[Any], **settings: Any) -> LlmAgent:
    """An agent that plays turns; a tool of it is named by its kind, and is gated but for "exit"."""
    world.lanes[name] = (Segment(name, 0),)
    names = {part.function_call.name for turn in turns for part in turn if part.function_call}
    tools = [
        world.tool(each, each.partition("_")[0], (Segment(name, 1),), gated="exit" not in each)
        for each in sorted(names)
        if "_" in each and each != "transfer_to_agent"
    ]
    model = world.model(name, [list(turn) for turn in turns])
    return LlmAgent(
        name=name,
        description=name,
        model=model,
        tools=[*tools, *settings.pop("tools", [])],
        **settings,
    )


def _says(name: str, number: int, verb: str = "done") -> types.Part:
    return types.Part(text=f"{name} {verb} {number}.")


def _leaving(world: World, *steps: list[Any], **settings: Any) -> LoopAgent:
    """A loop that its agent ends before, or while, it waits."""
    round_ = [*steps, [_says("a", 1)]]
    agent = _agent(world, "a", *round_, *round_, **settings)
    rest = _agent(world, "b", [_says("b", 1)], [_says("b", 2)])
    return LoopAgent(name="loop", description="l", max_iterations=2, sub_agents=[agent, rest])


def _called_leaving(world: World) -> LlmAgent:
    loop = _leaving(world, [call("exit_a", n=0)], [call("pay_a", n=0)])
    return _agent(world, "root", delegate("loop"), [_says("root", 1)], tools=[AgentTool(loop)])


def _inner_loop(world: World) -> LoopAgent:
    inner = _leaving(world, [call("exit_a", n=0)], [call("pay_a", n=0)])
    last = _agent(world, "c", [_says("c", 1)], [_says("c", 2)])
    return LoopAgent(name="outer", description="o", max_iterations=2, sub_agents=[inner, last])


def _left_by_a_called_agent(world: World) -> LoopAgent:
    """An agent that is called ends no loop around its caller."""
    inner_turns = [turn for n in range(2) for turn in ([call("exit_x", n=n)], [_says("x", n)])]
    inner = _agent(world, "x", *inner_turns)
    rounds = [
        ([call("x", request=f"please {n}")], [call("pay_a", n=n)], [_says("a", n)])
        for n in range(2)
    ]
    turns = [turn for each in rounds for turn in each]
    agent = _agent(world, "a", *turns, tools=[AgentTool(inner)])
    return LoopAgent(name="loop", description="l", max_iterations=2, sub_agents=[agent])


def _parallel(world: World) -> ParallelAgent:
    """Parallel agents that ask, in two rounds."""
    agents: list[BaseAgent] = []
    for slot, name in enumerate("ab"):
        rounds = [([call(f"pay_{name}", n=n)], [_says(name, n)]) for n in range(2)]
        agents.append(_agent(world, name, *(turn for each in rounds for turn in each)))
        world.lanes[name] = world.lanes[f"pay_{name}"] = (Segment("par", slot, is_concurrent=True),)
    return ParallelAgent(name="par", description="p", sub_agents=agents)


def _parallel_in_a_loop(world: World) -> LoopAgent:
    agents: list[BaseAgent] = [_parallel(world)]
    return LoopAgent(name="loop", description="l", max_iterations=2, sub_agents=agents)


def _parallel_in_a_called_loop(world: World) -> LlmAgent:
    loop = _parallel_in_a_loop(world)
    return _agent(world, "root", delegate("loop"), [_says("root", 1)], tools=[AgentTool(loop)])


def _parallel_called_twice(world: World) -> LlmAgent:
    calls = [[call("par", request=f"please {n}")] for n in range(2)]
    tools = [AgentTool(_parallel(world))]
    return _agent(world, "root", *calls, [_says("root", 1)], tools=tools)


TREES: dict[str, Build] = {
    "parallel agents in each round of a loop": _parallel_in_a_loop,
    "parallel agents in each round of a loop that is called": _parallel_in_a_called_loop,
    "parallel agents that are called twice": _parallel_called_twice,
    "ended before a call that waits": lambda w: _leaving(
        w, [call("exit_a", n=0)], [call("pay_a", n=0)]
    ),
    "ended beside a call that waits": lambda w: _leaving(
        w, [call("exit_a", n=0), call("pay_a", n=0)]
    ),
    "ended in a loop that is called": _called_leaving,
    "ended in an inner loop": _inner_loop,
    "a loop around an agent that is called and ends its own": _left_by_a_called_agent,
    "a text beside a call that waits": lambda w: _agent(
        w,
        "a",
        [_says("a", 1, "says"), call("pay_a", n=0)],
        [_says("a", 2, "says"), call("pay_a", n=1)],
        [_says("a", 3)],
        output_key="out",
    ),
    "a text beside a call that waits, in each round of a loop": lambda w: LoopAgent(
        name="loop",
        description="l",
        max_iterations=2,
        sub_agents=[
            _agent(
                w,
                "a",
                [_says("a", 1, "says"), call("pay_a", n=0)],
                [_says("a", 2)],
                [_says("a", 3, "says"), call("pay_a", n=1)],
                [_says("a", 4)],
                output_key="out",
            )
        ],
    ),
}


SEEDS = {"at once": 3, "one by one, each at a new server": 4}


@pytest.mark.parametrize("decided", SEEDS)
@pytest.mark.parametrize("name", TREES)
async def test_a_run_that_waits_remembers_what_it_has_done(
    open_engine: OpenEngine, name: str, decided: str
) -> None:
    await compare(open_engine, TREES[name], SEEDS[decided])
