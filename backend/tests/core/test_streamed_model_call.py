"""Models and agents that stream in ways of their own, through the real ADK."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from google.adk.agents import BaseAgent
from google.adk.events.event import Event
from google.genai import types

from tests.core.adk_conversations import (
    AdkConversation,
    fragment,
    function_call,
    price,
    raw,
    text,
    thought,
    whole,
)
from tests.core.signal_words import replayed, translate, words

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from google.adk.agents.invocation_context import InvocationContext


async def test_an_aggregate_that_reorders_what_was_streamed_keeps_the_streamed_order() -> None:
    pieces = [thought("one "), text("two "), thought("three "), text("four"), text(" five")]
    conversation = AdkConversation(
        raw([*map(fragment, pieces), whole(thought("one three "), text("two four five"))])
    )
    await conversation.say("hi")
    assert await conversation.emitted() == [
        "step helper",
        "reasoning-1 one .",
        "text-1 two .",
        "reasoning-2 three .",
        "text-2 four five.",
        "end",
    ]
    noted = [
        event.custom_metadata for event in await conversation.stored() if event.custom_metadata
    ]
    assert noted == [
        {
            "sluicegate": {
                "blocks": [["thought", 4], ["text", 4], ["thought", 6], ["text", 9]],
            }
        }
    ]


async def test_an_aggregate_that_keeps_the_streamed_order_is_not_noted() -> None:
    conversation = AdkConversation(
        raw([fragment(thought("a")), fragment(text("b")), whole(thought("a"), text("b"))])
    )
    await conversation.say("hi")
    assert [event for event in await conversation.stored() if event.custom_metadata] == []


async def test_content_that_only_the_aggregate_holds_is_emitted_once() -> None:
    conversation = AdkConversation(
        raw([fragment(text("Hel")), whole(text("Hello"), thought("hm"))])
    )
    await conversation.say("hi")
    assert await conversation.emitted() == [
        "step helper",
        "text-1 Hello.",
        "reasoning-1 hm.",
        "end",
    ]


async def test_a_rewritten_aggregate_is_emitted_after_the_streamed_text() -> None:
    conversation = AdkConversation(raw([fragment(text("the secret")), whole(text("[removed]"))]))
    await conversation.say("hi")
    live = words(translate(conversation.live))
    assert live == ["step helper", "text-1 the secret[removed].", "end"]
    assert words(replayed(await conversation.stored())) == [
        "step helper",
        "text-1 [removed].",
        "end",
    ]


async def test_a_call_whose_fragments_have_another_id_is_emitted_once() -> None:
    made = function_call("price", args={"item": "tea"})
    again = function_call("price", args={"item": "tea"})
    answer = [fragment(text("a")), fragment(made), fragment(text("b"))]
    conversation = AdkConversation(
        raw([*answer, whole(text("a"), again, text("b"))], [whole(text("3"))], tools=[price])
    )
    await conversation.say("hi")
    assert (
        conversation.live[1].get_function_calls()[0].id
        != conversation.live[3].get_function_calls()[0].id
    )
    assert (await conversation.emitted())[1:4] == [
        "text-1 ab.",
        'input c1 price {"item":"tea"}',
        'call c1 price {"item":"tea"} free',
    ]


async def test_repeated_call_ids_of_a_model_get_distinct_wire_ids() -> None:
    tea = function_call("price", id="0", args={"item": "tea"})
    milk = function_call("price", id="0", args={"item": "milk"})
    conversation = AdkConversation(
        raw([whole(tea)], [whole(milk)], [whole(text("ok"))], tools=[price])
    )
    await conversation.say("hi")
    assert [line for line in await conversation.emitted() if line.startswith(("call", "done"))] == [
        'call 0 price {"item":"tea"} free',
        'done 0 {"result":3}',
        'call 0~2 price {"item":"milk"} free',
        'done 0~2 {"result":4}',
    ]


async def test_a_streamed_call_missing_from_the_aggregate_ends_in_an_error() -> None:
    begun = function_call("price", id="x", will_continue=True)
    more = types.Part(
        function_call=types.FunctionCall(
            id="x",
            will_continue=True,
            partial_args=[types.PartialArg(json_path="$.item", string_value="te")],
        )
    )
    conversation = AdkConversation(
        raw([fragment(begun), fragment(more), whole(text("No."))], tools=[price])
    )
    await conversation.say("hi")
    assert words(translate(conversation.live)) == [
        "step helper",
        'input x price {"item":"te"}',
        "text-1 No..",
        'call x price {"item":"te"} free',
        "done x error: This call did not finish.",
        "end",
    ]


class OwnAgent(BaseAgent):
    """An agent without a model, whose fragments each have an id of their own."""

    said: list[tuple[bool, str]]

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        for partial, said in self.said:
            content = types.Content(role="model", parts=[types.Part(text=said)])
            yield Event(author=self.name, partial=partial, content=content)


@pytest.mark.parametrize(
    ("said", "emitted"),
    [
        (
            [(False, "a"), (False, "b")],
            ["step own", "text-1 a.", "end", "step own", "text-2 b.", "end"],
        ),
        ([(True, "a"), (True, "b"), (False, "ab")], ["step own", "text-1 ab.", "end"]),
        ([(True, "a"), (False, "abc")], ["step own", "text-1 abc.", "end"]),
        (
            [(True, "one"), (False, "two")],
            ["step own", "text-1 one.", "end", "step own", "text-2 two.", "end"],
        ),
        ([(True, "only")], ["step own", "text-1 only.", "end"]),
    ],
)
async def test_the_text_of_a_custom_agent_is_emitted_once(said: Any, emitted: list[str]) -> None:
    conversation = AdkConversation(OwnAgent(name="own", said=said))
    await conversation.say("hi")
    assert words(translate(conversation.live)) == emitted
