"""Which agent trees ADK resumes after approvals, and how their answers must be grouped.

All answers are in before ADK is told anything (A3). Then, for every branch but one, a user event
with the branch and the invocation id of the asking event is appended, and one run gets the answers
of the branch that remains. Which branch remains makes no difference.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from google.adk.agents.llm_agent import LlmAgent
from google.adk.apps.app import App, ResumabilityConfig
from google.adk.events.event import Event
from google.adk.workflow import BaseNode

from sluicegate.engine.agents.survey import survey
from sluicegate.engine.agents.unsupported_agents import refusals
from tests.engine.adk_story import Conversation, Open, Story, answer, call, location, step
from tests.engine.lost_topologies import LOST, SERVED
from tests.engine.test_transfers_to_shells import plain
from tests.engine.topologies import RESUMED, Request, delegate, flow, parallel, sequence
from tests.parts import long_table

Start = Callable[..., Conversation]

AT_ONCE = [
    *(each for each in RESUMED if each.partition(": ")[0] in ("single_turn", "parallel")),
    "task: with two single_turn agents",
    "transfer: child with two single_turn agents",
    "sequence: around parallel",
    "loop: asking in each round",
    "workflow: fan-out and join",
    "workflow: two tool nodes at once",
    "workflow: nested beside tool node",
    "workflow: parallel worker",
    "tool: a Workflow that fans out",
    "tool: two function nodes",
]
"""Trees with several open branches, or with repeated requests of one tool."""


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Start]:
    opened: list[Conversation] = []

    def open_(root: BaseNode, app: App | None = None) -> Conversation:
        opened.append(Conversation(root, tmp_path, app))
        return opened[-1]

    yield open_
    for conversation in opened:
        await conversation.close()


def by_branch(waiting: Sequence[Open]) -> list[list[Open]]:
    groups: dict[str | None, list[Open]] = {}
    for each in waiting:
        groups.setdefault(each.branch, []).append(each)
    return list(groups.values())


async def answer_all(
    conversation: Conversation, *, denied: Sequence[str] = (), first_branch_last: bool = False
) -> tuple[list[str], list[Event]]:
    """Answer round after round until nothing waits; the approved tools and all events."""
    approved: list[str] = []
    events: list[Event] = []
    for _ in range(8):
        waiting = await conversation.waiting()
        if not waiting:
            break
        groups = by_branch(waiting)
        if first_branch_last:
            groups.reverse()
        parts = [[answer(w, approved=w.tool not in denied) for w in group] for group in groups]
        for group, said in zip(groups[:-1], parts[:-1], strict=True):
            await conversation.append(group, said)
        approved += [each.tool for each in waiting if each.tool not in denied]
        events += await conversation.run(parts[-1])
    return approved, events


@long_table
@pytest.mark.parametrize("topology", RESUMED)
async def test_every_approved_tool_runs_once_and_every_agent_finishes(
    start: Start, topology: str
) -> None:
    story = Story()
    conversation = start(RESUMED[topology](story))
    await conversation.say("go")
    assert not set(story.effects) - {"look"}
    approved, events = await answer_all(conversation)
    assert approved
    assert sorted(story.effects) == sorted([*approved, *(["look"] if "free" in topology else [])])
    assert story.is_told
    assert not [event.error_code for event in events if event.error_code]
    assert not await conversation.waiting()
    ends = [event.output for event in events if event.node_info.name == "end" and event.output]
    assert all(_is_whole(output) for output in ends)


@long_table
@pytest.mark.parametrize("topology", AT_ONCE)
async def test_a_denial_in_one_branch_stops_no_other_in_any_order_of_decisions(
    start: Start, topology: str
) -> None:
    story = Story()
    conversation = start(RESUMED[topology](story))
    await conversation.say("go")
    denied = (await conversation.waiting())[0].tool
    approved, _ = await answer_all(conversation, denied=[denied], first_branch_last=True)
    assert sorted(set(story.effects) - {"look"}) == sorted(set(approved))
    assert denied not in story.effects
    assert story.is_told


@pytest.mark.parametrize("topology", RESUMED)
async def test_topologies_that_can_be_resumed_are_accepted(topology: str) -> None:
    root = RESUMED[topology](Story())
    found = await survey(root)
    assert found.may_gate
    assert refusals(root, found) == []


@pytest.mark.parametrize("topology", sorted(LOST.keys() - set(SERVED)))
async def test_topologies_that_cannot_be_resumed_are_refused_with_the_remedy(topology: str) -> None:
    build, way_out = LOST[topology]
    root = build(Story())
    found = await survey(root)
    refused = refusals(root, found)
    assert refused
    assert all(way_out in sentence for sentence in refused)
    assert all(sentence.count("; ") == 1 and sentence.endswith(".") for sentence in refused)


@pytest.mark.filterwarnings("ignore:The `plugins` argument is deprecated")  # AgentTool's own
@pytest.mark.parametrize("topology", LOST)
async def test_topologies_still_lose_calls_in_adk(start: Start, topology: str) -> None:
    story = Story()
    root = LOST[topology][0](story)
    resumable = ResumabilityConfig(is_resumable=True)
    conversation = start(root, App(name="plain", root_agent=root, resumability_config=resumable))
    approved: list[str] = []
    events: list[Event] = []
    try:
        events += await conversation.say("go")
        approved, later = await answer_all(conversation)
        events += later
    except (RuntimeError, ValueError, IndexError):
        return  # ADK fails aloud, or asks a model that has said everything
    ends = [event.output for event in events if event.node_info.name == "end"]
    went_well = (
        sorted(approved) == sorted(story.effects)
        and story.is_told
        and not any(event.error_code for event in events)
        and len(ends) <= 1
    )
    assert not went_well


async def test_decisions_of_two_branches_in_one_message_are_lost_for_all_but_the_first(
    start: Start,
) -> None:
    story = Story()
    conversation = start(parallel(story.asker("a"), story.asker("b")))
    await conversation.say("go")
    waiting = await conversation.waiting()
    await conversation.run([answer(each) for each in waiting])
    assert story.effects == ["pay_a"]


async def test_one_run_per_branch_loses_the_later_branches_of_a_sequence(
    start: Start,
) -> None:
    story = Story()
    branches = parallel(story.asker("a"), story.asker("b"))
    conversation = start(sequence(branches, story.talker("last")))
    await conversation.say("go")
    for each in await conversation.waiting():
        await conversation.run([answer(each)])
    assert story.effects != ["pay_a", "pay_b"]


CLIENTS: dict[str, Callable[[Story], BaseNode]] = {
    "the same agent": lambda s: _with_location(s, "root"),
    "parallel agents": lambda s: sequence(
        parallel(_with_location(s, "a"), _with_location(s, "b")), s.talker("last")
    ),
    "single_turn agents": lambda s: s.talker(
        "root",
        *delegate("a", "b"),
        sub_agents=[_with_location(s, x, mode="single_turn") for x in "ab"],
    ),
    "nodes of a Workflow": lambda s: flow(
        "wf", _with_location(s, "a"), _with_location(s, "b"), step("end")
    ),
}


@pytest.mark.parametrize("topology", CLIENTS)
async def test_outputs_of_the_page_precede_the_approvals_of_their_branch(
    start: Start, topology: str
) -> None:
    story = Story()
    conversation = start(CLIENTS[topology](story))
    await conversation.say("go")
    while waiting := await conversation.waiting(["get_location"]):
        outputs = by_branch([each for each in waiting if not each.is_approval])
        approvals = by_branch([each for each in waiting if each.is_approval])
        for group in (*outputs, *approvals[:-1]):
            await conversation.append(group, [answer(each) for each in group])
        await conversation.run([answer(each) for each in approvals[-1]])
    assert sorted(story.effects) == sorted(set(story.effects))
    assert len(story.effects) == (1 if topology == "the same agent" else 2)
    assert story.is_told


async def test_an_output_of_the_page_after_the_approval_loses_the_approval(
    start: Start,
) -> None:
    story = Story()
    conversation = start(_with_location(story, "root"))
    await conversation.say("go")
    waiting = await conversation.waiting(["get_location"])
    approvals = [each for each in waiting if each.is_approval]
    await conversation.append(approvals, [answer(each) for each in approvals])
    await conversation.run([answer(each) for each in waiting if not each.is_approval])
    assert story.effects == []


async def test_a_function_node_without_output_runs_again_when_its_workflow_is_resumed(
    start: Start,
) -> None:
    runs: list[str] = []

    def silent(node_input: Any) -> None:
        runs.append("silent")

    def loud(node_input: Any) -> str:
        runs.append("loud")
        return "heard"

    story = Story()
    conversation = start(flow("wf", loud, silent, story.asker("a")))
    await conversation.say("go")
    await answer_all(conversation)
    assert runs == ["loud", "silent", "silent"]


async def test_the_approval_of_a_parent_is_requested_only_after_that_of_its_single_turn_agent(
    start: Start,
) -> None:
    story = Story()
    conversation = start(RESUMED["single_turn: beside the parent's own gate"](story))
    await conversation.say("go")
    assert [each.tool for each in await conversation.waiting()] == ["pay_a"]
    await conversation.run([answer(each) for each in await conversation.waiting()])
    assert [each.tool for each in await conversation.waiting()] == ["pay_root"]


def _with_location(story: Story, name: str, **settings: Any) -> LlmAgent:
    return story.talker(
        name,
        call("get_location"),
        call(f"pay_{name}"),
        tools=[location(), story.gated(f"pay_{name}")],
        **settings,
    )


def _is_whole(output: Any) -> bool:
    given = output["from"]
    return None not in given.values() if isinstance(given, dict) else given is not None


async def test_nothing_follows_a_chat_node_and_its_workflow_in_tools_never_ends() -> None:
    story = Story(has_gates=False)
    rest = story.talker("rest")
    alone = flow("wf", story.talker("a", mode="chat"), rest)
    assert await plain(alone, ["go"]) == ["a done"]
    tool = flow("tool", story.talker("b", mode="chat"), step("end"), input_schema=Request)
    root = story.talker("root", *delegate("tool"), tools=[tool])
    assert await plain(root, ["go"]) == ["b done"]
