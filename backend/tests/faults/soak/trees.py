"""Processes that are killed in trees of agents, and ones that continue there."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.llm_agent import LlmAgent
from google.adk.agents.loop_agent import LoopAgent
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.tool_context import ToolContext
from google.adk.workflow import BaseNode

from sluicegate.core.chat_and_turn_keys import ChatKey
from sluicegate.engine.chat_engine import ChatEngine
from sluicegate.testing.message_comparison import comparable
from sluicegate.wire.ui_messages import is_tool_part
from tests.engine.adk_story import Story, call, step
from tests.engine.lost_topologies import LOST
from tests.engine.talk import Talk, decide
from tests.engine.test_transfers_to_shells import plain
from tests.engine.topologies import delegate, flow, parallel, sequence, singles
from tests.faults.kill_points import POINTS
from tests.faults.promises import DoubleEffect, LostDecision
from tests.faults.soak.child import Child, ChildError
from tests.faults.soak.stores import LEFT, Databases, opened, when_released
from tests.faults.soak.tally import Tally, failure
from tests.stores.builders import end_leases

PATIENCE: Final = 120.0


def _asking_twice(story: Story, name: str) -> Any:
    tools = [story.gated(f"pay_{name}"), story.gated(f"pay_more_{name}")]
    turns = [call(tool.name) for tool in tools]
    return story.asker(name).model_copy(
        update={"model": story.model(*turns, f"{name} done"), "tools": tools}
    )


def _beside(story: Story) -> BaseAgent:
    """Two agents that are called at once, of which one asks again."""
    tools = [AgentTool(story.asker("a")), AgentTool(_asking_twice(story, "b"))]
    return story.talker("root", *delegate("a", "b"), tools=tools)


def _nested(story: Story) -> BaseAgent:
    """An agent in an agent in an AgentTool, beside a ``single_turn`` agent."""
    middle = story.talker("m", *delegate("a"), tools=[AgentTool(_asking_twice(story, "a"))])
    return story.talker(
        "root", *delegate("m", "c"), tools=[AgentTool(middle)], sub_agents=singles(story, "c")
    )


def _reviewed(story: Story) -> BaseAgent:
    """A writer and a reviewer in a loop, of which the second ends it with approval.

    In its last round, since whether it has ended may be unknown after a kill.
    """

    def publish(tool_context: ToolContext) -> dict[str, str]:
        """Publish the text, and end the loop."""
        story.effects.append("publish")
        tool_context.actions.escalate = True
        return {"did": "publish"}

    turns = (call("note_reviewer"), "Again.", call("publish"), "Good.")
    reviewer = LlmAgent(
        name="reviewer",
        description="Reviews.",
        model=story.model(*turns),
        tools=[
            story.gated("note_reviewer"),
            FunctionTool(publish, require_confirmation=story.has_gates),
        ],
    )
    writer = LlmAgent(name="writer", description="Writes.", model=story.model("One.", "Two."))
    loop = LoopAgent(name="loop", description="l", max_iterations=2, sub_agents=[writer, reviewer])
    return story.hander("root", loop, sub_agents=[loop])


def _node(story: Story) -> BaseNode:
    """A sequence as node of a Workflow, between two functions."""
    return flow(
        "wf", step("prep", {"k": 1}), sequence(story.asker("a"), story.asker("b")), step("end")
    )


TREES: Final[dict[str, tuple[Callable[[Story], BaseNode], int]]] = {
    "a transfer to a sequence": (LOST["a transfer to a sequence"][0], 2),
    "a transfer to parallel agents": (LOST["a transfer to parallel agents"][0], 1),
    "a transfer to a loop": (LOST["a transfer to a loop"][0], 2),
    "two AgentTools": (_beside, 2),
    "nested AgentTools": (_nested, 2),
    "a loop with a reviewer": (_reviewed, 2),
    "a sequence as node of a Workflow": (_node, 2),
    "parallel agents": (lambda s: parallel(s.asker("a"), s.asker("b")), 1),
}
"""Trees, and how many times a person decides in them."""

KILLED_AT: Final = tuple(point for point in POINTS if point not in ("P6", "P8", "P9"))
"""The models of these trees answer at once, so none is killed in the middle of an answer (P6)."""


class Lines:
    """Lines in a file, which processes append to; a list as far as a `Story` needs one."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def append(self, line: str) -> None:
        """Append a line."""
        descriptor = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(descriptor, f"{json.dumps(line)}\n".encode())
        os.close(descriptor)

    def read(self) -> list[str]:
        """All lines so far."""
        text = self._file.read_text() if self._file.exists() else ""
        return [json.loads(line) for line in text.splitlines()]


@dataclass(frozen=True)
class Run:
    """One process that dies in one chat, before or after a first decision."""

    tree: str
    chat: str
    point: str
    rounds: int
    url: str
    folder: Path

    @property
    def page(self) -> Path:
        """The file with the client's messages when the process dies."""
        return self.folder / "page.json"

    @property
    def effects(self) -> Lines:
        return Lines(self.folder / "effects")

    @property
    def requests(self) -> Lines:
        """What the models were asked."""
        return Lines(self.folder / "requests")

    def build(self) -> Any:
        """The tree; its models know from the history what they said."""
        story: Any = Story(is_stateless=True)
        story.effects, story.requests = self.effects, self.requests
        return TREES[self.tree][0](story)

    def talk(self, engine: ChatEngine) -> Talk:
        """The client, with the messages that it had."""
        messages = json.loads(self.page.read_text()) if self.page.exists() else []
        return Talk(engine, chat_id=self.chat, messages=messages)


def kill(databases: Databases, tree: str, count: int) -> Tally:
    """Kill processes at each point of a tree and continue after each of them."""
    tally = Tally(f"kill in {tree}, {databases.kind}")
    for number in range(count):
        point = KILLED_AT[number % len(KILLED_AT)]
        rounds = number // len(KILLED_AT) % TREES[tree][1]
        name = f"{tree.replace(' ', '-')}-{number}"
        folder = databases.folder / f"{name}.files"
        folder.mkdir()
        run = Run(tree, name, point, rounds, databases.url(name), folder)
        try:
            Child(_die, run).wait_for_death(PATIENCE)
            failures = Child(_continue, run).result(PATIENCE)
        except ChildError as error:
            failures = [failure(error, f"{point} in {tree}")]
        tally.add(failures, runs=1)
    return tally


async def _die(run: Run) -> None:
    async with opened(run.url, run.build(), run.folder) as engine:
        talk = run.talk(engine)
        await talk.say("go")
        for _ in range(run.rounds):
            await talk.approve()
        for part in talk.pending():
            decide(part, approved=True)
        run.page.write_text(json.dumps(talk.messages))
        POINTS[run.point]()
        await talk.post_last()


async def _continue(run: Run) -> list[tuple[str, str]]:
    try:
        async with opened(run.url, run.build(), run.folder) as engine:
            await end_leases(engine.resources.database, after=LEFT)
            await _check(engine, run)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is counted
        return [failure(error, f"{run.point} after {run.rounds} in {run.tree}")]
    return []


async def _check(engine: ChatEngine, run: Run) -> None:
    """The client sends its decisions again, and decides what else is asked."""
    free = Story(has_gates=False, is_stateless=True)
    texts = await plain(TREES[run.tree][0](free), ["go"])
    talk = run.talk(engine)
    lost = len(run.requests.read()) - await _answers(engine, talk)
    turn = await when_released(talk.post_last)
    while talk.pending():
        turn = await talk.approve()
    assert not turn.failed, "the answer ends in an error"
    rows = await engine.resources.ledger.rows(_key(engine, talk))
    unknown = sum(row.state == "unknown" for row in rows)
    _check_effects(Counter(run.effects.read()), Counter(free.effects), unknown)
    asked, expected = len(run.requests.read()), len(free.requests) + lost
    assert asked <= expected, f"{asked} requests of models instead of {expected}"
    message = await talk.history()
    said = "".join(part["text"] for part in message["parts"] if part["type"] == "text")
    if Counter(said) != Counter("".join(texts)):
        raise LostDecision(f"the answer is {said!r} instead of {texts}")
    assert comparable(message) == comparable(talk.messages[-1]), "the history differs"
    still_open = [
        part for part in message["parts"] if is_tool_part(part) and not _has_ended(part["state"])
    ]
    if still_open:
        raise LostDecision(f"still open: {still_open}")


def _check_effects(found: Counter[str], expected: Counter[str], unknown: int) -> None:
    """``unknown`` calls were claimed when the process died, and may not have run."""
    if found - expected:
        raise DoubleEffect(f"{found - expected} more than expected")
    if (expected - found).total() > unknown:
        raise LostDecision(f"{expected - found} did not run")


async def _answers(engine: ChatEngine, talk: Talk) -> int:
    """How many answers of models the log holds."""
    session = await engine.resources.session_log.load(_key(engine, talk))
    assert session is not None
    return sum(
        event.content is not None
        and event.content.role == "model"
        and not any(str(each.name).startswith("adk_") for each in event.get_function_calls())
        for event in session.events
    )


def _key(engine: ChatEngine, talk: Talk) -> ChatKey:
    return ChatKey(engine.resources.app, talk.user, talk.chat_id)


def _has_ended(state: str) -> bool:
    return state in ("output-available", "output-error", "output-denied")
