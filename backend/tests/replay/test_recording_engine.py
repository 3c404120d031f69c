"""Recordings of whole conversations by the engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.tools.function_tool import FunctionTool

from sluicegate.engine.client_request_options import RequestingClient
from sluicegate.errors import AlreadyDecided
from sluicegate.replay import ScriptedModel
from sluicegate.wire.encoding import to_json
from tests.engine.talk import Talk, decide
from tests.replay.recorded_engine import open_recording_engine


async def test_a_conversation_is_recorded_turn_by_turn(tmp_path: Path) -> None:
    async with open_recording_engine(tmp_path) as taped:
        talk = taped.talk(release="progressive")
        await talk.say("story:two_in_sequence")
        await talk.approve()
        await talk.answer(approved=False, reason="not now")
        recording = taped.recording(talk)
    assert (recording.header.app, recording.header.chat) == ("conformance", talk.chat_id)
    turns = recording.turns
    assert [turn.kind for turn in turns] == ["send"] * 3
    for turn, told in zip(turns, talk.turns, strict=True):
        assert turn.request["headers"] == {"x-ai-sdk": "7", "x-release": "progressive"}
        sent = [json.loads(to_json(chunk), object_hook=_without_approver) for chunk in told.chunks]
        assert turn.chunks == sent
    parts = turns[2].request["message"]["parts"]
    assert [part["approval"].get("reason") for part in parts if "approval" in part] == [
        None,
        "not now",
    ]
    states = [(body["tool"], body["state"]) for body in recording.of_kind("decision")]
    assert states == [
        ("search", "requested"),
        ("search", "approved"),
        ("search", "executed"),
        ("update", "requested"),
        ("update", "denied"),
    ]
    events = recording.of_kind("event")
    assert any(event.get("partial") for event in events)
    stored = [event["id"] for event in events if not event.get("partial")]
    assert len(stored) == len(set(stored))
    assert talk.user not in json.dumps([entry.body for entry in recording.entries])


def _without_approver(value: dict[str, Any]) -> dict[str, Any]:
    return {key: item for key, item in value.items() if key != "decidedBy"}


async def test_no_identity_of_the_caller_is_recorded(tmp_path: Path) -> None:
    async with open_recording_engine(tmp_path) as taped:
        talk = taped.talk(user="ann@example.org")
        await talk.say("story:approval")
        await talk.approve()
        text = taped.path(talk).read_text()
    assert "ann@example.org" not in text
    assert "example.org" not in taped.path(talk).name


async def test_a_redacted_field_is_in_no_line(tmp_path: Path) -> None:
    async with open_recording_engine(tmp_path, redact=["amount", "paid"]) as taped:
        talk = taped.talk()
        await talk.say("story:approval")
        await talk.approve()
        recording = taped.recording(talk)
    inputs = [
        chunk["input"] for turn in recording.turns for chunk in turn.chunks if "input" in chunk
    ]
    outputs = [
        chunk["output"] for turn in recording.turns for chunk in turn.chunks if "output" in chunk
    ]
    assert inputs == [{"amount": "[redacted]"}]
    assert outputs == [{"paid": "[redacted]"}]


IBAN = "DE02-1203-0000"


def transfer(iban: str) -> dict[str, str]:
    """Send money."""
    return {"iban": iban, "receipt": json.dumps({"to": {"iban": iban}, "fee": 1})}


@pytest.mark.parametrize("stream", [True, False])
async def test_redacted_values_are_nowhere_in_the_file(tmp_path: Path, stream: bool) -> None:
    call = {"name": "transfer", "args": {"iban": IBAN}, "stream": stream}
    script = {
        "match": "",
        "responses": [{"parts": [{"call": call}]}, {"parts": [{"text": "Sent."}]}],
    }
    agent = LlmAgent(
        name="teller",
        model=ScriptedModel.from_data({"scenarios": [script]}),
        tools=[FunctionTool(transfer, require_confirmation=True)],
    )
    texts = {}
    for names in ((), ("iban",)):
        async with open_recording_engine(
            tmp_path / "-".join(["to", *names]), agent, redact=names
        ) as taped:
            talk = taped.talk()
            await talk.say("pay")
            await talk.approve()
            texts[names] = taped.path(talk).read_text()
    pieces = [IBAN[start : start + 8] for start in range(0, len(IBAN), 8)] if stream else []
    for piece in (IBAN, *pieces):
        assert piece in texts[()]
        assert piece not in texts[("iban",)]
    assert "Sent." in texts[("iban",)]


async def test_a_refusal_stands_in_place_of_a_response(tmp_path: Path) -> None:
    async with open_recording_engine(tmp_path) as taped:
        talk = taped.talk()
        await talk.say("story:approval")
        pending = talk.pending()
        await talk.approve()
        for part in talk.messages[-1]["parts"]:
            if part.get("toolCallId") == pending[0]["toolCallId"]:
                decide(part, approved=False)
        with pytest.raises(AlreadyDecided):
            await talk.post_last()
        *_, last = taped.recording(talk).turns
    assert last.refusal is not None
    assert (last.refusal["type"], last.refusal["code"]) == ("error", "already_decided")
    assert last.chunks == []


async def test_resuming_and_stopping_are_recorded_when_they_have_an_effect(tmp_path: Path) -> None:
    async with open_recording_engine(tmp_path) as taped:
        talk: Talk = taped.talk()
        await taped.engine.stop("nobody", user=talk.user)
        assert (
            await taped.engine.resume("nobody", user=talk.user, client=RequestingClient(7)) is None
        )
        question = {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "story:stop"}]}
        reader = await talk.start({"message": question})
        resumed = await taped.engine.resume(
            talk.chat_id, user=talk.user, client=RequestingClient(6)
        )
        assert resumed is not None
        await taped.engine.stop(talk.chat_id, user=talk.user)
        for each in (reader, resumed):
            async for _ in each.texts():
                pass
            await each.aclose()
        recording = taped.recording(talk)
        assert [path.name for path in taped.path(talk).parent.iterdir()] == [taped.path(talk).name]
    assert [turn.kind for turn in recording.turns] == ["send", "resume", "stop"]
    send, resume, _ = recording.turns
    assert send.chunks == resume.chunks
    assert send.chunks[-1]["type"] == "finish"
