"""Functions that get what their annotations say, through the real Runner (S1-R11, S1-R12)."""

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

from sluicegate.engine.agents.tool_facts import ToolNames, judge
from sluicegate.errors import DeclarationError, ToolError
from sluicegate.replay import ScriptedModel
from sluicegate.tools import gated, typed_tool
from tests.agents.conversation import Conversation, results


class Guest(BaseModel):
    name: str
    age: int = 30


taken: list[tuple[Any, ...]] = []


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
    taken.append((day, guests, room, context.function_call_id is not None))
    return {"booked": day.isoformat()}


class Chat(Conversation):
    """A conversation that keeps what the model was sent."""

    def __init__(self, *tools: BaseTool, args: dict[str, Any] | None = None) -> None:
        self.requests: list[LlmRequest] = []
        taken.clear()
        calls = [{"call": {"name": tool.name, "args": args}} for tool in tools]
        steps = [{"parts": [*calls]}, {"parts": [{"text": "Done."}]}]
        if not tools:
            steps = [{"parts": [{"text": "Done."}]}]
        model = ScriptedModel.from_data({"scenarios": [{"match": "", "responses": steps}]})

        def see(callback_context: CallbackContext, llm_request: LlmRequest) -> None:
            self.requests.append(llm_request)

        agent = LlmAgent(name="a", model=model, tools=[*tools], before_model_callback=see)
        super().__init__(agent)


FITS = {"day": "2026-03-04", "guests": [{"name": "Ada"}]}


async def test_a_function_gets_what_its_annotations_say() -> None:
    chat = Chat(typed_tool(book), args=FITS)
    await chat.say("book it")
    assert taken == [(date(2026, 3, 4), [Guest(name="Ada")], "small", True)]
    assert results(chat.events) == [("book", {"booked": "2026-03-04"})]
    assert chat.text == "Done."


async def test_the_request_offers_what_the_agent_was_given_and_nothing_by_itself() -> None:
    chat = Chat(typed_tool(book, name="book_room"), args=FITS)
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
        ({**FITS, "day": "soon"}, "Not run: day: Input should be a valid date"),
        ({**FITS, "guests": [{"age": 1}]}, "Not run: guests.0.name: Field required."),
        ({**FITS, "context": 1}, "Not run: context: Extra inputs are not permitted."),
        ({**FITS, "room": "tiny"}, "Not run: room: Input should be 'small' or 'big'."),
    ],
)
async def test_a_call_that_does_not_fit_is_not_run_and_nobody_is_asked(
    args: dict[str, Any], sentence: str
) -> None:
    context: Any = None
    tool = gated(typed_tool(book))
    assert await tool.check_require_confirmation(FITS, context)
    assert not await tool.check_require_confirmation(args, context)
    with pytest.raises(ToolError) as refused:
        await tool.run_async(args=args, tool_context=context)
    assert refused.value.message.startswith(sentence)


async def test_a_gated_function_asks_first() -> None:
    chat = Chat(typed_tool(book, require_confirmation=True), args=FITS)
    await chat.say("book it")
    assert (taken, [*chat.asked.values()]) == ([], ["book"])
    await chat.decide(yes=[*chat.asked])
    assert [day for day, *_ in taken] == [date(2026, 3, 4)]


def test_only_what_is_declared_to_ask_may_gate() -> None:
    names = ToolNames()
    assert judge(typed_tool(book), names).asks == "never"
    assert judge(typed_tool(book, require_confirmation=True), names).asks == "always"
    assert judge(gated(typed_tool(book)), names).asks == "always"


def test_what_no_model_can_write_is_refused_by_its_path() -> None:
    def store(data: bytes, context: ToolContext) -> None:
        """Store it."""

    with pytest.raises(DeclarationError, match=r"^store\.data takes bytes"):
        typed_tool(store)
