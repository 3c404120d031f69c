"""Agent trees through the engine: one message, every tool once, the same live and stored (T2)."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.agents.llm_agent import LlmAgent
from google.adk.agents.parallel_agent import ParallelAgent
from google.adk.agents.sequential_agent import SequentialAgent

from sluicegate.engine.client_request_options import RequestingClient
from sluicegate.replay import ScriptedModel
from sluicegate.testing.message_comparison import comparable
from sluicegate.wire.reducer import reduce_chunks
from sluicegate.wire.ui_messages import is_tool_part, tool_name
from tests.agents.topologies import TOPOLOGIES
from tests.engine.stage import Counted, calls, read, says, words
from tests.engine.talk import Talk, Turn, decide

if TYPE_CHECKING:
    from pathlib import Path

    from sluicegate.core.release.policies import ReleasePolicy
    from tests.engine.stage import Open

ANSWERABLE = sorted(TOPOLOGIES)
WORDS = {
    "agent_tool": "The boss is done.",
    "transfer": "One moment. I pay. The cashier is done.",
    "single_turn": "The clerk is done.The manager is done.",
    "two_single_turn": "The left hand is done.The right hand is done.The director is done.",
    "sequential": "The first is done.The last is done.",
    "parallel": "The first is done.The second is done.",
    "sequential_around_parallel": "The first is done.The second is done.The last is done.",
    "workflow_node": "The last is done.",
    "workflow_input": "The last is done.",
    "workflow_fan_out": "The first is done.The second is done.The last is done.",
}


def paid(effects: Path) -> list[float]:
    return sorted(json.loads(line)["args"]["amount"] for line in effects.read_text().splitlines())


def give_input(talk: Talk) -> None:
    for part in talk.messages[-1]["parts"]:
        if is_tool_part(part) and tool_name(part) == "adk_request_input":
            part["state"], part["output"] = "output-available", {"result": "blue"}


async def check_history(talk: Talk, turn: Turn) -> None:
    stored = await talk.history()
    assert stored["id"] == turn.message["id"]
    assert comparable(stored) == comparable(turn.message)


@pytest.mark.parametrize(
    ("release", "style"), [("deferred", "call"), ("progressive", "confirmation")]
)
@pytest.mark.parametrize("name", ANSWERABLE)
async def test_every_gated_tool_of_a_tree_is_requested_once_and_runs_once(
    open_stage: Open, effects: Path, name: str, release: ReleasePolicy, style: str
) -> None:
    engine = await open_stage(TOPOLOGIES[name](), approval_style=style)
    talk = Talk(engine, release)
    first = await talk.say("pay what is due")
    assert first.finish_reason == "tool-calls"
    assert paid(effects) == []
    await check_history(talk, first)
    give_input(talk)
    gates = len(talk.pending())
    last = await talk.approve()
    assert last.finish_reason == "stop"
    assert paid(effects) == [1.0, 2.0][:gates]
    assert Counter(words(last.message)) == Counter(WORDS[name])
    await check_history(talk, last)
    chat = await engine.get_chat(talk.chat_id, user=talk.user)
    assert [message["role"] for message in chat["messages"]] == ["user", "assistant"]
    assert chat["status"] == "ready"


@pytest.mark.parametrize(
    "name", ["transfer", "sequential_around_parallel", "two_single_turn", "workflow_node"]
)
async def test_a_denial_reaches_the_model_anywhere_in_the_tree(
    open_stage: Open, effects: Path, name: str
) -> None:
    talk = Talk(await open_stage(TOPOLOGIES[name]()))
    await talk.say("pay what is due")
    last = await talk.answer(approved=False)
    assert last.finish_reason == "stop"
    assert paid(effects) == []
    states = {p["state"] for p in last.message["parts"] if p["type"] == "tool-pay"}
    assert states == {"output-denied"}
    await check_history(talk, last)


@pytest.mark.parametrize(
    ("name", "backwards"),
    [("parallel", True), ("two_single_turn", True), ("workflow_fan_out", False)],
)
async def test_approvals_of_several_branches_may_be_decided_separately(
    open_stage: Open, effects: Path, name: str, backwards: bool
) -> None:
    talk = Talk(await open_stage(TOPOLOGIES[name]()))
    await talk.say("pay what is due")
    cards = talk.pending()[:: -1 if backwards else 1]
    decide(cards[0], approved=True)
    assert (await talk.post_last()).failed
    assert paid(effects) == []
    decide(talk.pending()[0], approved=False)
    last = await talk.post_last()
    assert last.finish_reason == "stop"
    assert paid(effects) == [cards[0]["input"]["amount"]]
    await check_history(talk, last)


@pytest.mark.parametrize("name", ["parallel", "workflow_node"])
async def test_a_new_message_supersedes_the_approvals_of_a_tree(
    open_stage: Open, effects: Path, name: str
) -> None:
    talk = Talk(await open_stage(TOPOLOGIES[name]()))
    await talk.say("pay what is due")
    second = await talk.say("pay again")
    assert second.finish_reason == "tool-calls"
    last = await talk.approve()
    assert last.finish_reason == "stop"
    assert len(paid(effects)) == len(set(paid(effects)))
    chat = await talk.engine.get_chat(talk.chat_id, user=talk.user)
    old = chat["messages"][1]["parts"]
    assert {p["state"] for p in old if p["type"] == "tool-pay"} == {"output-denied"}
    await check_history(talk, last)


@dataclass
class AtOnce:
    """Three agents that speak at once, in pieces that interleave by chance, and one after them."""

    seed: int
    counted: Counted = field(default_factory=Counted)
    pieces: int = 0
    """The number of partial events after which ``said`` is set."""
    said: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)

    async def sleep(self, seconds: float) -> None:
        """The wait of the model between two partial events."""
        self.pieces -= 1
        if self.pieces == 0:
            self.said.set()
        for _ in range(self._chance.randrange(6)):
            await asyncio.sleep(0)

    def tree(self) -> SequentialAgent:
        """The agents; two of them pay."""
        gates = {"one": [("pay", {"n": 1})], "two": [("pay", {"n": 2})], "three": []}
        scenarios: list[Any] = [{"match": "", "agent": "last", "responses": [says("That is all.")]}]
        for name, gated in gates.items():
            begins = {
                "parts": [
                    {"thought": f"{name} thinks "},
                    *calls(*gated, text=f"{name} begins. ")["parts"],
                ]
            }
            scenarios.append(
                {"match": "", "agent": name, "responses": [begins, says(f"{name} ends. ")]}
            )
        model = ScriptedModel.from_data({"scenarios": scenarios})
        model = model.model_copy(update={"sleep": self.sleep})
        tools: list[Any] = [self.counted.tool()]
        members: Any = [LlmAgent(name=name, model=model, tools=tools) for name in gates]
        at_once = ParallelAgent(name="at_once", sub_agents=members)
        return SequentialAgent(name="all", sub_agents=[at_once, LlmAgent(name="last", model=model)])


@pytest.mark.parametrize("release", ["deferred", "progressive"])
@pytest.mark.parametrize("seed", range(3))
async def test_the_output_of_concurrent_agents_is_serialized(
    open_stage: Open, seed: int, release: ReleasePolicy
) -> None:
    """However their pieces interleave: each block is whole, history has the same order."""
    at_once = AtOnce(seed)
    talk = Talk(await open_stage(at_once.tree()), release)
    await check_history(talk, await talk.say("go"))
    reader = await talk.start(answered(talk))
    other = await talk.engine.resume(talk.chat_id, user=talk.user, client=RequestingClient(7))
    assert other is not None
    joined = asyncio.create_task(read(other))
    turn = await talk.read(reader)
    await check_history(talk, turn)
    assert comparable(reduce_chunks(await joined)) == comparable(turn.message)
    assert sorted(at_once.counted.runs) == [1, 2]
    for sentence in ("one begins. ", "one ends. ", "two ends. ", "three begins. ", "That is all."):
        assert sentence in words(turn.message)


@pytest.mark.parametrize("release", ["deferred", "progressive"])
@pytest.mark.parametrize("pieces", [1, 3])
async def test_concurrent_agents_may_be_stopped_in_the_middle(
    open_stage: Open, pieces: int, release: ReleasePolicy
) -> None:
    at_once = AtOnce(pieces)
    talk = Talk(await open_stage(at_once.tree()), release)
    await talk.say("go")
    at_once.pieces = pieces
    reading = asyncio.create_task(read(await talk.start(answered(talk))))
    await at_once.said.wait()
    await talk.engine.stop(talk.chat_id, user=talk.user)
    turn = talk.take(await reading)
    assert turn.finish_reason == "other"
    await check_history(talk, turn)
    after = await talk.say("go on")
    assert after.finish_reason == "tool-calls"
    await check_history(talk, after)


def answered(talk: Talk) -> dict[str, Any]:
    for part in talk.pending():
        decide(part, approved=True)
    last = talk.messages[-1]
    return {"message": last, "messageId": last["id"]}


async def test_an_approval_request_names_its_agent(open_stage: Open) -> None:
    talk = Talk(await open_stage(TOPOLOGIES["parallel"]()))
    turn = await talk.say("pay what is due")
    for message in (turn.message, await talk.history()):
        asked = [part["approval"] for part in message["parts"] if "approval" in part]
        assert [each["descriptor"]["agent"] for each in asked] == [
            "side_by_side/first",
            "side_by_side/second",
        ]
