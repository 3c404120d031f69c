"""What ADK keeps of an agent only during one run, and an agent that waits must not lose.

Each conversation is compared with the one that plain ADK has without the gates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest
from google.adk.agents.llm_agent import LlmAgent
from google.adk.agents.loop_agent import LoopAgent
from google.adk.agents.parallel_agent import ParallelAgent
from google.adk.agents.sequential_agent import SequentialAgent
from google.adk.apps.app import App, ResumabilityConfig
from google.adk.events.request_input import RequestInput
from google.adk.runners import InMemoryRunner
from google.adk.tools.agent_tool import AgentTool
from google.adk.workflow import JoinNode, Workflow
from google.genai import types

from sluicegate.core.event_reading import INPUT
from tests.engine.adk_story import call
from tests.engine.topologies import Request, delegate, dynamic
from tests.engine.tree_oracle import compare
from tests.engine.tree_world import Segment, World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from google.adk.agents.base_agent import BaseAgent
    from google.adk.workflow import BaseNode

    from tests.engine.tree_oracle import OpenEngine

    Build = Callable[[World], BaseNode]

pytestmark = [
    pytest.mark.filterwarnings("ignore:The `plugins` argument is deprecated"),  # AgentTool's own
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),
]


_UNGATED: Final = frozenset(("exit", "free"))


def _agent(world: World, name: str, *turns: list[Any], **settings: Any) -> LlmAgent:
    """An agent that plays turns; its tools are named by kind, and gated but for exits and free."""
    world.lanes[name] = (Segment(name, 0),)
    names = {part.function_call.name for turn in turns for part in turn if part.function_call}
    place = (Segment(name, 1),)
    tools = [
        world.page_tool(each, place, gated="free" not in each)
        if each.startswith("page_")
        else world.tool(
            each, each.partition("_")[0], place, gated=not _UNGATED & set(each.split("_"))
        )
        for each in sorted(names)
        if "_" in each and each not in ("transfer_to_agent", "finish_task")
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


def _handing_over_to_parallel(world: World) -> SequentialAgent:
    """The last event before all wait is the result of a call beside one of the page."""
    beside = [call("pay_free", n=1), call("page_free", n=0)]
    agents: list[BaseAgent] = [
        _agent(world, "b", [call("pay_b", n=0)], [_says("b", 1)]),
        _agent(world, "c", [call("pay_free", n=0)], beside, [_says("c", 1)]),
    ]
    for slot, names in enumerate((("b", "pay_b"), ("c", "pay_free", "page_free"))):
        for name in names:
            world.lanes[name] = (Segment("par", slot, is_concurrent=True),)
    par = ParallelAgent(name="par", description="p", sub_agents=agents)
    turn = [call("transfer_to_agent", agent_name="par")]
    first: BaseAgent = _agent(world, "a", turn, sub_agents=[par])
    return SequentialAgent(name="seq", description="s", sub_agents=[first])


def _parallel_called_twice(world: World) -> LlmAgent:
    calls = [[call("par", request=f"please {n}")] for n in range(2)]
    tools = [AgentTool(_parallel(world))]
    return _agent(world, "root", *calls, [_says("root", 1)], tools=tools)


def _page_beside_one_that_asks_again(world: World) -> Workflow:
    """Nodes at the same time: one has ended after a call of the page, the other asks again."""
    pair = (
        _agent(world, "a", [call("page_a", n=0)], [_says("a", 1)]),
        _agent(world, "b", [call("pay_b", n=0)], [call("pay_b", n=1)], [_says("b", 1)]),
    )
    for slot, (name, tool) in enumerate((("a", "page_a"), ("b", "pay_b"))):
        world.lanes[name] = world.lanes[tool] = (Segment("fan", slot, is_concurrent=True),)
    join, end = JoinNode(name="join"), world.step("end", (Segment("end", 2),))
    return Workflow(name="flow", edges=[("START", pair, join, end)])


def _page_in_a_called_agent_of_a_task(world: World) -> LlmAgent:
    """A page's answer reaches an agent that is called inside an agent with a scope of its own."""
    inner = _agent(world, "x", [call("page_free", n=0)], [_says("x", 1)])
    turns = (delegate("x"), [call("finish_task", result="one finished")])
    one = _agent(world, "one", *turns, tools=[AgentTool(inner)], mode="task")
    return _agent(world, "root", delegate("one"), [_says("root", 1)], sub_agents=[one])


def _parallel_in_a_workflow_called_twice(world: World) -> LlmAgent:
    """Parallel agents that have ended in the first call of a Workflow run again in the second."""
    begin, end = (world.step(name, (Segment(name, 1),)) for name in ("begin", "end"))
    flow = Workflow(
        name="flow",
        description="f",
        input_schema=Request,
        edges=[("START", begin, _parallel(world), end)],
    )
    calls = [[call("flow", request=f"please {n}")] for n in range(2)]
    return _agent(world, "root", *calls, [_says("root", 1)], tools=[flow])


def _page_in_a_task_inside_a_task(world: World) -> LlmAgent:
    """A page's answer reaches the task that asked, though the task around it has written since."""
    inner = _agent(
        world,
        "t",
        [call("page_free", n=0)],
        [call("finish_task", result="t finished")],
        mode="task",
    )
    begin, end = (world.step(name, (Segment(name, 1),)) for name in ("begin", "end"))
    flow = Workflow(
        name="flow", description="f", input_schema=Request, edges=[("START", begin, inner, end)]
    )
    turns = ([*delegate("flow"), call("pay_free", n=0)], [call("finish_task", result="a finished")])
    outer = _agent(world, "a", *turns, tools=[flow], mode="task")
    for slot, name in enumerate(("flow", "pay_free")):
        world.lanes[name] = (Segment("step", slot, is_concurrent=True),)
    return _agent(world, "root", delegate("a"), [_says("root", 1)], sub_agents=[outer])


def _text_beside_a_task(world: World) -> LlmAgent:
    task = _agent(
        world, "t", [call("pay_t", n=0)], [call("finish_task", result="t finished")], mode="task"
    )
    return _agent(
        world,
        "root",
        [_says("root", 1, "says"), *delegate("t")],
        [_says("root", 2)],
        sub_agents=[task],
        output_key="out",
    )


def _run_at_once_by_a_function(world: World) -> Workflow:
    """A function runs two agents, one of which asks when the other already waits."""
    slow = _agent(world, "x", [call("pay_x", n=0)], [_says("x", 1)])
    pair = (
        _agent(world, "a", [call("pay_a", n=0)], [_says("a", 1)]),
        _agent(world, "b", delegate("x"), [_says("b", 1)], tools=[AgentTool(slow)]),
    )
    for slot, names in enumerate((("a", "pay_a"), ("b", "x", "pay_x"))):
        for name in names:
            world.lanes[name] = (Segment("pair", slot, is_concurrent=True),)
    end = world.step("end", (Segment("end", 2),))
    return Workflow(name="flow", edges=[("START", dynamic(*pair), end)])


def _handed_over_before_in_a_called_workflow(world: World) -> LlmAgent:
    """An agent that has handed over in a round waits for an agent that it calls in the next one."""
    inner = [([call("pay_x", n=n)], [_says("x", n)]) for n in range(2)]
    called = _agent(world, "x", *(turn for each in inner for turn in each))
    last = [([call("pay_c", n=n)], [_says("c", n)]) for n in range(2)]
    next_agent = _agent(world, "c", *(turn for each in last for turn in each))
    rounds = [(delegate("x"), [call("transfer_to_agent", agent_name="c")]) for _ in range(2)]
    agent = _agent(
        world,
        "a",
        *(turn for each in rounds for turn in each),
        tools=[AgentTool(called)],
        sub_agents=[next_agent],
    )
    loop = LoopAgent(name="loop", description="l", max_iterations=2, sub_agents=[agent])
    begin, end = (world.step(name, (Segment(name, 1),)) for name in ("begin", "end"))
    flow = Workflow(
        name="flow", description="f", input_schema=Request, edges=[("START", begin, loop, end)]
    )
    return _agent(world, "root", delegate("flow"), [_says("root", 1)], tools=[flow])


def _handed_over_before_in_a_workflow(world: World) -> Workflow:
    """An agent that has handed over in a round waits for a call of its own in the next one."""
    last = [([call("pay_c", n=n)], [_says("c", n)]) for n in range(2)]
    next_agent = _agent(world, "c", *(turn for each in last for turn in each))
    rounds = [([call("pay_a", n=n)], [call("transfer_to_agent", agent_name="c")]) for n in range(2)]
    turns = (turn for each in rounds for turn in each)
    agent = _agent(world, "a", *turns, sub_agents=[next_agent])
    loop = LoopAgent(name="loop", description="l", max_iterations=2, sub_agents=[agent])
    begin, end = (world.step(name, (Segment(name, 1),)) for name in ("begin", "end"))
    return Workflow(name="flow", edges=[("START", begin, loop, end)])


def _task_of_a_task_in_a_workflow_of_a_called_agent(world: World) -> LlmAgent:
    """The task of a node delegates another one, and reads its result as that of its own call."""
    inner = _agent(world, "u", [call("finish_task", result="u finished")], mode="task")
    turns = (delegate("u"), [call("pay_t", n=0)], [call("finish_task", result="t finished")])
    task = _agent(world, "t", *turns, sub_agents=[inner], mode="task")
    begin, end = (world.step(name, (Segment(name, 1),)) for name in ("begin", "end"))
    flow = Workflow(
        name="flow", description="f", input_schema=Request, edges=[("START", begin, task, end)]
    )
    called = _agent(world, "a", delegate("flow"), [_says("a", 1)], tools=[flow])
    return _agent(world, "root", delegate("a"), [_says("root", 1)], tools=[AgentTool(called)])


TREES: dict[str, Build] = {
    "a task that a task delegates, in a Workflow of a called agent": (
        _task_of_a_task_in_a_workflow_of_a_called_agent
    ),
    "an agent that handed over in a round before, in a Workflow that is called": (
        _handed_over_before_in_a_called_workflow
    ),
    "an agent that handed over in a round before, in a Workflow": (
        _handed_over_before_in_a_workflow
    ),
    "agents that a function runs at once": _run_at_once_by_a_function,
    "a call of the page that has ended beside one that waits again": (
        _page_beside_one_that_asks_again
    ),
    "a call of the page in an agent that is called in a task": (_page_in_a_called_agent_of_a_task),
    "a call of the page in a task inside another one": _page_in_a_task_inside_a_task,
    "a text beside the delegation of a task": _text_beside_a_task,
    "parallel agents in each round of a loop": _parallel_in_a_loop,
    "parallel agents in each round of a loop that is called": _parallel_in_a_called_loop,
    "parallel agents in a Workflow that is called twice": _parallel_in_a_workflow_called_twice,
    "parallel agents that are handed over to": _handing_over_to_parallel,
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


async def test_a_task_that_a_callback_skips_begins_again_with_each_answer() -> None:
    skips = 0

    def skip(callback_context: Any) -> types.Content:
        nonlocal skips
        skips += 1
        return types.Content(role="model", parts=[types.Part(text="skipped")])

    def ask(node_input: Any) -> Iterator[RequestInput]:
        yield RequestInput(message="Which?", interrupt_id="which", response_schema=None)

    task = LlmAgent(name="task", mode="task", model="unused", before_agent_callback=skip)
    root = Workflow(name="flow", edges=[("START", (ask, task))])
    app = App(
        name="plain", root_agent=root, resumability_config=ResumabilityConfig(is_resumable=True)
    )
    async with InMemoryRunner(app=app) as runner:
        await runner.session_service.create_session(app_name="plain", user_id="u", session_id="s")
        answer = types.FunctionResponse(id="which", name=INPUT, response={"result": "blue"})
        for part in (types.Part(text="go"), types.Part(function_response=answer)):
            message = types.Content(role="user", parts=[part])
            async for _ in runner.run_async(user_id="u", session_id="s", new_message=message):
                pass
    assert skips == 2
