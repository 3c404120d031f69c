"""The stored conversation as chunks and messages, where no ordinary conversation leads."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from google.adk.events.event import Event
from google.genai import types

from sluicegate.core.approvals import ApprovalRow
from sluicegate.core.call_keys import CallKey
from sluicegate.core.exchanges import Exchange, exchanges
from sluicegate.core.history import assistant_message, rebuild
from sluicegate.core.release.policies import ReleasePolicy
from sluicegate.core.tool_facts import ToolFacts
from sluicegate.core.turn_stamp import TurnStamp
from tests.core.adk_conversations import function_call
from tests.core.event_factory import PAY, confirmation_requests, model, response_event
from tests.core.signal_words import Tools

GATED = Tools({"pay": ToolFacts(kind="gated")})
SUPERSEDED = ApprovalRow(
    CallKey("app", "ann", "chat", "i", "1"), "q1", "pay", "hash", 1.0, 2.0, state="superseded"
)


def stamped(events: list[Event], release: ReleasePolicy) -> list[Event]:
    stamp = TurnStamp("m", "t1", "u", release, "call", 1.0, "scripted").as_metadata()
    for event in events:
        notes = (event.custom_metadata or {}).get("sluicegate", {})
        event.custom_metadata = {"sluicegate": {**stamp["sluicegate"], **notes}}
    return events


def reply(*said: str) -> Event:
    parts = [
        types.Part(
            function_response=types.FunctionResponse(
                id=f"q{number}",
                name="adk_request_confirmation",
                response={"confirmed": word == "yes"},
            )
        )
        for number, word in enumerate(said, start=1)
    ]
    return Event(author="user", invocation_id="i", content=types.Content(role="user", parts=parts))


@pytest.mark.parametrize("release", ["deferred", "progressive"])
def test_a_request_superseded_in_its_own_turn_is_shown_before_its_response(
    release: ReleasePolicy,
) -> None:
    question: dict[str, Any] = {"role": "user", "parts": [{"text": "pay"}]}
    words = "Not run: Superseded before it was answered."
    events = stamped(
        [
            Event(author="user", invocation_id="i", content=types.Content(**question)),
            PAY.model_copy(deep=True),
            confirmation_requests("1"),
            reply("no"),
            response_event(
                {"error": words},
                {"sluicegate": {"outcomes": {"1": {"kind": "denied", "text": words}}}},
            ),
        ],
        release,
    )
    [exchange] = exchanges(events)
    assert isinstance(exchange, Exchange)
    rows = {"q1": SUPERSEDED}
    message = assistant_message(rebuild(exchange, rows, GATED, files_url="/f/"), rows)
    [card] = [part for part in message["parts"] if "approval" in part]
    assert (card["state"], card["approval"]["approved"]) == ("output-denied", False)


@pytest.mark.parametrize("release", ["deferred", "progressive"])
@pytest.mark.parametrize(
    ("is_running", "state"), [(True, "approval-responded"), (False, "output-error")]
)
def test_an_approval_that_the_ledger_has_superseded_no_longer_waits(
    release: ReleasePolicy, is_running: bool, state: str
) -> None:
    question: dict[str, Any] = {"role": "user", "parts": [{"text": "pay"}]}
    events = stamped(
        [
            Event(author="user", invocation_id="i", content=types.Content(**question)),
            PAY.model_copy(deep=True),
            confirmation_requests("1"),
            # ADK has the answer, and its run was cut before the call; the end is in no log.
            reply("yes"),
        ],
        release,
    )
    [exchange] = exchanges(events)
    rows = {"q1": replace(SUPERSEDED, answer=True)}
    rebuilt = rebuild(exchange, rows, GATED, files_url="/f/", running=is_running)
    [card] = [part for part in assistant_message(rebuilt, rows)["parts"] if "approval" in part]
    assert (card["state"], card["approval"]["approved"]) == (state, True)


@pytest.mark.parametrize("release", ["deferred", "progressive"])
def test_a_request_superseded_by_the_end_of_its_turn_has_the_closing_reason(
    release: ReleasePolicy,
) -> None:
    question: dict[str, Any] = {"role": "user", "parts": [{"text": "pay"}]}
    words = "Not run: Superseded before it was answered."
    ended = {"sluicegate": {"outcomes": {"1": {"kind": "denied", "text": words}}}}
    events = stamped(
        [
            Event(author="user", invocation_id="i", content=types.Content(**question)),
            PAY.model_copy(deep=True),
            confirmation_requests("1"),
            response_event({"error": words}, ended),
        ],
        release,
    )
    [exchange] = exchanges(events)
    rows = {"q1": SUPERSEDED}
    message = assistant_message(rebuild(exchange, rows, GATED, files_url="/f/"), rows)
    [card] = [part for part in message["parts"] if "approval" in part]
    assert (card["state"], card["approval"]["approved"]) == ("output-denied", False)
    assert card["approval"]["reason"] == "Superseded before it was answered."


@pytest.mark.parametrize("release", ["deferred", "progressive"])
def test_a_refused_call_ends_with_the_exchange_that_the_ledger_has_closed(
    release: ReleasePolicy,
) -> None:
    question: dict[str, Any] = {"role": "user", "parts": [{"text": "pay twice"}]}
    calls = [function_call("pay", id=number, args={}) for number in "12"]
    events = stamped(
        [
            Event(author="user", invocation_id="i", content=types.Content(**question)),
            model(*calls),
            confirmation_requests("1", "2"),
            reply("yes", "no"),
        ],
        release,
    )
    [exchange] = exchanges(events)
    denied = replace(SUPERSEDED, key=SUPERSEDED.key._replace(call="2"), approval_id="q2")
    rows = {
        "q1": replace(SUPERSEDED, answer=True),
        "q2": replace(denied, state="denied", answer=False, reason="no"),
    }
    rebuilt = rebuild(exchange, rows, GATED, files_url="/f/")
    cards = [part for part in assistant_message(rebuilt, rows)["parts"] if "approval" in part]
    assert [card["state"] for card in cards] == ["output-error", "output-denied"]
    assert not rebuilt.is_unfinished
