"""A recorded chat that is played to a client, request by request."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest

from sluicegate.engine.chat_engine import ChatEngine
from sluicegate.engine.client_request_options import RequestingClient
from sluicegate.errors import AlreadyDecided, RecordingError, Unknown
from sluicegate.replay import ScriptedModel
from sluicegate.replay.playback_engine import PlaybackEngine
from sluicegate.replay.recorded_script import recorded_scenarios
from sluicegate.replay.recording import Recording
from sluicegate.replay.scenario import ScriptedPart
from sluicegate.replay.script_position import Position
from sluicegate.wire.encoding import to_json
from tests.engine.talk import Talk, Turn, decide
from tests.replay.recorded_engine import open_recording_engine


async def recorded(folder: Path, *, redact: tuple[str, ...] = (), **more: Any) -> Recording:
    """An approval, then a denial with a reason, then another message."""
    async with open_recording_engine(folder, redact=redact) as taped:
        talk = taped.talk(**more)
        await talk.say("story:two_in_sequence")
        await talk.approve()
        await talk.answer(approved=False, reason="not now")
        await talk.say("story:plain")
        return taped.recording(talk)


def listener(recording: Recording, **more: Any) -> Talk:
    return Talk(cast("ChatEngine", PlaybackEngine(recording)), **more)


def chunks_of(turn: Turn) -> list[dict[str, Any]]:
    return [json.loads(to_json(chunk)) for chunk in turn.chunks]


def error(turn: Turn) -> str:
    return str(chunks_of(turn)[-1]["errorText"])


async def test_each_request_is_answered_as_it_was(tmp_path: Path) -> None:
    recording = await recorded(tmp_path)
    talk = listener(recording)
    await talk.say("story:two_in_sequence")
    await talk.approve()
    await talk.answer(approved=False, reason="not now")
    await talk.say("story:plain")
    assert [chunks_of(turn) for turn in talk.turns] == [turn.chunks for turn in recording.turns]
    chat = await talk.engine.get_chat(talk.chat_id, user=talk.user)
    assert chat["messages"] == talk.messages
    assert (chat["status"], chat["title"]) == ("ready", "story:two_in_sequence")


async def test_every_chat_starts_with_the_first_turn(tmp_path: Path) -> None:
    recording = await recorded(tmp_path)
    engine = cast("ChatEngine", PlaybackEngine(recording))
    first, second = Talk(engine), Talk(engine, user="bob")
    for talk in (first, second):
        turn = await talk.say("story:two_in_sequence")
        assert chunks_of(turn) == recording.turns[0].chunks
    chat = await engine.get_chat(first.chat_id, user=first.user)
    assert chat["status"] == "waiting"
    listed = await engine.list_chats(user="bob", limit=5, after=None, query=None)
    assert listed["chats"] == [
        {
            "id": second.chat_id,
            "title": "story:two_in_sequence",
            "updatedAt": recording.header.created,
            "pendingApprovals": 1,
            "status": "waiting",
        }
    ]
    with pytest.raises(Unknown):
        await engine.get_chat(first.chat_id, user="bob")


async def test_the_first_difference_is_named_and_the_recorded_answer_continues(
    tmp_path: Path,
) -> None:
    recording = await recorded(tmp_path)
    talk = listener(recording)
    wrong = await talk.say("story:plain")
    assert error(wrong) == (
        'Turn 1 differs from the recording: the text is "story:plain" and was '
        '"story:two_in_sequence".'
    )
    talk.messages.clear()
    await talk.say("story:two_in_sequence")
    (asked,) = talk.pending()
    which = f"search ({asked['approval']['id']})"
    held = [dict(part) for part in talk.messages[-1]["parts"]]
    wrong = await talk.answer(approved=False)
    assert error(wrong) == (
        f"Turn 2 differs from the recording: the answer to {which} is false and was true."
    )
    talk.messages[-1]["parts"] = held
    await talk.approve()
    wrong = await talk.answer(approved=False, reason="never")
    assert '"never" and was "not now"' in error(wrong)


async def test_after_the_last_turn_the_end_is_reported(tmp_path: Path) -> None:
    recording = await recorded(tmp_path)
    short = Recording(recording.header, [e for e in recording.entries if e.turn == 1])
    talk = listener(short)
    await talk.say("story:two_in_sequence")
    turn = await talk.approve()
    sentence = "The recording ends after turn 1; start a new chat to play it again."
    assert error(turn) == sentence


async def test_a_recorded_refusal_is_made_again(tmp_path: Path) -> None:
    async with open_recording_engine(tmp_path) as taped:
        talk = taped.talk()
        await _contradict(talk)
        recording = taped.recording(talk)
    await _contradict(listener(recording))


async def _contradict(talk: Talk) -> None:
    await talk.say("story:approval")
    (asked,) = talk.pending()
    await talk.approve()
    for part in talk.messages[-1]["parts"]:
        if part.get("toolCallId") == asked["toolCallId"]:
            decide(part, approved=False)
    with pytest.raises(AlreadyDecided, match="already"):
        await talk.post_last()


async def test_redacted_values_match_any_value(tmp_path: Path) -> None:
    recording = await recorded(tmp_path, redact=("text", "reason"))
    talk = listener(recording)
    await talk.say("whatever")
    await talk.approve()
    turn = await talk.answer(approved=False, reason="for another reason")
    assert not turn.failed


async def test_a_model_repeats_redacted_arguments_but_finds_no_redacted_message(
    tmp_path: Path,
) -> None:
    def parts(recording: Recording, text: str) -> list[ScriptedPart]:
        scenarios = recorded_scenarios(recording)
        position = Position(agent=scenarios.scenarios[0].agent, text=text, answered=0)
        return ScriptedModel(scenarios=scenarios).choose_response(position).parts

    text = "story:two_in_sequence"
    full = parts(await recorded(tmp_path / "full"), text)
    [name] = {name for part in full if part.call is not None for name in part.call.args}
    masked = parts(await recorded(tmp_path / "masked", redact=(name,)), text)
    assert [part.call.args for part in masked if part.call is not None] == [{name: "[redacted]"}]
    unknown = parts(await recorded(tmp_path / "text", redact=("text",)), text)
    assert "The script has no scenario" in (unknown[0].text or "")


async def test_a_6_client_receives_the_supported_chunks_of_a_recording_for_7(
    tmp_path: Path,
) -> None:
    recording = await recorded(tmp_path, major=7)
    talk = listener(recording, major=6)
    turn = await talk.say("story:two_in_sequence")
    kept = [chunk for chunk in chunks_of(turn) if chunk["type"] == "tool-approval-request"]
    assert [sorted(chunk) for chunk in kept] == [["approvalId", "toolCallId", "type"]]


async def test_pauses_are_left_out_or_kept_but_for_long_ones(tmp_path: Path) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    taped = await recorded(tmp_path)
    (first, *_) = taped.turns
    pauses = iter([40, 9_000, *[0] * (len(first.chunks) - 2)])
    entries = [
        entry.model_copy(update={"delta_ms": next(pauses)})
        if entry.kind == "chunk" and entry.turn == first.number
        else entry
        for entry in taped.entries
    ]
    recording = Recording(taped.header, entries)
    for paced in (False, True):
        engine = PlaybackEngine(recording, paced=paced, sleep=sleep)
        await Talk(cast("ChatEngine", engine)).say("story:two_in_sequence")
    assert slept[:2] == [0.04, 3.0]
    assert len(slept) == len(first.chunks)


async def test_a_resume_is_played_where_one_was_recorded(tmp_path: Path) -> None:
    async with open_recording_engine(tmp_path) as taped:
        talk = taped.talk()
        question = {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "story:stop"}]}
        reader = await talk.start({"message": question})
        resumed = await taped.engine.resume(
            talk.chat_id, user=talk.user, client=RequestingClient(7)
        )
        assert resumed is not None
        await taped.engine.stop(talk.chat_id, user=talk.user)
        for each in (reader, resumed):
            assert [text async for batch in each.texts() for text in batch]
            await each.aclose()
        await talk.say("story:plain")
        recording = taped.recording(talk)
    again = listener(recording)
    engine = again.engine
    assert await engine.resume(again.chat_id, user=again.user, client=RequestingClient(7)) is None
    await again.say("story:stop")
    await engine.stop(again.chat_id, user=again.user)
    played = await engine.resume(again.chat_id, user=again.user, client=RequestingClient(7))
    assert played is not None
    chunks = [json.loads(text) async for batch in played.texts() for text in batch]
    assert chunks == recording.turns[1].chunks
    assert not (await again.say("story:plain")).failed


async def test_what_was_not_recorded_is_refused(tmp_path: Path) -> None:
    engine = cast("ChatEngine", PlaybackEngine(await recorded(tmp_path)))
    with pytest.raises(Unknown, match="only what was recorded"):
        await engine.get_file("c1", "a.png", user="ann")


def test_a_recording_without_a_request_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(
        '{"format":"sluicegate-recording","version":1,"created":"","redaction":[],'
        '"app":"demo","chat":"c1"}\n'
    )
    with pytest.raises(RecordingError, match=r"a\.jsonl holds no request"):
        PlaybackEngine.from_file(file)
