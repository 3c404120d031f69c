"""Random agent trees of everything that ADK runs, with gates anywhere in them.

A seed builds the same tree for plain ADK, without its gates, and for the engine, with them. Some
calls are denied: in plain ADK their tools answer what the model is told of a denial.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.llm_agent import LlmAgent
from google.adk.agents.loop_agent import LoopAgent
from google.adk.agents.parallel_agent import ParallelAgent
from google.adk.agents.sequential_agent import SequentialAgent
from google.adk.tools.agent_tool import AgentTool
from google.adk.workflow import BaseNode, JoinNode, Workflow
from google.genai import types

from tests.engine.adk_story import call
from tests.engine.topologies import Request, dynamic
from tests.engine.tree_world import SKIPS, Lane, Segment, World

_DENIALS: Final = 0.15
_MOST_AGENTS: Final = 5
_DEPTH: Final = 5

_CHILDREN: Final[Mapping[str, Mapping[str, str]]] = {
    "chat": {"called": "called", "single": "single", "flow": "", "transfer": "guest",
             "task": "task", "shell": "node-shell"},
    "guest": {"called": "called", "single": "single", "flow": "", "transfer": "guest",
              "shell": "node-shell"},
    "called": {"called": "called", "single": "single", "flow": "", "transfer": "called",
               "shell": "node-shell"},
    "task": {"called": "called", "single": "single", "flow": "", "task": "task"},
    "single": {"called": "called", "single": "single", "flow": ""},
    "node": {"called": "called", "single": "single", "flow": ""},
    "chat-node": {"called": "called", "single": "single", "flow": "", "task": "task"},
    "step": {"called": "called", "transfer": "step", "shell": "shell"},
    "shell": {"shell": "shell", "agent": "step"},
    "node-shell": {"shell": "node-shell", "agent": "called"},
}  # fmt: skip
"""What an agent at each kind of place may have below it, and what kind of place that is."""

CONSTRUCTS: Final = frozenset(
    ("chat", "shell", "called", "single", "task", "flow", "run_node", "page", "input", "callbacks")
)
"""What a tree is built of, apart from transfers and tools; the root is of one of them."""

_MODES: Final = {"single": "single_turn", "task": "task", "chat-node": "chat"}
_KINDS: Final = ("pay", "pay", "note", "save")
_CALLBACKS: Final = (
    "before_agent_callback",
    "after_agent_callback",
    "before_model_callback",
    "after_model_callback",
    "after_tool_callback",
    SKIPS,
)


@dataclass(frozen=True)
class Place:
    """Where an agent stands: the kind of place, how often it runs there, and its lane."""

    kind: str
    lane: Lane
    rounds: int = 1
    depth: int = _DEPTH

    def below(self, construct: str, slot: int, kind: str, *, concurrent: bool = False) -> Place:
        """A place one level below."""
        lane = (*self.lane, Segment(construct, slot, concurrent))
        return Place(kind, lane, self.rounds, self.depth - 1)


class RandomTree:
    """A tree for a world: its root."""

    def __init__(self, world: World, seed: int, constructs: frozenset[str] = CONSTRUCTS) -> None:
        self._world = world
        self._constructs = constructs
        self._random = random.Random(seed)
        self._count = 0
        self._agents = 0
        self._asks_for_input = False
        self.parallel = 0
        """How many ParallelAgents there are so far."""
        roots = ["chat", "chat", "chat", "shell", "flow"]
        kind = self._random.choice([each for each in roots if self._has(each)])
        place = Place(kind, ())
        self.root: BaseNode
        if kind == "chat":
            self.root = self._agent(place)
        elif kind == "shell":
            self.root = self._shell(place)
        else:
            self.root = self._flow(place)

    def _name(self, kind: str, place: Place) -> str:
        self._count += 1
        name = f"{kind}{self._count}"
        self._world.lanes[name] = place.lane
        return name

    def _has(self, construct: str) -> bool:
        return construct in self._constructs

    def _chance(self, chance: float) -> bool:
        return self._random.random() < chance

    def _may_ask_for_input(self) -> bool:
        """Whether something may ask the user; only one does so, since its tool has ADK's name."""
        return self._has("input") and not self._asks_for_input

    def _may_grow(self, place: Place) -> bool:
        return place.depth > 0 and self._agents < _MOST_AGENTS

    # Agents with a model.

    def _agent(self, place: Place, *, loop: bool = False) -> LlmAgent:
        """An agent that makes some calls, and ends, finishes its task or hands over.

        ``loop``: it ends the loop that it is in.
        """
        self._agents += 1
        name = self._name("a", place)
        agent = _Agent(self, name, place)
        if loop:
            agent.ends_loop()
        else:
            for step in range(self._random.choice([0, 1, 1, 1, 2])):
                agent.calls(step)
        agent.ends()
        return agent.build()

    # Agents that run others.

    def _shell(self, place: Place) -> BaseAgent:
        kind = self._random.choice(["sequence", "parallel", "loop"])
        name = self._name(kind, place)
        concurrent, again = kind == "parallel", 1
        self.parallel += concurrent
        if kind == "loop":
            again = self._random.randint(1, 2 if place.rounds == 1 else 1)
        below = _CHILDREN[place.kind]
        agents: list[BaseAgent] = []
        count = self._random.randint(1 if kind == "loop" else 2, 3)
        ending = kind == "loop" and place.rounds == 1 and again > 1 and self._chance(0.5)
        for slot in range(count):
            inner = place.below(name, slot, below["agent"], concurrent=concurrent)
            inner = Place(inner.kind, inner.lane, inner.rounds * again, inner.depth)
            if ending and slot == count - 1:
                agents.append(self._agent(inner, loop=True))
            elif self._may_grow(inner) and self._chance(0.3):
                agents.append(self._shell(Place(below["shell"], *_rest(inner))))
            else:
                agents.append(self._agent(inner))
        named: dict[str, Any] = {"name": name, "description": name, "sub_agents": agents}
        made: BaseAgent
        if kind == "loop":
            made = LoopAgent(max_iterations=again, **named)
        else:
            made = (SequentialAgent if kind == "sequence" else ParallelAgent)(**named)
        self._world.keep_branches(made)
        return made

    # Workflows.

    def _flow(self, place: Place, *, is_tool: bool = False) -> Workflow:
        name = self._name("flow", place)
        first = place.below(name, 0, "chat-node")
        # ADK: a chat node has no output, so the call of a Workflow in tools never ends.
        begins_with_agent = not place.lane and self._may_grow(first) and self._chance(0.25)
        nodes: list[Any] = [self._agent(first) if begins_with_agent else self._step(first)]
        for slot in range(1, self._random.randint(2, 4)):
            if self._may_grow(place) and self._chance(0.3):
                fan = f"{name}#{slot}"
                within = place.below(name, slot, "flow")
                pair = [self._node(within.below(fan, n, "flow", concurrent=True)) for n in (0, 1)]
                join = JoinNode(name=self._name("join", within))
                nodes += [tuple(pair), join]
            else:
                nodes.append(self._node(place.below(name, slot, "flow")))
        nodes.append(self._step(place.below(name, len(nodes), "flow")))
        settings: dict[str, Any] = {"input_schema": Request} if is_tool else {}
        return Workflow(name=name, description=name, edges=[("START", *nodes)], **settings)

    def _step(self, place: Place) -> BaseNode:
        return self._world.step(self._name("step", place), place.lane)

    def _node(self, place: Place) -> Any:
        kinds = ["step", "agent", "agent", "agent", "shell", "flow"]
        kinds += [kind for kind in ("task", "run_node") if self._has(kind)]
        kinds += ["input"] if self._may_ask_for_input() else []
        kind = self._random.choice(kinds)
        if not self._may_grow(place) or kind == "step":
            return self._step(place)
        if kind == "input":
            self._asks_for_input = True
            return self._world.asking_step(self._name("ask", place))
        if kind == "flow":
            return self._flow(place)
        if kind == "shell":
            return self._shell(Place("node-shell", *_rest(place)))
        if kind == "run_node":
            name = self._name("dynamic", place)
            pair = [place.below(name, n, "node", concurrent=True) for n in (0, 1)]
            made = dynamic(*(self._agent(each) for each in pair[: self._random.randint(1, 2)]))
            made.name = name
            return made
        return self._agent(Place("task" if kind == "task" else "node", *_rest(place)))


class _Agent:
    """An agent that is being built: its turns, its tools and the agents below it."""

    def __init__(self, tree: RandomTree, name: str, place: Place) -> None:
        self._tree, self._name, self._place = tree, name, place
        self._world, self._random = tree._world, tree._random
        self._below = _CHILDREN[place.kind]
        self._turns: list[list[list[types.Part]]] = [[] for _ in range(place.rounds)]
        self._tools: list[Any] = []
        self._agents: list[BaseAgent] = []
        self._notes: list[str] = []
        self._hands = False
        self._said = 0

    def calls(self, number: int) -> None:
        """Have it make some calls in one step."""
        step = f"{self._name}#{number}"
        task = self._place.below(step, 0, "", concurrent=True)
        if self._may_delegate("task") and self._tree._may_grow(task) and self._tree._chance(0.2):
            # ADK: a call that waits beside the delegation of a task never runs.
            calls = [self._delegation("task", task)]
        else:
            calls = [self._call(step, slot) for slot in range(self._random.randint(1, 3))]
        text = self._tree._chance(0.2)
        for round_, turns in enumerate(self._turns):
            turn = [each[round_] for each in calls]
            turns.append([self._sentence("says"), *turn] if text else turn)

    def _may_delegate(self, kind: str) -> bool:
        return kind in self._below and self._tree._has(kind)

    def _call(self, step: str, slot: int) -> list[types.Part]:
        """A call, in each round."""
        place = self._place.below(step, slot, "", concurrent=True)
        kinds = [each for each in ("called", "single", "flow") if self._may_delegate(each)]
        if kinds and self._tree._may_grow(place) and self._tree._chance(0.45):
            return self._delegation(self._random.choice(kinds), place)
        if self._tree._may_ask_for_input() and self._tree._chance(0.04):
            self._tree._asks_for_input = True
            self._tools.append(self._world.input_tool(place.lane))
            return [call(self._world.input_name, message="Which?")] * self._place.rounds
        return self._tool(place)

    def _delegation(self, kind: str, place: Place) -> list[types.Part]:
        inner = Place(self._below[kind], *_rest(place))
        parallel = self._tree.parallel
        if kind == "flow":
            flow = self._tree._flow(inner, is_tool=True)
            self._tools.append(flow)
            name = flow.name
        elif kind == "called" and self._tree._chance(0.3):
            shell = self._tree._shell(Place("shell", *_rest(place)))
            self._tools.append(AgentTool(shell))
            name = shell.name
        else:
            agent = self._tree._agent(inner)
            name = agent.name
            if kind == "called":
                self._tools.append(AgentTool(agent))
            else:
                self._agents.append(agent)
        if self._tree.parallel > parallel:
            self._world.open_results.add(name)
        return [call(name, request=f"please {n}") for n in range(self._place.rounds)]

    def _tool(self, place: Place) -> list[types.Part]:
        gated = self._tree._chance(0.7)
        if self._tree._has("page") and self._tree._chance(0.12):
            name = self._tree._name(f"page_{self._name}_", place)
            self._tools.append(self._world.page_tool(name, place.lane, gated=gated))
        else:
            kind = self._random.choice(_KINDS)
            name = self._tree._name(f"{kind}_{self._name}_", place)
            self._tools.append(self._world.tool(name, kind, place.lane, gated=gated))
            if kind == "note":
                self._notes.append(name)
        return self._numbered(name, gated=gated)

    def _numbered(self, name: str, *, gated: bool) -> list[types.Part]:
        """A call in each round, some of which are denied."""
        for n in range(self._place.rounds):
            if gated and self._tree._chance(_DENIALS):
                self._world.denied.add((name, n))
        return [call(name, n=n) for n in range(self._place.rounds)]

    def ends_loop(self) -> None:
        """Have it end the loop that it is in, in its first round."""
        place, gated = self._place.below(f"{self._name}#0", 0, ""), self._tree._chance(0.7)
        name = self._tree._name(f"exit_{self._name}_", place)
        self._tools.append(self._world.tool(name, "exit", place.lane, gated=gated))
        for turns, made in zip(self._turns, self._numbered(name, gated=gated), strict=True):
            turns.append([made])

    def ends(self) -> None:
        """Have it say something at the end of each round, finish its task or hand over."""
        kinds = [kind for kind in ("transfer", "shell") if kind in self._below]
        place = self._place.below(self._name, 0, "")
        if kinds and self._tree._may_grow(place) and self._tree._chance(0.4):
            self._hands_over(self._random.choice(kinds), place)
            return
        for turns in self._turns:
            if self._place.kind == "task":
                turns.append([call("finish_task", result=f"{self._name} finished")])
            else:
                turns.append([self._sentence("done")])

    def _hands_over(self, kind: str, place: Place) -> None:
        inner = Place(self._below[kind], *_rest(place))
        tree = self._tree
        self._hands = True
        child = tree._shell(inner) if kind == "shell" else tree._agent(inner)
        self._agents.append(child)
        for turns in self._turns:
            turns.append([call("transfer_to_agent", agent_name=child.name)])

    def _sentence(self, verb: str) -> types.Part:
        self._said += 1
        return types.Part(text=f"{self._name} {verb} {self._said}.")

    def _may_have_the_last_word(self) -> bool:
        """Whether a callback after the agent may answer; ADK: a node has one output."""
        return self._place.kind not in (*_MODES, "node")

    def build(self) -> LlmAgent:
        """The agent."""
        kinds = (
            self._random.sample(_CALLBACKS, 2)
            if self._tree._has("callbacks") and self._tree._chance(0.3)
            else []
        )
        if self._place.kind == "task":
            # ADK: a task that a callback skips never ends, and runs again with each answer.
            kinds = [kind for kind in kinds if kind != SKIPS]
        word = self._sentence("done").text or "" if kinds else ""
        mode = _MODES.get(self._place.kind)
        settings: dict[str, Any] = {} if mode is None else {"mode": mode}
        if self._tree._chance(0.3):
            settings["output_key"] = f"out_{self._name}"
        if self._notes:
            settings["instruction"] = " ".join(f"{name} {{n_{name}?}}" for name in self._notes)
        last = word if self._may_have_the_last_word() else ""
        settings.update(self._world.callbacks(self._name, kinds, word, last))
        return LlmAgent(
            name=self._name,
            description=self._name,
            model=self._world.model(self._name, [turn for each in self._turns for turn in each]),
            tools=self._tools,
            sub_agents=self._agents,
            **settings,
        )


def _rest(place: Place) -> tuple[Lane, int, int]:
    return place.lane, place.rounds, place.depth
