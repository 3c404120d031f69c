"""Tools that ask more than once in one call: each question is a card, each answer resumes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.tool_context import ToolContext
from google.adk.workflow import Workflow
from sqlalchemy import delete, update

from sluicegate.core.call_keys import LATER_REQUEST
from sluicegate.stores.sql.schema import APPROVALS
from sluicegate.testing.message_comparison import comparable
from tests.engine.adk_story import PLACEHOLDER, Story
from tests.engine.stage import Counted, Prompts, calls, part_of, says, scripted, words
from tests.engine.talk import Talk, decide
from tests.engine.test_abandoned_turns import after_last_decision, events_of, forget
from tests.engine.test_inline_agents import TREES as INLINE_TREES
from tests.engine.test_transfers_to_shells import TREES as SHELL_TREES
from tests.engine.test_transfers_to_shells import said
from tests.engine.topologies import RESUMED

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from sluicegate.core.release.policies import ReleasePolicy
    from sluicegate.engine.chat_engine import ChatEngine
    from sluicegate.wire.ui_messages import UIMessage
    from tests.engine.stage import Open
    from tests.engine.topologies import Build

    OpenEngine = Callable[..., AbstractAsyncContextManager[ChatEngine]]

pytestmark = [
    pytest.mark.filterwarnings("ignore:The `plugins` argument is deprecated"),  # AgentTool's own
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),
]

WIRE = pytest.mark.parametrize(
    ("release", "style"),
    [
        ("deferred", "call"),
        ("deferred", "confirmation"),
        ("progressive", "call"),
        ("progressive", "confirmation"),
    ],
)


@dataclass
class Transfers:
    """A payment whose amount is confirmed first, then its payee; it records what it does."""

    begun: list[Any] = field(default_factory=list)
    paid: list[dict[str, Any]] = field(default_factory=list)
    questions: int = 2

    def tool(self) -> FunctionTool:
        """The tool, named ``transfer``."""

        def transfer(amount: int, tool_context: ToolContext) -> dict[str, Any]:
            """Transfer an amount."""
            confirmation = tool_context.tool_confirmation
            answer: dict[str, Any] = (confirmation.payload if confirmation else None) or {}
            self.begun.append((amount, answer.get("to")))
            step = answer.get("step", 0)
            if step < self.questions:
                tool_context.request_confirmation(
                    hint=f"Question {step + 1}?", payload={"step": step + 1, "to": ""}
                )
                return {"status": "waiting"}
            self.paid.append({"amount": amount, **answer})
            return {"paid": amount}

        return FunctionTool(transfer)


SCRIPT = [calls(("transfer", {"amount": 5}), text="I pay. "), says("done")]


@WIRE
async def test_each_question_of_a_call_is_a_card_and_the_effect_follows_the_last(
    open_stage: Open, release: ReleasePolicy, style: str
) -> None:
    transfers, prompts = Transfers(), Prompts()
    agent = scripted(SCRIPT, [transfers.tool()], before_model_callback=prompts)
    talk = Talk(await open_stage(agent, approval_style=style), release)
    await talk.say("pay")
    seen = []
    for number in (1, 2):
        [part] = talk.pending()
        seen.append(part["approval"]["id"])
        assert part["approval"]["requestReason"] == f"Question {number}?"
        assert part["approval"]["descriptor"]["payload"] == {"step": number, "to": ""}
        assert comparable(await talk.history()) == comparable(talk.messages[-1])
        assert transfers.paid == []
        to = {"step": number, "to": f"answer {number}"}
        turn = await talk.approve(payload={seen[-1]: to})
    assert turn.finish_reason == "stop"
    assert transfers.paid == [{"amount": 5, "step": 2, "to": "answer 2"}]
    assert transfers.begun == [(5, None), (5, "answer 1"), (5, "answer 2")]
    assert len(set(seen)) == 2
    assert part_of(turn.message, "transfer")["output"] == {"paid": 5}
    assert words(turn.message) == "I pay. done"
    assert prompts.results["transfer"] == {"paid": 5}
    assert len(prompts.contents) == 2
    stored = await talk.history()
    assert comparable(stored) == comparable(turn.message)
    states = {i: approval["state"] for i, approval in stored["metadata"]["approvals"].items()}
    assert states == {seen[0]: "asked_again", seen[1]: "executed"}


@WIRE
async def test_a_denial_of_a_later_question_has_no_effect(
    open_stage: Open, release: ReleasePolicy, style: str
) -> None:
    transfers, prompts = Transfers(), Prompts()
    agent = scripted(SCRIPT, [transfers.tool()], before_model_callback=prompts)
    talk = Talk(await open_stage(agent, approval_style=style), release)
    await talk.say("pay")
    await talk.approve()
    turn = await talk.answer(approved=False, reason="wrong payee")
    assert transfers.paid == []
    assert len(transfers.begun) == 2
    assert prompts.results["transfer"]["reason"] == "wrong payee"
    assert comparable(await talk.history()) == comparable(turn.message)


class AskingStory(Story):
    """A story whose gated tools ask twice; each question is answered as it is asked."""

    def gated(self, name: str) -> FunctionTool:
        if not self.has_gates:
            return super().gated(name)
        effect = self.function(name)

        def asking(tool_context: ToolContext) -> dict[str, str]:
            answer = tool_context.tool_confirmation
            step = ((answer.payload if answer else None) or {}).get("step", 0)
            if step < 2:
                tool_context.request_confirmation(hint="?", payload={"step": step + 1})
                return {"status": f"{PLACEHOLDER}."}
            return effect()

        asking.__name__ = asking.__qualname__ = name
        asking.__doc__ = effect.__doc__
        return FunctionTool(asking)


PICKED = (
    "single_turn: two, each asking for two at once",
    "single_turn: beside the parent's own gate",
    "single_turn: nested",
    "task: two",
    "transfer: child of a child",
    "parallel: each asking for two at once",
    "sequence: around a transfer to parallel",
    "sequence: around parallel",
    "loop: asking in each round",
    "workflow: agents in a row",
    "workflow: fan-out and join",
    "workflow: agents run by a function",
)
TREES: dict[str, tuple[Build, list[str]]] = {
    **{name: (RESUMED[name], ["go"]) for name in PICKED},
    "a transfer to parallel agents": SHELL_TREES["a transfer to parallel agents"],
    "two levels of transfers": SHELL_TREES["two levels of transfers"],
    "AgentTools": INLINE_TREES["two calls with two gates each"],
}


async def approve_each(talk: Talk) -> int:
    """Approve what waits until nothing does; returns how often."""
    times = 0
    while talk.pending():
        for part in talk.pending():
            decide(part, approved=True)
        turn = await talk.post_last()
        assert not turn.failed, turn.chunks[-1]
        assert comparable(await talk.history()) == comparable(talk.messages[-1])
        times += 1
    return times


@pytest.mark.parametrize("name", TREES)
async def test_a_tree_whose_tools_ask_twice_does_what_it_does_without_the_gates(
    open_engine: OpenEngine, name: str
) -> None:
    build, messages = TREES[name]
    free, story = Story(has_gates=False), AskingStory()
    async with open_engine(build(free)) as engine:
        without = Talk(engine)
        for text in messages:
            await without.say(text)
    times = 0
    async with open_engine(build(story)) as engine:
        talk = Talk(engine)
        for text in messages:
            await talk.say(text)
            times += await approve_each(talk)
    assert times > 1
    assert Counter(story.effects) == Counter(free.effects)
    assert sorted("".join(said(talk))) == sorted("".join(said(without)))
    assert len(story.requests) == len(free.requests)


@WIRE
async def test_a_call_beside_one_that_asks_again_runs_once(
    open_stage: Open, release: ReleasePolicy, style: str
) -> None:
    transfers, counted, prompts = Transfers(), Counted(), Prompts()
    script = [calls(("pay", {"n": 1}), ("transfer", {"amount": 5})), says("done")]
    agent = scripted(script, [counted.tool(), transfers.tool()], before_model_callback=prompts)
    talk = Talk(await open_stage(agent, approval_style=style), release)
    await talk.say("pay")
    await talk.approve()
    assert (counted.runs, len(talk.pending())) == ([1], 1)
    assert comparable(await talk.history()) == comparable(talk.messages[-1])
    turn = await talk.approve()
    assert (counted.runs, len(transfers.paid)) == ([1], 1)
    assert prompts.results == {"pay": {"paid": 1}, "transfer": {"paid": 5}}
    assert comparable(await talk.history()) == comparable(turn.message)


async def test_edits_of_an_earlier_question_hold_for_the_later_ones(open_stage: Open) -> None:
    transfers, prompts = Transfers(), Prompts()
    agent = scripted(SCRIPT, [transfers.tool()], before_model_callback=prompts)
    talk = Talk(await open_stage(agent))
    await talk.say("pay")
    await talk.approve(edits={talk.asks()[0]: {"amount": 3}})
    [part] = talk.pending()
    assert part["approval"]["descriptor"]["arguments"] == {"amount": 3}
    await talk.approve()
    assert transfers.paid == [{"amount": 3, "step": 2, "to": ""}]
    assert [amount for amount, _ in transfers.begun] == [5, 3, 3]
    assert prompts.results["transfer"]["edited_by_user"]["arguments"] == {"amount": 3}


async def test_a_grant_answers_the_first_question_alone(open_stage: Open) -> None:
    transfers = Transfers()
    script = [
        calls(("transfer", {"amount": 5})),
        calls(("transfer", {"amount": 6})),
        says("done"),
    ]
    talk = Talk(await open_stage(scripted(script, [transfers.tool()])))
    await talk.say("pay")
    await talk.approve(remember={talk.asks()[0]: "chat"})
    await talk.approve()
    assert len(transfers.paid) == 1
    [part] = talk.pending()
    assert part["input"] == {"amount": 6}
    assert part["approval"]["descriptor"]["payload"] == {"step": 2, "to": ""}
    assert comparable(await talk.history()) == comparable(talk.messages[-1])
    turn = await talk.approve()
    assert len(transfers.paid) == 2
    assert comparable(await talk.history()) == comparable(turn.message)


@pytest.mark.parametrize("style", ["call", "confirmation"])
async def test_a_decision_sent_again_is_answered_with_the_next_question(
    open_stage: Open, style: str
) -> None:
    transfers = Transfers()
    agent = scripted(SCRIPT, [transfers.tool()])
    talk = Talk(await open_stage(agent, approval_style=style))
    await talk.say("pay")
    decide(talk.pending()[0], approved=True)
    sent = deepcopy(talk.messages[-1])
    await talk.post_last()
    asked = talk.messages[-1]
    talk.messages[-1] = sent
    turn = await talk.post_last()
    assert comparable(turn.message) == comparable(asked)
    assert len(transfers.begun) == 2
    await talk.approve()
    assert len(transfers.paid) == 1


async def test_a_new_message_closes_a_later_question(open_stage: Open) -> None:
    transfers = Transfers()
    talk = Talk(await open_stage(scripted(SCRIPT, [transfers.tool()])))
    await talk.say("pay")
    await talk.approve()
    await talk.say("something else")
    chat = await talk.engine.get_chat(talk.chat_id, user=talk.user)
    states = {a["state"] for a in chat["messages"][1]["metadata"]["approvals"].values()}
    assert states == {"asked_again", "superseded"}
    assert part_of(chat["messages"][1], "transfer")["state"] == "output-denied"
    assert transfers.paid == []


async def test_the_limit_of_approvals_counts_every_question(open_stage: Open) -> None:
    transfers = Transfers(questions=30)
    agent = scripted(SCRIPT, [transfers.tool()])
    talk = Talk(await open_stage(agent, max_requests_per_exchange=4))
    await talk.say("pay")
    times = 0
    while talk.pending():
        turn = await talk.approve()
        times += 1
    assert times == 4
    assert "too many approvals" in part_of(turn.message, "transfer")["errorText"]


CUTS = ("claimed", "asked again", "response stored", "request stored", "request recorded")


@pytest.mark.parametrize("loads", [False, True], ids=["sends again", "loads the chat"])
@pytest.mark.parametrize("cut", CUTS)
async def test_a_crash_before_the_next_question_loses_no_answer_and_has_no_effect(
    open_engine: OpenEngine, cut: str, loads: bool
) -> None:
    transfers = Transfers()
    async with open_engine(scripted(SCRIPT, [transfers.tool()])) as engine:
        talk = Talk(engine)
        await talk.say("pay")
        sent = await approve_until(engine, talk, cut)
    async with open_engine(scripted(SCRIPT, [transfers.tool()])) as engine:
        talk.engine, talk.messages = engine, [*talk.messages[:1], sent]
        if loads:
            talk.messages[-1] = await talk.history()
        if not talk.pending():
            turn = await talk.post_last()
            assert not turn.failed, turn.chunks[-1]
        if cut == "claimed":
            assert "outcome is unknown" in part_of(talk.messages[-1], "transfer")["errorText"]
            assert transfers.paid == []
            return
        assert comparable(await talk.history()) == comparable(talk.messages[-1])
        await talk.approve()
        assert transfers.paid == [{"amount": 5, "step": 2, "to": ""}]
        assert words(talk.messages[-1]) == "I pay. done"


async def approve_until(engine: ChatEngine, talk: Talk, cut: str) -> UIMessage:
    """Approve the first question as if the process had died at one of `CUTS` after it.

    Returns:
        The message that was sent.
    """
    decide(talk.pending()[0], approved=True)
    sent = deepcopy(talk.messages[-1])
    await talk.post_last()
    events = await events_of(engine, talk)
    answered = after_last_decision(events)
    [_, request] = [e for e in events[answered:] if e.content is not None]
    lost = {"claimed": events[answered:], "asked again": events[answered:]}
    lost["response stored"] = events[events.index(request) :]
    if cut in lost:
        await forget(engine, lost[cut])
    if cut != "request recorded":
        await engine.resources.database.write(_forget_second_row)
    if cut == "claimed":
        await engine.resources.database.write(_claim_first_row)
    return sent


def _forget_second_row(connection: Connection) -> int:
    second = APPROVALS.c.call.startswith(LATER_REQUEST)
    return connection.execute(delete(APPROVALS).where(second)).rowcount


def _claim_first_row(connection: Connection) -> int:
    return connection.execute(update(APPROVALS).values(state="executing")).rowcount


def node_flow(transfers: Transfers) -> Workflow:
    """A Workflow with a tool that asks as one of its nodes."""

    def amount(node_input: Any) -> dict[str, int]:
        return {"amount": 5}

    return Workflow(name="flow", edges=[("START", amount, transfers.tool())])


@pytest.mark.parametrize("loads", [False, True], ids=["sends again", "loads the chat"])
@pytest.mark.parametrize("cut", ["claimed", "asked again", "request stored", "request recorded"])
async def test_a_crash_before_the_next_question_of_a_node_loses_no_answer_and_has_no_effect(
    open_engine: OpenEngine, cut: str, loads: bool
) -> None:
    transfers = Transfers()
    async with open_engine(node_flow(transfers)) as engine:
        talk = Talk(engine)
        await talk.say("pay")
        decide(talk.pending()[0], approved=True)
        sent = deepcopy(talk.messages[-1])
        await talk.post_last()
        events = await events_of(engine, talk)
        if cut in ("claimed", "asked again"):
            await forget(engine, events[after_last_decision(events) :])
        if cut != "request recorded":
            await engine.resources.database.write(_forget_second_row)
        if cut == "claimed":
            await engine.resources.database.write(_claim_first_row)
    async with open_engine(node_flow(transfers)) as engine:
        talk.engine, talk.messages = engine, [*talk.messages[:1], sent]
        if loads:
            talk.messages[-1] = await talk.history()
        if not talk.pending():
            turn = await talk.post_last()
            assert not turn.failed, turn.chunks[-1]
        if cut == "claimed":
            assert "outcome is unknown" in part_of(talk.messages[-1], "transfer")["errorText"]
            assert transfers.paid == []
            return
        [part] = talk.pending()
        assert part["approval"]["requestReason"] == "Question 2?"
        assert comparable(await talk.history()) == comparable(talk.messages[-1])
        await talk.approve()
        assert transfers.paid == [{"amount": 5, "step": 2, "to": ""}]
