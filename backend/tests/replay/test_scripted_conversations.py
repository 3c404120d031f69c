"""The scripted model under the real Runner: real tools, confirmations, sub-agents, restarts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from google.adk.agents import BaseAgent, LlmAgent, ParallelAgent, SequentialAgent
from google.adk.sessions.database_session_service import DatabaseSessionService
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.function_tool import FunctionTool
from google.adk.workflow import START, Workflow
from google.genai import errors

from sluicegate.replay import ScriptedModel
from tests.agents.conversation import Conversation, calls, parts, results


class Shop:
    """A gated and a free tool; ``paid`` and ``asked_for`` count their effects."""

    def __init__(self) -> None:
        self.paid: list[int] = []
        self.asked_for: list[str] = []

    @property
    def tools(self) -> list[FunctionTool]:
        def pay(amount: int) -> dict[str, int]:
            """Pay."""
            self.paid.append(amount)
            return {"paid": amount}

        def price(item: str) -> dict[str, int]:
            """Ask for a price."""
            self.asked_for.append(item)
            return {"price": len(item)}

        return [FunctionTool(pay, require_confirmation=True), FunctionTool(price)]


Part = Mapping[str, object]


def call(name: str, **args: object) -> Part:
    return {"call": {"name": name, "args": args}}


def pay(amount: int) -> Part:
    return call("pay", amount=amount)


def price(item: str) -> Part:
    return call("price", item=item)


def text(words: str) -> Part:
    return {"text": words}


def scenario(*steps: Sequence[Part], agent: str = "", match: str = "") -> Part:
    spoken = {"match": match, "responses": [{"parts": [*step]} for step in steps]}
    return {**spoken, "agent": agent} if agent else spoken


def script(*scenarios: Part) -> ScriptedModel:
    return ScriptedModel.from_data({"scenarios": [*scenarios]})


def agent(model: ScriptedModel, till: Shop, name: str = "helper", **more: object) -> LlmAgent:
    return LlmAgent.model_validate({"name": name, "model": model, "tools": till.tools, **more})


async def test_partial_events_and_their_aggregate_share_an_id_and_a_tool_runs_once() -> None:
    till = Shop()
    model = script(scenario([text("Let me see."), price("tea")], [text("Three.")]))
    chat = Conversation(agent(model, till))
    await chat.say("how much is tea?")
    first = [event for event in chat.events if event.id == chat.events[0].id]
    assert [event.partial for event in first] == [True, True, True, False]
    assert (
        "".join(part.text or "" for event in first[:-1] for part in parts(event)) == "Let me see."
    )
    partial_call = next(call for event in first[:-1] for call in event.get_function_calls())
    assert [call.id for call in calls(chat.events)] == [partial_call.id]
    assert till.asked_for == ["tea"]
    assert results(chat.events) == [("price", {"price": 3})]
    assert chat.text == "Let me see.Three."
    assert len({event.id for event in chat.events if parts(event)}) == 3


async def test_without_streaming_the_same_conversation_has_no_partial_events() -> None:
    till = Shop()
    model = script(scenario([text("Let me see."), price("tea")], [text("Three.")]))
    chat = Conversation(agent(model, till), streaming=False)
    await chat.say("how much is tea?")
    assert not any(event.partial for event in chat.events)
    assert (chat.text, till.asked_for) == ("Let me see.Three.", ["tea"])


@pytest.mark.parametrize("yes", [True, False])
async def test_a_gated_call_waits_and_the_script_continues_after_the_decision(yes: bool) -> None:
    till = Shop()
    chat = Conversation(agent(script(scenario([pay(5)], [text("Done.")])), till))
    await chat.say("pay")
    assert (list(chat.asked.values()), till.paid, results(chat.events)) == (["pay"], [], [])
    await (chat.decide(yes=[*chat.asked]) if yes else chat.decide(no=[*chat.asked]))
    assert till.paid == ([5] if yes else [])
    expected = {"paid": 5} if yes else {"error": "This tool call is rejected."}
    assert results(chat.events) == [("pay", expected)]
    assert chat.text == "Done."


async def test_two_gated_calls_in_sequence_request_approval_in_sequence() -> None:
    till = Shop()
    steps = ([text("First. "), pay(1)], [text("Second. "), pay(2)], [text("Both.")])
    chat = Conversation(agent(script(scenario(*steps)), till))
    await chat.say("pay twice")
    assert (chat.text, till.paid) == ("First. ", [])
    await chat.decide(yes=[*chat.asked])
    assert (chat.text, till.paid, len(chat.asked)) == ("Second. ", [1], 1)
    await chat.decide(yes=[*chat.asked])
    assert (chat.text, till.paid, chat.asked) == ("Both.", [1, 2], {})


async def test_parallel_calls_are_one_step_of_the_script() -> None:
    till = Shop()
    chat = Conversation(
        agent(script(scenario([pay(1), price("tea"), pay(2)], [text("Done.")])), till)
    )
    await chat.say("pay")
    assert (till.asked_for, till.paid, len(chat.asked)) == (["tea"], [], 2)
    first, second = chat.asked
    await chat.decide(yes=[second], no=[first])
    assert (till.paid, chat.text) == ([2], "Done.")


async def test_each_message_has_its_own_count_of_responses() -> None:
    model = script(
        scenario([price("tea")], [text("Three.")], match="tea"),
        scenario([text("Bye.")], match="bye"),
    )
    chat = Conversation(agent(model, Shop()))
    answers = []
    for message in ("tea?", "bye", "tea again"):
        await chat.say(message)
        answers.append(chat.text)
    assert answers == ["Three.", "Bye.", "Three."]


async def test_streamed_arguments_reach_the_tool_complete() -> None:
    till = Shop()
    streamed = {"call": {"name": "price", "args": {"item": "green tea"}, "stream": True}}
    chat = Conversation(agent(script(scenario([streamed], [text("Nine.")])), till))
    await chat.say("how much is green tea?")
    assert (till.asked_for, chat.text) == (["green tea"], "Nine.")


async def test_a_restart_between_request_and_decision_changes_nothing(tmp_path: Path) -> None:
    url = f"sqlite+aiosqlite:///{tmp_path / 'chats.db'}"
    steps = ([text("First. "), pay(1)], [text("Second. "), pay(2)], [text("Both.")])
    waiting: list[str] = []
    words: list[str] = []
    paid: list[int] = []
    for _ in range(3):
        till = Shop()
        sessions = DatabaseSessionService(url)
        chat = Conversation(agent(script(scenario(*steps)), till), sessions=sessions)
        await (chat.decide(yes=waiting) if waiting else chat.say("pay twice"))
        waiting = [*chat.asked]
        words.append(chat.text)
        paid += till.paid
        await sessions.close()
    assert words == ["First. ", "Second. ", "Both."]
    assert paid == [1, 2]


async def test_a_scripted_error_is_raised_and_no_content_is_stored() -> None:
    failing = {"parts": [text("Well")], "error": {"code": 503, "message": "No room."}}
    model = ScriptedModel.from_data({"scenarios": [{"match": "", "responses": [failing]}]})
    chat = Conversation(agent(model, Shop()))
    with pytest.raises(errors.ServerError):
        await chat.say("go")
    assert [event.error_code for event in chat.events if not event.partial] == ["UNAVAILABLE"]
    assert [parts(event)[0].text for event in await chat.stored() if parts(event)] == ["go"]


async def test_a_hanging_model_ends_when_the_run_is_aborted() -> None:
    hanging = {"parts": [text("Well")], "hang": True}
    model = ScriptedModel.from_data({"scenarios": [{"match": "", "responses": [hanging]}]})
    chat = Conversation(agent(model, Shop()))
    spoken, sealed = await chat.say("go", stop_after=1)
    assert parts(spoken)[0].text == "Well"
    assert sealed.error_code == "INVOCATION_ABORTED"


def boss_and_child(model: ScriptedModel, till: Shop, **more: object) -> LlmAgent:
    child = agent(model, till, "child", description="Pays.", **more)
    return LlmAgent(name="boss", model=model, sub_agents=[child])


async def test_after_a_transfer_the_sub_agent_answers_the_users_text() -> None:
    till = Shop()
    transfer = call("transfer_to_agent", agent_name="child")
    model = script(
        scenario([text("One moment. "), transfer], match="pay"),
        scenario([text("Paying. "), pay(5)], [text("Paid.")], agent="child", match="pay"),
        scenario([text("Bye.")], agent="child", match="bye"),
    )
    chat = Conversation(boss_and_child(model, till))
    await chat.say("pay")
    assert (chat.text, till.paid) == ("One moment. Paying. ", [])
    await chat.decide(yes=[*chat.asked])
    assert (chat.text, till.paid) == ("Paid.", [5])
    await chat.say("bye")
    assert chat.text == "Bye."


async def test_a_delegated_agent_answers_its_task_and_after_an_approval_the_users_text() -> None:
    """ADK: its prompt loses the task when it resumes, so one ``match`` has to fit both."""
    till = Shop()
    delegate = call("child", request="settle the bill")
    model = script(
        scenario([delegate], [text("Settled.")], match="^please$"),
        scenario([pay(5)], [text("Paid.")], agent="child", match="settle the bill|^please$"),
    )
    chat = Conversation(boss_and_child(model, till, mode="single_turn"))
    await chat.say("please")
    await chat.decide(yes=[*chat.asked])
    assert till.paid == [5]
    assert results(chat.events) == [("pay", {"paid": 5}), ("child", {"result": "Paid."})]
    assert chat.text == "Paid.Settled."


@pytest.mark.filterwarnings("ignore:The `plugins` argument is deprecated:DeprecationWarning")
async def test_an_agent_used_as_a_tool_has_scenarios_of_its_own_name() -> None:
    till = Shop()
    ask = call("child", request="tea")
    model = script(
        scenario([ask], [text("It is three.")], match="how much"),
        scenario([price("tea")], [text("Three.")], agent="child", match="^tea$"),
    )
    child = agent(model, till, "child", description="Knows prices.")
    chat = Conversation(LlmAgent(name="boss", model=model, tools=[AgentTool(child)]))
    await chat.say("how much is tea?")
    assert results(chat.events) == [("child", {"result": "Three."})]
    assert chat.text == "It is three."


@pytest.mark.parametrize("kind", [SequentialAgent, ParallelAgent])
async def test_sequential_and_parallel_agents_have_their_own_counts(
    kind: type[SequentialAgent] | type[ParallelAgent],
) -> None:
    till = Shop()
    model = script(
        scenario([price("tea")], [text("Tea.")], agent="first"),
        scenario([price("milk")], [price("cream")], [text("Milk.")], agent="second"),
    )
    members: list[BaseAgent] = [agent(model, till, name) for name in ("first", "second")]
    chat = Conversation(kind(name="both", sub_agents=members))
    await chat.say("go")
    assert sorted(till.asked_for) == ["cream", "milk", "tea"]
    assert {event.author: parts(event)[-1].text for event in chat.events if parts(event)} == {
        "first": "Tea.",
        "second": "Milk.",
    }


async def test_a_workflow_node_answers_the_output_of_the_previous_node() -> None:
    model = script(
        scenario([text("tea, please")], agent="guest", match="^order$"),
        scenario([text("Coming.")], agent="waiter", match="^tea, please$"),
    )
    guest, waiter = (LlmAgent(name=name, model=model) for name in ("guest", "waiter"))
    chat = Conversation(Workflow(name="table", edges=[(START, guest, waiter)]))
    await chat.say("order")
    assert chat.text == "tea, pleaseComing."


async def test_missing_scenarios_and_responses_are_reported_in_the_conversation() -> None:
    chat = Conversation(agent(script(scenario([price("tea")], match="tea")), Shop()))
    answers: Mapping[str, str] = {
        "milk": "The script has no scenario in which helper answers this message.",
        "tea": "The script has no response 2 of helper to this message.",
    }
    for message, sentence in answers.items():
        await chat.say(message)
        assert chat.text == sentence
