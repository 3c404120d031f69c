"""The stored conversation as chunks and messages, where no ordinary story leads."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from google.adk.events.event import Event
from google.genai import types

from sluicegate.core.exchanges import Exchange, TurnStamp, exchanges
from sluicegate.core.history import assistant_message, rebuild
from sluicegate.core.keys import CallKey
from sluicegate.core.ledger import ApprovalRow
from sluicegate.core.release import Release
from sluicegate.core.signals import ToolFacts
from tests.core.events import PAY, asks, gave
from tests.core.told import Tools

GATED = Tools({"pay": ToolFacts(kind="gated")})
SUPERSEDED = ApprovalRow(
    CallKey("app", "ann", "chat", "i", "1"), "q1", "pay", "hash", 1.0, 2.0, state="superseded"
)


def stamped(events: list[Event], release: Release) -> list[Event]:
    stamp = TurnStamp("m", "t1", "u", release, "call", 1.0, "scripted").as_metadata()
    for event in events:
        notes = (event.custom_metadata or {}).get("sluicegate", {})
        event.custom_metadata = {"sluicegate": {**stamp["sluicegate"], **notes}}
    return events


def reply(confirmed: bool) -> Event:
    given = types.FunctionResponse(
        id="q1", name="adk_request_confirmation", response={"confirmed": confirmed}
    )
    content = types.Content(role="user", parts=[types.Part(function_response=given)])
    return Event(author="user", invocation_id="i", content=content)


@pytest.mark.parametrize("release", ["deferred", "progressive"])
def test_a_card_that_was_closed_in_the_turn_that_asked_is_asked_first(release: Release) -> None:
    question: dict[str, Any] = {"role": "user", "parts": [{"text": "pay"}]}
    words = "Not run: Superseded before it was answered."
    events = stamped(
        [
            Event(author="user", invocation_id="i", content=types.Content(**question)),
            PAY.model_copy(deep=True),
            asks("1"),
            reply(confirmed=False),
            gave(
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
def test_a_yes_that_the_ledger_has_closed_waits_for_nobody(
    release: Release, is_running: bool, state: str
) -> None:
    question: dict[str, Any] = {"role": "user", "parts": [{"text": "pay"}]}
    events = stamped(
        [
            Event(author="user", invocation_id="i", content=types.Content(**question)),
            PAY.model_copy(deep=True),
            asks("1"),
            # ADK has the answer, and its run was cut before the call; the end is in no log.
            reply(confirmed=True),
        ],
        release,
    )
    [exchange] = exchanges(events)
    rows = {"q1": replace(SUPERSEDED, answer=True)}
    rebuilt = rebuild(exchange, rows, GATED, files_url="/f/", running=is_running)
    [card] = [part for part in assistant_message(rebuilt, rows)["parts"] if "approval" in part]
    assert (card["state"], card["approval"]["approved"]) == (state, True)


@pytest.mark.parametrize("release", ["deferred", "progressive"])
def test_a_question_that_ended_with_its_turn_was_answered_by_nobody(release: Release) -> None:
    question: dict[str, Any] = {"role": "user", "parts": [{"text": "pay"}]}
    words = "Not run: Superseded before it was answered."
    ended = {"sluicegate": {"outcomes": {"1": {"kind": "denied", "text": words}}}}
    events = stamped(
        [
            Event(author="user", invocation_id="i", content=types.Content(**question)),
            PAY.model_copy(deep=True),
            asks("1"),
            gave({"error": words}, ended),
        ],
        release,
    )
    [exchange] = exchanges(events)
    rows = {"q1": SUPERSEDED}
    message = assistant_message(rebuild(exchange, rows, GATED, files_url="/f/"), rows)
    [card] = [part for part in message["parts"] if "approval" in part]
    assert (card["state"], card["approval"]["approved"]) == ("output-denied", False)
    assert card["approval"]["reason"] == "Superseded before it was answered."
