"""Random agent trees, and conversations with them in which a person decides everything.

A seed builds the same tree for plain ADK, without its gates, and for the engine, with them. Some
calls are denied: in plain ADK their tools answer what the model is told of a denial.
"""

from __future__ import annotations

import ast
import random
import re
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any, Final

from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.llm_agent import LlmAgent
from google.adk.agents.loop_agent import LoopAgent
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.function_tool import FunctionTool
from google.genai import types

from sluicegate.engine.chat_engine import ChatEngine
from sluicegate.wire.messages import comparable, tool_name
from tests.engine.adk_story import Story, call
from tests.engine.talk import Talk, decide
from tests.engine.test_transfers_to_shells import plain, said
from tests.engine.topologies import delegate, parallel, sequence

OpenEngine = Callable[..., AbstractAsyncContextManager[ChatEngine]]

DENIED: Final = {"status": "denied", "error": "The user denied this call."}
"""What the model is told of a denial."""

_DENIALS: Final = 0.15
_QUOTED: Final = "For context: below is a transcript"
"""Begins what a model is told of other agents."""


class RandomTree:
    """A tree: its root, the calls that are denied, and how they are decided."""

    def __init__(self, story: Story, seed: int) -> None:
        self._story = story
        self._random = random.Random(seed)
        self._count = 0
        self.denied: set[str] = set()
        """The tools whose calls are denied."""
        self.restarts = self._random.random() < 0.3
        """Whether each request finds a new server."""
        self.one_by_one = not self.restarts and self._random.random() < 0.5
        """Whether each decision is a request of its own, in any order."""
        story.is_stateless = self.restarts
        self.has_parallel = False
        """Whether agents run at once: what later ones see of them depends on their order."""
        kind = self._random.choice(["shell", "transfer to a shell", "calls", "calls"])
        if kind == "calls":
            self.root: BaseAgent = self._chatting(3)
        else:
            shell = self._shell(3, 1)
            self.root = shell if kind == "shell" else self._hander(shell, 1)

    def _name(self, kind: str) -> str:
        self._count += 1
        return f"{kind}{self._count}"

    # Transfers, sequences, loops and parallel agents.

    def _agent(self, depth: int, rounds: int) -> BaseAgent:
        kind = self._random.choice(["asker", "asker", "talker", "hander", "shell"])
        if depth <= 0 or kind in ("asker", "talker"):
            return self._leaf(rounds, asks=kind != "talker")
        if kind == "shell":
            return self._shell(depth - 1, rounds)
        return self._hander(self._agent(depth - 1, rounds), rounds)

    def _hander(self, to: BaseAgent, rounds: int) -> LlmAgent:
        name = self._name("h")
        others: list[BaseAgent] = [self._leaf(1, asks=True)] if self._random.random() < 0.3 else []
        turns = [call("transfer_to_agent", agent_name=to.name)] * rounds
        return LlmAgent(
            name=name,
            description=name,
            model=self._story.model(*turns),
            sub_agents=[*others, to],
        )

    def _shell(self, depth: int, rounds: int) -> BaseAgent:
        kind = self._random.choice(["sequence", "parallel", "loop"])
        again = self._random.randint(1, 2) if kind == "loop" else 1
        count = self._random.randint(1 if kind == "loop" else 2, 3 if depth > 1 else 2)
        agents = [self._agent(depth - 1, rounds * again) for _ in range(count)]
        name = self._name(kind)
        if kind == "loop":
            return LoopAgent(
                name=name, description=name, max_iterations=again, sub_agents=list(agents)
            )
        self.has_parallel = self.has_parallel or kind == "parallel"
        made = sequence(*agents) if kind == "sequence" else parallel(*agents)
        made.name = name
        return made

    # Agents that agents call: AgentTools, and single_turn sub-agents.

    def _chatting(self, depth: int) -> LlmAgent:
        """An agent that the user talks to, or that takes the conversation over."""
        if depth > 0 and self._random.random() < 0.3:
            return self._hander(self._chatting(depth - 1), 1)
        return self._caller(depth)

    def _called(self, depth: int, **settings: Any) -> LlmAgent:
        if depth > 0 and self._random.random() < 0.5:
            return self._caller(depth, **settings)
        return self._leaf(1, asks=self._random.random() < 0.8, **settings)

    def _caller(self, depth: int, **settings: Any) -> LlmAgent:
        """An agent that calls others and tools of its own, all at once or one after the other."""
        name = self._name("c")
        tools: list[Any] = []
        singles: list[BaseAgent] = []
        calls: list[types.Part] = []
        for _ in range(self._random.randint(1, 2)):
            if self._random.random() < 0.6:
                agent = self._called(depth - 1)
                tools.append(AgentTool(agent))
            else:
                agent = self._called(depth - 1, mode="single_turn")
                singles.append(agent)
            calls += delegate(agent.name)
        if self._random.random() < 0.4:
            tools.append(self._gated(f"pay_{name}"))
            calls.append(call(f"pay_{name}"))
        self._random.shuffle(calls)
        steps: list[Any] = [calls] if self._random.random() < 0.6 else [[each] for each in calls]
        return LlmAgent(
            name=name,
            description=name,
            model=self._story.model(*steps, f"{name} done."),
            tools=tools,
            sub_agents=singles,
            **settings,
        )

    def _leaf(self, rounds: int, *, asks: bool, **settings: Any) -> LlmAgent:
        name = self._name("a")
        tools = [f"pay_{name}_{n}" for n in range(self._random.randint(1, 2))] if asks else []
        turn: list[Any] = [[call(each) for each in tools], f"{name} done."]
        # The same call is not asked again after a denial (A6).
        return LlmAgent(
            name=name,
            description=name,
            model=self._story.model(*(turn[not asks :] * rounds)),
            tools=[self._gated(each, may_deny=rounds == 1) for each in tools],
            **settings,
        )

    def _gated(self, name: str, *, may_deny: bool = True) -> FunctionTool:
        if may_deny and self._random.random() < _DENIALS:
            self.denied.add(name)
        if name not in self.denied or self._story.has_gates:
            return self._story.gated(name)

        def refused() -> dict[str, str]:
            return DENIED

        refused.__name__ = refused.__qualname__ = name
        refused.__doc__ = f"Do {name}."
        return FunctionTool(refused)


async def decide_all(talk: Talk, tree: RandomTree, order: random.Random) -> None:
    """Decide what waits, once for each request."""
    if tree.one_by_one:
        cards = talk.pending()
        order.shuffle(cards)
        for card in cards:
            said = {"approved": tool_name(card) not in tree.denied}
            asked = card["approval"]["id"]
            await talk.engine.approvals.decide(asked, said, user=talk.user, via="test")
        for running in talk.engine.resources.turns.running_turns():
            await running.done.wait()
        talk.messages[-1] = await talk.history()
        return
    for part in talk.pending():
        decide(part, approved=tool_name(part) not in tree.denied)
    turn = await talk.post_last()
    assert not turn.failed, turn.chunks[-1]


async def converse(
    open_engine: OpenEngine, build: Callable[[], RandomTree], seed: int
) -> tuple[Talk, list[Any]]:
    """Say one thing and decide until nothing waits; returns also the stored last parts."""
    tree, order = build(), random.Random(seed)
    talk: Talk | None = None
    while talk is None or talk.pending():
        async with open_engine(tree.root) as engine:
            if talk is None:
                talk = Talk(engine, order.choice(["deferred", "preview", "progressive"]))
                turn = await talk.say("go")
                assert not turn.failed, turn.chunks[-1]
            talk.engine = engine
            while talk.pending():
                await decide_all(talk, tree, order)
                if tree.restarts:
                    break
            stored = await talk.history()
        if tree.restarts:
            tree = build()
    return talk, list(stored["parts"])


async def play(open_engine: OpenEngine, seed: int) -> None:
    """Compare a conversation in which everything is decided with that of plain ADK.

    Raises:
        AssertionError: Texts, effects, requests of models or the stored message differ.
    """
    free, story = Story(has_gates=False), Story()
    tree = RandomTree(free, seed)
    texts = await plain(tree.root, ["go"])
    talk, stored = await converse(open_engine, lambda: RandomTree(story, seed), seed)
    assert Counter("".join(said(talk)).split(".")) == Counter("".join(texts).split("."))
    assert Counter(story.effects) == Counter(free.effects)
    words = partial(_words_of, with_quotes=not tree.has_parallel)
    assert Counter(map(words, story.requests)) == Counter(map(words, free.requests))
    shown = comparable({**talk.messages[-1], "parts": stored})
    assert comparable(talk.messages[-1]) == shown


def _words_of(request: str, *, with_quotes: bool) -> tuple[str, ...]:
    """A request without the order of its instructions, and of results that came at once.

    ``with_quotes``: with what it quotes of other agents.
    """
    instruction, tools, contents = ast.literal_eval(request)
    own = [each for each in contents if with_quotes or _QUOTED not in repr(each)]
    return tuple(sorted(re.findall(r"\w+", repr((instruction, tools, own)).replace("\\n", " "))))
