from __future__ import annotations

import pytest
from google.adk.agents import LlmAgent

from sluicegate.errors import ConfigurationError
from sluicegate.replay import ScriptedModel
from sluicegate.tools import ClientTool, client_tool
from tests.agents.conversation import CONFIRMATION, Conversation, calls, results

SCHEMA = {"type": "object", "properties": {"exact": {"type": "boolean"}}}


def conversation(*tools: ClientTool) -> Conversation:
    asked = [{"call": {"name": tool.name, "args": {"exact": True}}} for tool in tools]
    steps = [{"parts": [{"text": "Where? "}, *asked]}, {"parts": [{"text": "Thank you."}]}]
    model = ScriptedModel.from_data({"scenarios": [{"match": "", "responses": steps}]})
    return Conversation(LlmAgent(name="helper", model=model, tools=list(tools)))


def locate(name: str = "locate", *, gated: bool = False) -> ClientTool:
    return client_tool(name, "Finds out where the user is.", SCHEMA, require_confirmation=gated)


def test_the_schema_is_declared_unchanged() -> None:
    declaration = locate()._get_declaration()
    assert (declaration.name, declaration.description) == (
        "locate",
        "Finds out where the user is.",
    )
    assert declaration.parameters_json_schema == SCHEMA


def test_the_schema_is_copied() -> None:
    schema = {"type": "object"}
    tool = client_tool("locate", "Where?", schema)
    schema["type"] = "array"
    assert tool._get_declaration().parameters_json_schema == {"type": "object"}


async def test_the_call_stays_open_until_the_page_answers() -> None:
    chat = conversation(locate())
    await chat.say("where am I?")
    (call,) = calls(chat.events)
    assert (results(chat.events), chat.text) == ([], "Where? ")
    assert any(call.id in (event.long_running_tool_ids or ()) for event in chat.events)
    await chat.respond(call.id or "", "locate", {"result": "Bern"})
    assert chat.text == "Thank you."
    assert [call.name for call in calls(await chat.stored())] == ["locate"]


async def test_two_calls_wait_for_both_answers() -> None:
    chat = conversation(locate("locate"), locate("ask"))
    await chat.say("where am I?")
    first, second = calls(chat.events)
    await chat.respond(second.id or "", "ask", {"result": "yes"})
    assert chat.text == ""
    await chat.respond(first.id or "", "locate", {"result": "Bern"})
    assert chat.text == "Thank you."


async def test_a_gated_call_requests_approval() -> None:
    chat = conversation(locate(gated=True))
    await chat.say("where am I?")
    assert list(chat.asked.values()) == ["locate"]
    assert (results(chat.events), chat.text) == ([], "Where? ")


async def test_an_approval_alone_continues_the_model_without_an_output() -> None:
    """ADK: so a yes is kept back until the page has answered."""
    chat = conversation(locate(gated=True))
    await chat.say("where am I?")
    await chat.decide(yes=[*chat.asked])
    assert (results(chat.events), chat.text) == ([], "Thank you.")


async def test_an_output_stored_before_the_approval_is_read_by_the_model() -> None:
    chat = conversation(locate(gated=True))
    await chat.say("where am I?")
    call, asked = calls(chat.events)
    await chat.store(call.id or "", "locate", {"result": "Bern"})
    await chat.decide(yes=[asked.id or ""])
    assert (results(chat.events), chat.text) == ([], "Thank you.")
    assert chat.read == [("locate", {"result": "Bern"})]


async def test_a_denial_closes_a_gated_call() -> None:
    chat = conversation(locate(gated=True))
    await chat.say("where am I?")
    await chat.decide(no=[*chat.asked])
    assert results(chat.events) == [("locate", {"error": "This tool call is rejected."})]
    assert chat.text == "Thank you."


async def test_an_ungated_call_requests_no_approval() -> None:
    chat = conversation(locate())
    await chat.say("where am I?")
    assert CONFIRMATION not in {call.name for call in calls(chat.events)}


@pytest.mark.parametrize("name", ["a", "_a", "getLocation", "get_location", "a.b-c", "a" * 64])
def test_a_valid_name_is_accepted(name: str) -> None:
    assert locate(name).name == name


@pytest.mark.parametrize("name", ["", "1a", "a b", "a/b", "ä", "a" * 65, "locate\n"])
def test_an_invalid_name_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match="is not a valid function name"):
        locate(name)


def test_the_names_of_adk_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="starts with adk_"):
        locate("adk_request_confirmation")


@pytest.mark.parametrize("schema", [{}, {"type": "string"}, {"properties": {}}])
def test_arguments_must_be_an_object(schema: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError, match="must have the type object"):
        client_tool("locate", "Where?", schema)
