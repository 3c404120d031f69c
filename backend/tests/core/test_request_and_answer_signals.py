"""Single events and what they mean, as tables."""

from __future__ import annotations

from typing import Any

import pytest
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.tools.tool_confirmation import ToolConfirmation
from google.genai import types

from sluicegate.core.signals import Answered, ApprovalRequested, InputAvailable, Settled
from tests.core.adk_conversations import function_call, text
from tests.core.event_factory import (
    ABORTED,
    KINDS,
    PAY,
    confirmation_requests,
    model,
    outcome_note,
    response_event,
)
from tests.core.signal_words import translate, words

CUT = "done 1 error: This call did not finish."
WHERE = model(function_call("where", id="1", args={}))
GUARD = model(function_call("guard", id="1", args={}))
DECOY = confirmation_requests("1")
DECOY.long_running_tool_ids = {"another"}


@pytest.mark.parametrize(
    ("events", "last"),
    [
        ([PAY, response_event({"paid": 5})], 'done 1 {"paid":5}'),
        ([PAY, response_event({"result": None})], 'done 1 {"result":null}'),
        ([PAY, response_event({"n": float("nan")})], 'done 1 {"n":null}'),
        ([PAY, response_event({}, outcome_note("error", "Broken."))], "done 1 error: Broken."),
        ([PAY, response_event({}, outcome_note("denied", "No."))], "done 1 denied: No."),
        ([PAY, response_event({"error": "x"}, outcome_note("odd", ""))], 'done 1 {"error":"x"}'),
        ([PAY, response_event({"a": 1}), response_event({"b": 2})], 'done 1 {"a":1}'),
        ([PAY, response_event({"a": 1}, author="user")], 'done 1 {"a":1}'),
        ([PAY, response_event({}, error_code=ABORTED)], CUT),
        ([PAY, response_event({"other": "exchange"}, call_id="2")], None),
        ([response_event({"nobody": "called"})], None),
        ([WHERE, response_event({"result": "Rome"}, author="user")], 'answer 1 {"result":"Rome"}'),
        (
            [WHERE, response_event({}, outcome_note("error", "Off."), author="user")],
            "answer 1 error: Off.",
        ),
        ([WHERE, *[response_event({"n": 1}, author="user")] * 2], 'answer 1 {"n":1}'),
        ([WHERE, response_event({"by": "plugin"})], 'done 1 {"by":"plugin"}'),
        ([PAY, response_event({"a": 1}), confirmation_requests("1")], 'done 1 {"a":1}'),
        ([PAY, confirmation_requests("1"), confirmation_requests("1")], "ask 1"),
        ([PAY, DECOY], None),
        ([GUARD, response_event({}, outcome_note("denied", "No."))], "done 1 denied: No."),
        ([GUARD, response_event({"result": 1}, author="user")], 'answer 1 {"result":1}'),
        ([WHERE, response_event({}, error_code=ABORTED)], CUT),
    ],
)
def test_the_outcome_of_a_call_is_read_from_fields_and_notes(
    events: list[Event], last: str | None
) -> None:
    emitted = words(translate(events, KINDS))
    made = emitted.index("end") + 1 if "end" in emitted else 0
    assert emitted[made:] == ([] if last is None else [last])


def decided(response: dict[str, Any], **more: Any) -> Event:
    return response_event(
        response, call_id="q1", name="adk_request_confirmation", author="user", **more
    )


@pytest.mark.parametrize(
    ("response", "approved", "reason"),
    [
        ({"confirmed": True}, True, None),
        ({"confirmed": False}, False, None),
        ({"confirmed": "true"}, False, None),
        ({}, False, None),
        ({"confirmed": False, "payload": {"reason": "Too much."}}, False, "Too much."),
        ({"confirmed": False, "payload": "odd"}, False, None),
    ],
)
def test_only_confirmed_true_is_an_approval(
    response: dict[str, Any], approved: bool, reason: str
) -> None:
    signals = translate([PAY, confirmation_requests("1"), decided(response)])
    [answer] = [signal for signal in signals if isinstance(signal, Answered)]
    assert (answer.call_id, answer.approval_id) == ("1", "q1")
    assert (answer.approved, answer.reason) == (approved, reason)


def test_a_request_carries_its_hint_and_its_payload() -> None:
    signals = translate([PAY, confirmation_requests("1")])
    [ask] = [signal.request for signal in signals if isinstance(signal, ApprovalRequested)]
    assert (ask.hint, ask.payload) == ("Sure?", {"limit": 5})


def test_a_request_for_a_call_not_seen_before_makes_the_call_available() -> None:
    assert words(translate([confirmation_requests("9")])) == [
        "step a",
        'call 9 pay {"n":1} free',
        "ask 9",
        "end",
    ]


def test_a_confirmation_response_of_an_abort_is_no_decision() -> None:
    sealed = decided({"error": "x"}, error_code="INVOCATION_ABORTED")
    assert words(translate([PAY, confirmation_requests("1"), sealed]))[-1] == "ask 1"


def test_a_request_that_adk_did_not_mark_is_none() -> None:
    decoy = confirmation_requests("1").model_copy(update={"long_running_tool_ids": None})
    credential = model(function_call("adk_request_credential", id="1", args={}))
    assert words(translate([decoy, credential])) == []


def test_a_placeholder_beside_a_result_is_left_out() -> None:
    parts = [
        *parts_of(response_event({"error": "wait"})),
        *parts_of(response_event({"b": 2}, call_id="2")),
    ]
    waiting = EventActions(requested_tool_confirmations={"1": ToolConfirmation()})
    two = model(function_call("pay", id="1"), function_call("price", id="2"))
    emitted = words(translate([two, model(*parts, actions=waiting), confirmation_requests("1")]))
    assert emitted[-2:] == ['done 2 {"b":2}', "ask 1"]


def parts_of(event: Event) -> list[types.Part]:
    return (event.content and event.content.parts) or []


def test_credentials_from_the_browser_are_never_shown() -> None:
    wish = {"authConfig": {"authScheme": {"type": "apiKey"}, "rawAuthCredential": {"apiKey": "s"}}}
    ask = model(
        function_call("adk_request_credential", id="1", args=wish), long_running_tool_ids={"1"}
    )
    secret = {"exchangedAuthCredential": {"oauth2": {"authResponseUri": "s3cret"}}}
    signals = translate([ask, response_event(secret, name="adk_request_credential", author="user")])
    assert words(signals) == [
        "step a",
        'call 1 adk_request_credential {"authScheme":"apiKey"} client',
        "end",
        'answer 1 {"connected":true}',
    ]


@pytest.mark.parametrize(
    "event",
    [
        Event(author="a", actions=EventActions(end_of_agent=True)),
        Event(author="a", actions=EventActions(agent_state={"nodes": {}})),
        Event(author="a", actions=EventActions(state_delta={"k": 1})),
        Event.model_validate({"author": "w", "output": {"a": 1}, "node_path": "w@1/n@1"}),
        model(text("")),
        model(types.Part(thought_signature=b"s")),
        Event(author="user", content=types.Content(role="user", parts=[text("hello")])),
        response_event({"result": None}, name="transfer_to_agent"),
        model(function_call("transfer_to_agent", id="1", args={"agent_name": "b"})),
    ],
)
def test_bookkeeping_events_have_no_signals(event: Event) -> None:
    assert translate([event]) == []


def test_the_text_of_a_task_agent_is_no_progress() -> None:
    made = model(function_call("child", id="1", args={}), author="root")
    said = model(
        text("Working."),
        author="child",
        branch="child@1",
        isolation_scope="1",
        node_path="root@1/child@1",
    )
    emitted = words(translate([made, said]))
    assert emitted[-3:] == ["step child@1/child", "text-1 Working..", "end"]


def test_progress_after_the_outcome_of_a_call_is_dropped() -> None:
    made = model(function_call("count", id="1", args={}))
    said = model(text("At 1"), author="count", branch="count@1", node_path="a@1/count@1")
    emitted = words(translate([made, said, response_event({"n": 2}, name="count"), said]))
    assert emitted[-2:] == ['progress 1 "At 1"', 'done 1 {"n":2}']


def test_arguments_and_outputs_are_json() -> None:
    made = model(function_call("pay", id="1", args={"n": float("inf"), "big": 2**70}))
    signals = translate([made, response_event({"raw": b"abc"})])
    [call] = [signal.call for signal in signals if isinstance(signal, InputAvailable)]
    [done] = [signal.outcome for signal in signals if isinstance(signal, Settled)]
    assert call.args == {"n": None, "big": str(2**70)}
    assert done.output == {"raw": "[3 bytes]"}
