from __future__ import annotations

import json
import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from google.adk.events.event import Event
from google.genai import types

from sluicegate.core.approvals import ApprovalRow, ApprovalState
from sluicegate.core.call_keys import CallKey
from sluicegate.core.chat_and_turn_keys import ChatKey
from sluicegate.errors import RecordingError
from sluicegate.replay.file_recorder import FileRecorder
from sluicegate.replay.recording import compact, load_recording, row_of
from tests.clock import Clock

CHAT = ChatKey("demo", "ann", "c:1")
SEND: dict[str, Any] = {"type": "send", "id": "c:1"}
IBAN = "DE89370400440532013000"
START = '{"type":"start","messageId":"m1"}'


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def recorder(tmp_path: Path, clock: Clock) -> FileRecorder:
    return made(tmp_path, clock)


def made(folder: Path, clock: Clock, **more: Any) -> FileRecorder:
    moment = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    return FileRecorder(folder / "recordings", clock=clock, now=lambda: moment, **more)


def lines(recorder: FileRecorder, chat: ChatKey = CHAT) -> list[dict[str, Any]]:
    recorder.flush(chat)
    return [json.loads(line) for line in recorder.path(chat).read_text("utf-8").splitlines()]


def row(state: ApprovalState = "requested") -> ApprovalRow:
    return ApprovalRow(
        key=CallKey(*CHAT, "i1", "call-1"),
        approval_id="a1",
        tool="pay",
        args_hash="hash",
        requested_at=1.5,
        deadline=9.5,
        state=state,
        decided_by="ann",
        owner="process:turn",
    )


def said(text: str = "Hi", *, author: str = "helper", **more: Any) -> Event:
    content = types.Content(role="model", parts=[types.Part(text=text)])
    return Event(author=author, content=content, id="e1", timestamp=1.0, **more)


def test_a_header_precedes_the_records_in_order(recorder: FileRecorder, clock: Clock) -> None:
    assert recorder.request(CHAT, SEND) == 1
    clock.now += 0.25
    recorder.chunk(CHAT, 1, START)
    clock.now += 1
    recorder.frame(CHAT, {"type": "interrupt"}, sender="client")
    recorder.frame(CHAT, b"\x01\x02", sender="server")
    recorder.approvals(CHAT, [row()])
    recorder.event(CHAT, said())
    assert recorder.request(CHAT, SEND) == 2
    recorder.chunk(CHAT, 1, START)
    header, *entries = lines(recorder)
    assert header == {
        "format": "sluicegate-recording",
        "version": 1,
        "created": "2026-01-02T03:04:05.000+00:00",
        "redaction": [],
        "app": "demo",
        "chat": "c:1",
    }
    told = [(e["turn"], e["dir"], e["kind"], e["delta_ms"]) for e in entries]
    assert told == [
        (1, "client", "request", 0),
        (1, "server", "chunk", 250),
        (1, "client", "frame", 1000),
        (1, "server", "frame", 0),
        (1, "server", "decision", 0),
        (1, "model", "event", 0),
        (2, "client", "request", 0),
        (1, "server", "chunk", 0),
    ]
    assert [entry["seq"] for entry in entries] == list(range(1, 9))
    assert entries[3]["body"] == {"audio": "AQI="}


def test_a_chunk_is_recorded_verbatim(recorder: FileRecorder) -> None:
    text = '{"type":"data-x","data":{"é":1.0,"big":12345678901234567890,"n":null}}'
    recorder.chunk(CHAT, 1, text)
    recorder.flush(CHAT)
    last = recorder.path(CHAT).read_text("utf-8").splitlines()[-1]
    assert last.endswith(f'"body":{text}}}')


@pytest.mark.parametrize(
    ("state", "by"),
    [
        ("requested", "server"),
        ("approved", "client"),
        ("denied", "client"),
        ("executing", "tool"),
        ("executed", "tool"),
        ("unknown", "tool"),
        ("expired", "server"),
        ("superseded", "server"),
    ],
)
def test_a_decision_is_recorded_without_the_name_of_its_approver(
    recorder: FileRecorder, state: ApprovalState, by: str
) -> None:
    recorder.approvals(CHAT, [row(state)])
    _, entry = lines(recorder)
    assert entry["dir"] == by
    assert entry["body"] == {
        "invocation": "i1",
        "call": "call-1",
        "approvalId": "a1",
        "tool": "pay",
        "requestedAt": 1.5,
        "deadline": 9.5,
        "state": state,
    }
    told = row_of(entry["body"], CHAT)
    assert (told.key, told.state, told.deadline) == (row().key, state, 9.5)


def test_the_metadata_of_messages_is_recorded_without_the_approvers(
    recorder: FileRecorder,
) -> None:
    approvals = {"a1": {"state": "approved", "decidedBy": "ann"}}
    finish = {"type": "finish", "messageMetadata": {"model": "m", "approvals": approvals}}
    message = {"id": "m1", "metadata": {"approvals": approvals}, "parts": []}
    recorder.chunk(CHAT, 1, json.dumps(finish))
    recorder.request(CHAT, {**SEND, "message": message})
    _, chunk, request = lines(recorder)
    recorded = {"a1": {"state": "approved"}}
    assert chunk["body"]["messageMetadata"] == {"model": "m", "approvals": recorded}
    assert request["body"]["message"] == {**message, "metadata": {"approvals": recorded}}
    assert approvals["a1"]["decidedBy"] == "ann"


def test_only_a_changed_decision_is_reported(recorder: FileRecorder) -> None:
    for state in ("requested", "requested", "approved", "approved"):
        recorder.approvals(CHAT, [row(state)])
    _, *entries = lines(recorder)
    assert [entry["body"]["state"] for entry in entries] == ["requested", "approved"]


def test_an_event_comes_from_the_user_the_model_or_a_tool(recorder: FileRecorder) -> None:
    response = types.Part(function_response=types.FunctionResponse(name="pay", response={"a": 1}))
    recorder.event(CHAT, said(author="user"))
    recorder.event(CHAT, said())
    recorder.event(CHAT, Event(author="helper", content=types.Content(parts=[response])))
    _, *entries = lines(recorder)
    assert [entry["dir"] for entry in entries] == ["client", "model", "tool"]
    assert Event.model_validate(entries[1]["body"]) == said()


def test_pictures_are_recorded_and_spoken_audio_is_left_out(recorder: FileRecorder) -> None:
    for kind in ("image/png", "audio/pcm;rate=24000"):
        blob = types.Blob(data=b"\x00\xff", mime_type=kind)
        content = types.Content(parts=[types.Part(inline_data=blob)])
        recorder.event(CHAT, Event(author="helper", content=content))
    _, *entries = lines(recorder)
    data = [entry["body"]["content"]["parts"][0]["inlineData"]["data"] for entry in entries]
    assert data == ["AP8=", ""]


def test_only_the_owner_may_read_a_recording(recorder: FileRecorder, tmp_path: Path) -> None:
    recorder.request(CHAT, SEND)
    recorder.flush(CHAT)
    assert stat.S_IMODE(recorder.path(CHAT).stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "recordings").stat().st_mode) == 0o700


def test_existing_recordings_are_tightened(tmp_path: Path) -> None:
    folder = tmp_path / "recordings"
    folder.mkdir(mode=0o755)
    old = folder / "c1.0123abcd.jsonl"
    old.touch(mode=0o644)
    FileRecorder(folder)
    assert [stat.S_IMODE(path.stat().st_mode) for path in (folder, old)] == [0o700, 0o600]


def test_other_files_in_the_folder_stay_as_they_are(tmp_path: Path) -> None:
    notes = tmp_path / "notes.jsonl"
    notes.touch()
    notes.chmod(0o644)
    tmp_path.chmod(0o755)
    FileRecorder(tmp_path)
    assert [stat.S_IMODE(path.stat().st_mode) for path in (tmp_path, notes)] == [0o755, 0o644]


def test_users_with_the_same_chat_id_have_separate_files(recorder: FileRecorder) -> None:
    other = CHAT._replace(user="bob")
    recorder.request(CHAT, SEND)
    assert recorder.request(other, SEND) == 1
    assert len(lines(recorder)) == len(lines(recorder, other)) == 2
    assert "ann" not in recorder.path(CHAT).name
    assert "ann" not in recorder.path(CHAT).read_text()


def test_after_a_restart_the_recording_continues(tmp_path: Path, clock: Clock) -> None:
    first = made(tmp_path, clock)
    first.request(CHAT, SEND)
    first.approvals(CHAT, [row()])
    first.close()
    with first.path(CHAT).open("a") as file:
        file.write('{"seq":3,"tur')
    second = made(tmp_path, clock)
    assert second.request(CHAT, SEND) == 2
    second.approvals(CHAT, [row()])
    second.close()
    recording = load_recording(first.path(CHAT))
    assert [entry.kind for entry in recording.entries] == ["request", "decision", "request"]


def test_two_processes_with_a_shared_folder_append_to_one_file(
    tmp_path: Path, clock: Clock
) -> None:
    first, second = made(tmp_path, clock), made(tmp_path, clock)
    for turn, recorder in enumerate((first, second, second, first, second), start=1):
        assert recorder.request(CHAT, SEND) == turn
        recorder.chunk(CHAT, turn, START)
        recorder.flush(CHAT)
    recording = load_recording(first.path(CHAT))
    assert [turn.number for turn in recording.turns] == [1, 2, 3, 4, 5]


def test_a_file_that_is_not_a_recording_is_not_changed(tmp_path: Path, clock: Clock) -> None:
    first = made(tmp_path, clock)
    first.path(CHAT).write_text("mine\n")
    first.request(CHAT, SEND)
    first.close()
    assert first.path(CHAT).read_text() == "mine\n"
    (other,) = (path for path in first.path(CHAT).parent.iterdir() if path != first.path(CHAT))
    assert other.name.endswith(".2.jsonl")
    assert len(load_recording(other).entries) == 1


def test_a_stop_begins_no_recording(recorder: FileRecorder) -> None:
    assert recorder.request(CHAT, {"type": "stop"}) == 0
    recorder.close()
    assert not recorder.path(CHAT).exists()
    recorder.request(CHAT, SEND)
    assert recorder.request(CHAT, {"type": "stop"}) == 2


def test_a_long_answer_is_written_while_it_is_streamed(recorder: FileRecorder) -> None:
    recorder.request(CHAT, SEND)
    recorder.chunk(CHAT, 1, '{"type":"error","errorText":"' + "x" * 70_000 + '"}')
    assert len(load_recording(recorder.path(CHAT)).entries) == 2


def test_forgotten_chats_are_loaded_again(tmp_path: Path, clock: Clock) -> None:
    recorder = made(tmp_path, clock, max_open=2)
    chats = [CHAT._replace(chat=f"c{number}") for number in range(4)]
    for turn in (1, 2, 3):
        assert [recorder.request(chat, SEND) for chat in chats] == [turn] * 4
    assert len(lines(recorder, chats[0])) == 4


def test_when_nothing_can_be_written_the_chat_continues_unrecorded(
    recorder: FileRecorder, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    recorder.request(CHAT, SEND)
    with monkeypatch.context() as patched:
        patched.setattr("os.open", full)
        recorder.flush(CHAT)
    for _ in range(2):
        recorder.request(CHAT, SEND)
        recorder.flush(CHAT)
    assert caplog.messages == ["a chat is not recorded any more: no space left on device"]
    assert not recorder.path(CHAT).exists()
    other = CHAT._replace(chat="c2")
    recorder.request(other, SEND)
    assert len(lines(recorder, other)) == 2


def test_a_folder_that_cannot_be_used_is_refused_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RecordingError, match=r"cannot be written to .*file/deep"):
        FileRecorder(tmp_path / "file" / "deep")


def test_redacted_values_are_described_in_the_header_only(tmp_path: Path, clock: Clock) -> None:
    recorder = made(tmp_path, clock, redact=["iban"])
    recorder.request(CHAT, {**SEND, "message": {"parts": [{"input": {"iban": IBAN}}]}})
    recorder.chunk(CHAT, 1, f'{{"type":"tool-input-available","input":{{"iban":"{IBAN}"}}}}')
    recorder.frame(CHAT, {"args": {"iban": IBAN}}, sender="server")
    call = types.Part(function_call=types.FunctionCall(name="pay", args={"iban": IBAN}))
    recorder.event(CHAT, Event(author="helper", content=types.Content(parts=[call])))
    header, *_ = lines(recorder)
    assert header["redaction"] == ["iban"]
    assert IBAN not in recorder.path(CHAT).read_text()


def test_a_secret_in_streamed_arguments_is_not_recorded(tmp_path: Path, clock: Clock) -> None:
    recorder = made(tmp_path, clock)
    recorder.request(CHAT, SEND)
    other = {"type": "tool-input-delta", "toolCallId": "c2", "inputTextDelta": '{"note":"hello"}'}
    for piece in ('{"user":"ann","pass', 'word":"47', '11-0815","again":"', '4711-0815"}'):
        delta = {"type": "tool-input-delta", "toolCallId": "c1", "inputTextDelta": piece}
        recorder.chunk(CHAT, 1, compact(delta))
        recorder.chunk(CHAT, 1, compact(other))

    _, *entries = lines(recorder)
    deltas = [entry["body"] for entry in entries if entry["kind"] == "chunk"]
    of_call = [each["inputTextDelta"] for each in deltas if each["toolCallId"] == "c1"]
    assert of_call == ['{"user":"ann","pass', "", "", ""]
    assert [each for each in deltas if each["toolCallId"] == "c2"] == [other] * 4


def test_a_secret_stays_redacted_when_another_reader_has_all_arguments(
    tmp_path: Path, clock: Clock
) -> None:
    recorder = made(tmp_path, clock)
    recorder.request(CHAT, SEND)
    pieces = ('{"password":"', "4711-", '0815"}')
    deltas = [
        compact({"type": "tool-input-delta", "toolCallId": "c1", "inputTextDelta": piece})
        for piece in pieces
    ]
    whole = {"type": "tool-input-available", "toolCallId": "c1", "input": {"password": "4711-0815"}}
    for delta in deltas[:2]:
        recorder.chunk(CHAT, 1, delta)
    recorder.request(CHAT, SEND)
    for delta in (*deltas, compact(whole)):
        recorder.chunk(CHAT, 2, delta)
    recorder.chunk(CHAT, 1, deltas[2])
    recorder.flush(CHAT)

    recorded = recorder.path(CHAT).read_text("utf-8")
    assert not any(piece in recorded for piece in ("4711", "0815"))


def test_a_streamed_secret_of_a_pair_is_not_recorded(tmp_path: Path, clock: Clock) -> None:
    recorder = made(tmp_path, clock)
    recorder.request(CHAT, SEND)
    for piece in ('{"fields":[{"name":"pass', 'word","value":"4711', '-0815"}]}'):
        delta = {"type": "tool-input-delta", "toolCallId": "c1", "inputTextDelta": piece}
        recorder.chunk(CHAT, 1, compact(delta))

    _, *entries = lines(recorder)
    deltas = [entry["body"]["inputTextDelta"] for entry in entries if entry["kind"] == "chunk"]
    assert deltas == ['{"fields":[{"name":"pass', "", ""]
