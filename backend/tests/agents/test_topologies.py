"""Each tree, confirmed in the only way without loss in ADK: branch by branch, then one run."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
from google.adk.agents.llm_agent import LlmAgent

from tests.agents.conversation import Conversation, Question, results
from tests.agents.topologies import SCRIPT, TOPOLOGIES, agent_tool

USER_TEXT = "pay what is due"


def amounts(effects: Path) -> list[float]:
    lines = effects.read_text(encoding="utf-8").splitlines()
    return sorted(json.loads(line)["args"]["amount"] for line in lines)


@dataclass(frozen=True)
class Outcome:
    """The number of confirmations, the payments after approval, and the final texts."""

    questions: int
    paid: tuple[float, ...]
    words: tuple[str, ...]


OUTCOMES = {
    "transfer": Outcome(1, (1,), ("The cashier is done.",)),
    "single_turn": Outcome(1, (1,), ("The clerk is done.", "The manager is done.")),
    "two_single_turn": Outcome(
        2,
        (1, 2),
        ("The left hand is done.", "The right hand is done.", "The director is done."),
    ),
    "sequential": Outcome(1, (1,), ("The first is done.", "The last is done.")),
    "parallel": Outcome(2, (1, 2), ("The first is done.", "The second is done.")),
    "sequential_around_parallel": Outcome(
        2, (1, 2), ("The first is done.", "The second is done.", "The last is done.")
    ),
    "workflow_node": Outcome(1, (1,), ("The last is done.",)),
    "workflow_input": Outcome(1, (), ("The last is done.",)),
    "workflow_fan_out": Outcome(
        2, (1, 2), ("The first is done.", "The second is done.", "The last is done.")
    ),
}


def response(question: Question) -> dict[str, object]:
    return {"confirmed": True} if question.is_approval else {"result": "blue"}


@pytest.mark.parametrize("name", OUTCOMES)
async def test_every_gated_tool_of_a_tree_needs_approval_and_runs_once(
    name: str, effects: Path
) -> None:
    expected, chat = OUTCOMES[name], Conversation(TOPOLOGIES[name]())
    await chat.say(USER_TEXT)
    assert (len(chat.questions), amounts(effects)) == (expected.questions, [])
    await chat.answer_all(response)
    assert chat.questions == []
    assert amounts(effects) == list(expected.paid)
    assert sorted(chat.sentences) == sorted(expected.words)
    assert name == "parallel" or chat.sentences[-1] == expected.words[-1]


@pytest.mark.filterwarnings("ignore:The `plugins` argument is deprecated:DeprecationWarning")
async def test_a_gated_tool_inside_an_agent_tool_is_never_confirmed(effects: Path) -> None:
    """The inner runner of ADK keeps the confirmation request, so such an agent is refused."""
    chat = Conversation(agent_tool())
    await chat.say(USER_TEXT)
    assert (chat.questions, amounts(effects)) == ([], [])
    assert [name for name, _ in results(chat.events)] == ["hidden"]
    assert chat.sentences == ["The boss is done."]


def test_every_agent_with_a_model_has_its_scenario() -> None:
    scripted = {scenario.agent for scenario in SCRIPT.scenarios}
    roots = [build() for build in TOPOLOGIES.values()]
    named = {root.name for root in roots if isinstance(root, LlmAgent)}
    assert named <= scripted
    assert set(TOPOLOGIES) == set(OUTCOMES) | {"agent_tool"}
