"""What becomes of calls, through the real ADK: each conversation live, and again from its log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from google.adk.events.event import Event
from google.adk.tools._request_input_tool import request_input
from google.genai import types

from sluicegate.core.signals import Answered, ApprovalRequested, Signal
from sluicegate.core.translator import Translator
from sluicegate.tools.client_tools import client_tool
from sluicegate.wire.stored_files import StoredFile
from tests.core.adk_conversations import GATED, AdkConversation, agent, call, gated_pay, price
from tests.core.signal_words import FILES, translate, words

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

PNG = b"\x89PNG picture"


def draw() -> types.Part:
    """Draw a picture."""
    return types.Part(inline_data=types.Blob(data=PNG, mime_type="image/png"))


async def count(upto: int) -> AsyncIterator[Any]:
    """Count aloud."""
    for number in range(1, upto):
        yield Event.model_validate({"message": f"at {number}"})
    yield {"counted": upto}


def send(to: str, lines: list[dict[str, float]], ok: bool, note: str | None) -> str:
    """Send."""
    return "sent"


def translate_open(events: Sequence[Event]) -> list[Signal]:
    """Signals of events, nothing said to end."""
    translator = Translator(GATED, files_url=FILES)
    return [signal for event in events for signal in translator.feed(event)]


@pytest.mark.parametrize(("yes", "outcome"), [(True, '{"paid":5}'), (False, None)])
async def test_a_gated_call_requests_approval_and_its_placeholder_is_no_outcome(
    yes: bool, outcome: str | None
) -> None:
    tools = [gated_pay()]
    conversation = AdkConversation(
        agent([{"text": "I pay."}, call("pay", amount=5)], [{"text": "Done."}], tools=tools)
    )
    await conversation.say("pay")
    asked = [*conversation.asked]
    first = await conversation.emitted()
    assert first == [
        "step helper",
        "text-1 I pay..",
        'input c1 pay {"amount":5}',
        'call c1 pay {"amount":5} gated',
        "end",
        "ask c1",
    ]
    await conversation.decide(yes=asked if yes else [], no=[] if yes else asked)
    rest = (await conversation.emitted())[len(first) :]
    assert rest[0].startswith("done c1 ")
    assert outcome is None or rest[0] == f"done c1 {outcome}"
    assert rest[1:] == ["step helper", "text-2 Done..", "end"]


async def test_a_request_has_the_ids_that_adk_expects_in_its_answer() -> None:
    tools = [gated_pay()]
    conversation = AdkConversation(agent([call("pay", amount=5)], tools=tools))
    await conversation.say("pay")
    confirmation = next(iter(conversation.asked))
    [asked] = [s.request for s in translate(conversation.live) if isinstance(s, ApprovalRequested)]
    assert (asked.approval_id, asked.confirmation_id) == (confirmation, confirmation)
    assert asked.answer_name == "adk_request_confirmation"
    assert asked.invocation == conversation.live[0].invocation_id
    assert "pay()" in asked.hint


@pytest.mark.parametrize(
    ("calls", "events"),
    [
        ([call("pay", amount=1), call("pay", amount=2)], ["ask c1", "ask c2"]),
        ([call("pay", amount=1), call("price", item="a")], ['done c2 {"result":1}', "ask c1"]),
        ([call("price", item="a"), call("pay", amount=1)], ['done c1 {"result":1}', "ask c2"]),
    ],
)
async def test_placeholders_are_dropped_in_either_event_order(
    calls: list[dict[str, Any]], events: list[str]
) -> None:
    tools = [gated_pay(), price]
    conversation = AdkConversation(agent(calls, [{"text": "Done."}], tools=tools))
    await conversation.say("go")
    emitted = await conversation.emitted()
    assert emitted[emitted.index("end") + 1 :] == events
    await conversation.decide(yes=[*conversation.asked])
    done = [line for line in await conversation.emitted() if line.startswith("done")]
    assert len(done) == 2


async def test_answers_of_the_user_are_read_from_the_log() -> None:
    tools = [gated_pay()]
    conversation = AdkConversation(
        agent([call("pay", amount=1), call("pay", amount=2)], [{"text": "Done."}], tools=tools)
    )
    await conversation.say("go")
    first, second = conversation.asked
    await conversation.decide(yes=[first], no=[second])
    emitted = words(translate(await conversation.stored(), GATED))
    assert [line for line in emitted if line.startswith("answer")] == [
        "answer c1 yes",
        "answer c2 no",
    ]


async def test_streamed_arguments_are_the_json_of_the_call() -> None:
    args = {"to": 'Ann & "Bob"', "lines": [{"n": 1}, {"n": 2.5}], "ok": True, "note": None}
    conversation = AdkConversation(
        agent(
            {"parts": [{"text": "I"}, call("send", stream=True, **args)], "delta_chars": 2},
            tools=[send],
        )
    )
    await conversation.say("go")
    emitted = await conversation.emitted()
    text = '{"to":"Ann & \\"Bob\\"","lines":[{"n":1.0},{"n":2.5}],"ok":true,"note":null}'
    assert emitted[2] == f"input c1 send {text}"
    pieces = [event for event in conversation.live if event.partial and event.get_function_calls()]
    assert len(pieces) > 5
    live = [len(translate(conversation.live[: at + 1])) for at in range(len(pieces))]
    assert live == sorted(live)


async def test_the_input_of_a_call_streams_before_it_is_complete() -> None:
    script = {"parts": [call("price", stream=True, item="chamomile")], "delta_chars": 2}
    conversation = AdkConversation(agent(script, tools=[price]))
    await conversation.say("go")
    before = conversation.live[: next(i for i, e in enumerate(conversation.live) if not e.partial)]
    assert words(translate_open(before))[-1] == 'input c1 price {"item":"chamomile'


async def test_a_picture_that_a_tool_returns_is_a_file_after_its_outcome() -> None:
    conversation = AdkConversation(agent([call("draw")], [{"text": "There."}], tools=[draw]))
    await conversation.say("draw")
    emitted = await conversation.emitted()
    name = StoredFile.of(PNG, "image/png").name
    at = emitted.index("end")
    assert emitted[at + 1 : at + 3] == ["done c1 {}", f"file /files/{name} image/png"]


async def test_a_generator_tool_shows_its_progress() -> None:
    conversation = AdkConversation(
        agent([call("count", upto=3)], [{"text": "Done."}], tools=[count])
    )
    await conversation.say("count")
    emitted = await conversation.emitted()
    at = emitted.index("end")
    assert emitted[at + 1 : at + 4] == [
        'progress c1 "at 1"',
        'progress c1 "at 2"',
        'done c1 {"counted":3}',
    ]
    assert not any("data-agent" in line for line in emitted)


async def test_a_client_side_tool_is_answered_by_the_browser() -> None:
    tools = [client_tool("get_location", "Where?", {"type": "object", "properties": {}})]
    conversation = AdkConversation(agent([call("get_location")], [{"text": "Rome."}], tools=tools))
    await conversation.say("where?")
    [location] = conversation.open_calls
    await conversation.respond(location.id or "", "get_location", {"result": {"city": "Rome"}})
    emitted = await conversation.emitted()
    assert emitted[1:] == [
        "input c1 get_location {}",
        "call c1 get_location {} client",
        "end",
        "step helper",
        "text-1 Rome..",
        "end",
    ]
    logged = translate(await conversation.stored(), GATED)
    [answer] = [signal for signal in logged if isinstance(signal, Answered)]
    assert answer.outcome is not None
    assert answer.outcome.output == {"result": {"city": "Rome"}}


async def test_a_question_of_the_agent_is_answered_by_the_browser() -> None:
    conversation = AdkConversation(
        agent(
            [call("adk_request_input", message="Name?")],
            [{"text": "Hi Ann."}],
            tools=[request_input],
        )
    )
    await conversation.say("hi")
    [question] = conversation.questions
    await conversation.respond(question.id, question.name, {"result": "Ann"})
    emitted = await conversation.emitted()
    assert emitted[2] == 'call c1 adk_request_input {"message":"Name?"} client'
    assert emitted[4:] == ["step helper", "text-1 Hi Ann..", "end"]
    logged = words(translate(await conversation.stored()))
    assert 'answer c1 {"result":"Ann"}' in logged
