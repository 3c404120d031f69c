"""Agent trees with gated tools in several branches: those that ADK resumes and those it loses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.llm_agent import LlmAgent
from google.adk.agents.loop_agent import LoopAgent
from google.adk.agents.parallel_agent import ParallelAgent
from google.adk.agents.sequential_agent import SequentialAgent
from google.adk.workflow import BaseNode, JoinNode, Workflow, node
from pydantic import BaseModel

from tests.engine.adk_story import Story, call, step

Build = Callable[[Story], BaseNode]


class Request(BaseModel):
    """The input of a Workflow that is used as a tool."""

    request: str


def flow(name: str, *nodes: Any, **settings: Any) -> Workflow:
    """A Workflow of nodes in a row; a tuple runs its nodes at once."""
    return Workflow(name=name, description=name, edges=[("START", *nodes)], **settings)


def runs_at_once(agent: BaseNode) -> bool:
    """Whether agents run at once in a tree: their events are stored in any order."""
    below = getattr(agent, "sub_agents", ())
    return isinstance(agent, ParallelAgent) or any(map(runs_at_once, below))


def fan(story: Story, *names: str) -> tuple[tuple[LlmAgent, ...], JoinNode]:
    return tuple(story.asker(name) for name in names), JoinNode(name="join")


def singles(story: Story, *names: str) -> list[Any]:
    return [story.asker(name, mode="single_turn") for name in names]


def delegate(*names: str) -> list[Any]:
    return [call(name, request="please") for name in names]


def _twice(story: Story, name: str, **settings: Any) -> LlmAgent:
    """An agent that calls one gated tool, then another."""
    tools = [f"pay_{name}1", f"pay_{name}2"]
    model = story.model(*(call(tool) for tool in tools), f"{name} done")
    gated: list[Any] = [story.gated(tool) for tool in tools]
    return LlmAgent(name=name, description=name, model=model, tools=gated, **settings)


def looping(story: Story) -> LlmAgent:
    model = story.model(call("pay_a"), "once", call("pay_a"), "a done")
    return LlmAgent(name="a", model=model, tools=[story.gated("pay_a")])


def dynamic(*agents: BaseAgent) -> BaseNode:
    @node(rerun_on_resume=True)
    async def dynamic(ctx: Any, node_input: Any) -> dict[str, Any]:
        runs = (ctx.run_node(each, node_input="go", use_sub_branch=True) for each in agents)
        return dict(zip([each.name for each in agents], await asyncio.gather(*runs), strict=True))

    assert isinstance(dynamic, BaseNode)
    return dynamic


def _asking_node(story: Story, name: str) -> BaseNode:
    def pay(request: str) -> dict[str, str]:
        story.effects.append(name)
        return {"did": request}

    made = node(pay, name=name, require_confirmation=True)
    assert isinstance(made, BaseNode)
    return made


def _state_node(story: Story) -> BaseNode:
    def pay(node_input: Any) -> dict[str, str]:
        story.effects.append("pay")
        return {"did": "pay"}

    made = node(pay, require_confirmation=True)
    assert isinstance(made, BaseNode)
    return made


def _worker(story: Story) -> Workflow:
    turns = (call("pay_w"), call("pay_w"), "w done", "w done")
    worker = LlmAgent(
        name="w", model=story.model(*turns), tools=[story.gated("pay_w")], parallel_worker=True
    )
    return flow("wf", step("list", ["one", "two"]), worker, step("end"))


def tool_flow(story: Story, *nodes: Any) -> Workflow:
    row = nodes or (story.gated("pay_t"),)
    return flow("flow", step("prep", {"k": 1}), *row, step("end"), input_schema=Request)


def sequence(*agents: Any) -> SequentialAgent:
    return SequentialAgent(name="seq", description="A sequence.", sub_agents=list(agents))


def parallel(*agents: Any, name: str = "par") -> ParallelAgent:
    return ParallelAgent(name=name, description="At once.", sub_agents=list(agents))


RESUMED: dict[str, Build] = {
    "single_turn: two": lambda s: s.talker(
        "root", *delegate("a", "b"), sub_agents=singles(s, "a", "b")
    ),
    "single_turn: three": lambda s: s.talker(
        "root", *delegate("a", "b", "c"), sub_agents=singles(s, "a", "b", "c")
    ),
    "single_turn: two, each asking twice in sequence": lambda s: s.talker(
        "root",
        *delegate("a", "b"),
        sub_agents=[_twice(s, each, mode="single_turn") for each in ("a", "b")],
    ),
    "single_turn: two, each asking for two at once": lambda s: s.talker(
        "root",
        *delegate("a", "b"),
        sub_agents=[s.asker(x, f"pay_{x}1", f"pay_{x}2", mode="single_turn") for x in "ab"],
    ),
    "single_turn: one asks once, one twice": lambda s: s.talker(
        "root",
        *delegate("a", "b"),
        sub_agents=[*singles(s, "a"), _twice(s, "b", mode="single_turn")],
    ),
    "single_turn: beside the parent's own gate": lambda s: s.talker(
        "root",
        *delegate("a"),
        call("pay_root"),
        tools=[s.gated("pay_root")],
        sub_agents=singles(s, "a"),
    ),
    "single_turn: beside a free tool": lambda s: s.talker(
        "root",
        *delegate("a"),
        call("look"),
        tools=[s.function("look")],
        sub_agents=singles(s, "a"),
    ),
    "single_turn: nested": lambda s: s.talker(
        "root",
        *delegate("a", "b"),
        sub_agents=[
            s.talker("a", *delegate("c"), sub_agents=singles(s, "c"), mode="single_turn"),
            *singles(s, "b"),
        ],
    ),
    "single_turn: below a single_turn agent": lambda s: s.talker(
        "root",
        *delegate("a"),
        sub_agents=[s.talker("a", *delegate("c"), sub_agents=singles(s, "c"), mode="single_turn")],
    ),
    "single_turn: below another one, beside a free tool": lambda s: s.talker(
        "root",
        *delegate("a"),
        sub_agents=[
            s.talker(
                "a",
                *delegate("c"),
                call("look"),
                tools=[s.function("look")],
                sub_agents=singles(s, "c"),
                mode="single_turn",
            )
        ],
    ),
    "single_turn: a second call after an approval": lambda s: LlmAgent(
        name="root",
        description="Root.",
        model=s.model(*delegate("a"), *delegate("a"), "root done"),
        sub_agents=[
            LlmAgent(
                name="a",
                description="Does a.",
                model=s.model(call("pay_a"), "a done", call("pay_a"), "a done"),
                tools=[s.gated("pay_a")],
                mode="single_turn",
            )
        ],
    ),
    "single_turn: with a Workflow in tools": lambda s: s.talker(
        "root",
        *delegate("m"),
        sub_agents=[
            s.talker("m", *delegate("flow"), tools=[tool_flow(s)], mode="single_turn"),
        ],
    ),
    "task: two": lambda s: s.talker(
        "root",
        *delegate("a", "b"),
        sub_agents=[s.tasker(x, call(f"pay_{x}"), tools=[s.gated(f"pay_{x}")]) for x in "ab"],
    ),
    "task: with two single_turn agents": lambda s: s.talker(
        "root",
        *delegate("t"),
        sub_agents=[s.tasker("t", *delegate("a", "b"), sub_agents=singles(s, "a", "b"))],
    ),
    "transfer: child": lambda s: s.hander("root", a := s.asker("a"), sub_agents=[a]),
    "transfer: child of a child": lambda s: s.hander(
        "root", m := s.hander("m", a := s.asker("a"), sub_agents=[a]), sub_agents=[m]
    ),
    "transfer: child with two single_turn agents": lambda s: s.hander(
        "root",
        m := s.talker("m", *delegate("a", "b"), sub_agents=singles(s, "a", "b")),
        sub_agents=[m],
    ),
    "parallel: two": lambda s: parallel(s.asker("a"), s.asker("b")),
    "parallel: three": lambda s: parallel(*(s.asker(each) for each in "abc")),
    "parallel: each asking for two at once": lambda s: parallel(
        *(s.asker(each, f"pay_{each}1", f"pay_{each}2") for each in "ab")
    ),
    "parallel: one asks once, one twice": lambda s: parallel(s.asker("a"), _twice(s, "b")),
    "parallel: nested": lambda s: parallel(
        s.asker("a"), parallel(s.asker("b"), s.asker("c"), name="inner")
    ),
    "parallel: with a sequence inside": lambda s: parallel(
        s.asker("a"), sequence(s.asker("b"), s.asker("c"))
    ),
    "sequence: gates in first and second": lambda s: sequence(
        s.asker("a"), s.asker("b"), s.talker("last")
    ),
    "sequence: around parallel": lambda s: sequence(
        s.talker("first"), parallel(s.asker("a"), s.asker("b")), s.talker("last")
    ),
    "sequence: around transfers": lambda s: sequence(
        s.hander("m", a := s.asker("a"), sub_agents=[a]), s.talker("last")
    ),
    "sequence: around a transfer to parallel": lambda s: sequence(
        s.hander("m", p := parallel(s.asker("a"), s.asker("b")), sub_agents=[p]), s.talker("last")
    ),
    "loop: asking in each round": lambda s: LoopAgent(
        name="loop", max_iterations=2, sub_agents=[looping(s)]
    ),
    "workflow: fan-out and join": lambda s: flow("wf", *fan(s, "a", "b"), step("end")),
    "workflow: agents in a row": lambda s: flow("wf", s.asker("a"), s.asker("b"), step("end")),
    "workflow: one asks once, one twice": lambda s: flow(
        "wf", (s.asker("a"), _twice(s, "b")), JoinNode(name="join"), step("end")
    ),
    "workflow: tool node": lambda s: flow("wf", step("prep", {}), s.gated("pay"), step("end")),
    "workflow: two tool nodes at once": lambda s: flow(
        "wf",
        step("prep", {"k": 1}),
        (s.gated("pay_a"), s.gated("pay_b")),
        JoinNode(name="join"),
        step("end"),
    ),
    "workflow: function node": lambda s: flow(
        "wf", step("prep", {"request": "x"}), _state_node(s), step("end")
    ),
    "workflow: agent beside tool node": lambda s: flow(
        "wf",
        step("prep", {"k": 1}),
        (s.asker("a"), s.gated("pay_t")),
        JoinNode(name="join"),
        step("end"),
    ),
    "workflow: nested beside tool node": lambda s: flow(
        "wf",
        step("prep", {"k": 1}),
        (flow("inner", *fan(s, "a", "b")), s.gated("pay_t")),
        JoinNode(name="outer"),
        step("end"),
    ),
    "workflow: task agent": lambda s: flow(
        "wf", s.tasker("t", call("pay_t"), tools=[s.gated("pay_t")]), step("end")
    ),
    "workflow: chat agent with two single_turn agents": lambda s: flow(
        "wf", s.talker("m", *delegate("a", "b"), sub_agents=singles(s, "a", "b"), mode="chat")
    ),
    "workflow: parallel worker": _worker,
    "workflow: agents run by a function": lambda s: flow(
        "wf", dynamic(s.asker("a"), s.asker("b")), step("end")
    ),
    "tool: a Workflow": lambda s: s.talker("root", *delegate("flow"), tools=[tool_flow(s)]),
    "tool: a Workflow beside the agent's own gate": lambda s: s.talker(
        "root", *delegate("flow"), call("pay_root"), tools=[tool_flow(s), s.gated("pay_root")]
    ),
    "tool: a Workflow that fans out": lambda s: s.talker(
        "root", *delegate("flow"), tools=[tool_flow(s, *fan(s, "a", "b"))]
    ),
    "tool: two function nodes": lambda s: s.talker(
        "root", *delegate("p", "q"), tools=[_asking_node(s, "p"), _asking_node(s, "q")]
    ),
}
