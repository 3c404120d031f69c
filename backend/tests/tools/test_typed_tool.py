"""Typed function tools through the real Runner (S1-R11, S1-R12)."""

from __future__ import annotations

from datetime import date
from typing import Any, Literal

import pytest
from google.adk.agents import LlmAgent
from google.adk.agents.callback_context import CallbackContext
from google.adk.models.llm_request import LlmRequest
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.tool_context import ToolContext
from pydantic import BaseModel

from sluicegate.engine.agents.approval_requirements import ToolNames, requirement_of
from sluicegate.errors import DeclarationError, ToolError
from sluicegate.replay import ScriptedModel
from sluicegate.tools import gated, typed_tool
from tests.agents.conversation import Conversation, results


class Guest(BaseModel):
    name: str
    age: int = 30


bookings: list[tuple[Any, ...]] = []


def book(
    day: date, guests: list[Guest], context: ToolContext, room: Literal["small", "big"] = "small"
) -> dict[str, str]:
    """Book a room.

    Args:
        day: The first day.
        guests: Who comes.
        context: Not for the model.
        room: How large.
    """
    bookings.append((day, guests, room, context.function_call_id is not None))
    return {"booked": day.isoformat()}


class Chat(Conversation):
    """A conversation that keeps the requests to the model."""

    def __init__(self, *tools: BaseTool, args: dict[str, Any] | None = None) -> None:
        self.requests: list[LlmRequest] = []
        bookings.clear()
        calls = [{"call": {"name": tool.name, "args": args}} for tool in tools]
        steps = [{"parts": [*calls]}, {"parts": [{"text": "Done."}]}]
        if not tools:
            steps = [{"parts": [{"text": "Done."}]}]
        model = ScriptedModel.from_data({"scenarios": [{"match": "", "responses": steps}]})

        def record_request(callback_context: CallbackContext, llm_request: LlmRequest) -> None:
            self.requests.append(llm_request)

        agent = LlmAgent(
            name="a", model=model, tools=[*tools], before_model_callback=record_request
        )
        super().__init__(agent)


VALID = {"day": "2026-03-04", "guests": [{"name": "Ada"}]}


async def test_a_function_receives_the_types_of_its_annotations() -> None:
    chat = Chat(typed_tool(book), args=VALID)
    await chat.say("book it")
    assert bookings == [(date(2026, 3, 4), [Guest(name="Ada")], "small", True)]
    assert results(chat.events) == [("book", {"booked": "2026-03-04"})]
    assert chat.text == "Done."


async def test_the_request_declares_the_tools_of_the_agent_alone() -> None:
    chat = Chat(typed_tool(book, name="book_room"), args=VALID)
    await chat.say("book it")
    (offered,) = chat.requests[0].config.tools or []
    (declaration,) = getattr(offered, "function_declarations", [])
    assert (declaration.name, declaration.description) == ("book_room", "Book a room.")
    schema = declaration.parameters_json_schema
    assert list(schema["properties"]) == ["day", "guests", "room"]
    assert schema["properties"]["day"] == {
        "type": "string",
        "format": "date",
        "description": "The first day.",
    }
    bare = Chat()
    await bare.say("hello")
    assert not bare.requests[0].config.tools


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        ({"guests": []}, "Not run: day: Field required."),
        ({**VALID, "day": "soon"}, "Not run: day: Input should be a valid date"),
        ({**VALID, "guests": [{"age": 1}]}, "Not run: guests.0.name: Field required."),
        ({**VALID, "context": 1}, "Not run: context: Extra inputs are not permitted."),
        ({**VALID, "room": "tiny"}, "Not run: room: Input should be 'small' or 'big'."),
    ],
)
async def test_an_invalid_call_fails_without_an_approval_request(
    args: dict[str, Any], sentence: str
) -> None:
    context: Any = None
    tool = gated(typed_tool(book))
    assert await tool.check_require_confirmation(VALID, context)
    assert not await tool.check_require_confirmation(args, context)
    with pytest.raises(ToolError) as refused:
        await tool.run_async(args=args, tool_context=context)
    assert refused.value.message.startswith(sentence)


async def test_a_gated_function_requests_approval() -> None:
    chat = Chat(typed_tool(book, require_confirmation=True), args=VALID)
    await chat.say("book it")
    assert (bookings, [*chat.asked.values()]) == ([], ["book"])
    await chat.decide(yes=[*chat.asked])
    assert [day for day, *_ in bookings] == [date(2026, 3, 4)]


def test_only_gated_functions_are_judged_to_ask() -> None:
    names = ToolNames()
    assert requirement_of(typed_tool(book), names).when == "never"
    assert requirement_of(typed_tool(book, require_confirmation=True), names).when == "always"
    assert requirement_of(gated(typed_tool(book)), names).when == "always"


def test_a_type_that_no_model_can_write_is_refused_by_its_path() -> None:
    def store(data: bytes, context: ToolContext) -> None:
        """Store it."""

    with pytest.raises(DeclarationError, match=r"^store\.data takes bytes"):
        typed_tool(store)
