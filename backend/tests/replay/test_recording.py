from __future__ import annotations

from pathlib import Path

import pytest

from sluicegate.errors import RecordingError
from sluicegate.replay.recording import load_recording, parse_recording

HEADER = (
    '{"format":"sluicegate-recording","version":1,"created":"2026-01-01T00:00:00.000+00:00",'
    '"redaction":[],"app":"demo","chat":"c1"}\n'
)


def entry(seq: int, kind: str = "request", turn: int = 1, body: str = '{"type":"send"}') -> str:
    return (
        f'{{"seq":{seq},"turn":{turn},"dir":"client","kind":"{kind}","delta_ms":3,"body":{body}}}\n'
    )


CHUNK = '{"type":"start-step"}'
REFUSAL = '{"type":"error","errorText":"No.","code":"unknown"}'
WHOLE = HEADER + entry(1) + entry(2, "chunk", body=CHUNK) + entry(3, "frame", 2, REFUSAL)


def test_a_recording_is_written_as_it_was_read(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(WHOLE)
    assert load_recording(file).text() == WHOLE


def test_a_turn_is_a_request_with_its_response() -> None:
    text = HEADER + entry(1) + entry(2, turn=2) + entry(3, "frame", 2, REFUSAL)
    first, second = parse_recording(text + entry(4, "chunk", 1, CHUNK)).turns
    assert (first.kind, first.chunks, first.pauses, first.refusal) == (
        "send",
        [{"type": "start-step"}],
        [3],
        None,
    )
    assert second.refusal == {"type": "error", "errorText": "No.", "code": "unknown"}


def test_an_incomplete_last_line_is_ignored() -> None:
    assert len(parse_recording(WHOLE + entry(4)[:-20]).entries) == 3
    assert len(parse_recording(WHOLE + "{}").entries) == 3


FAULTS = {
    "": "The recording a.jsonl is empty.",
    "x\n": "The recording a.jsonl, line 1 is not JSON.",
    "x": "The recording a.jsonl, line 1 is not JSON.",
    HEADER.replace(":1,", ":2,", 1): (
        "The recording a.jsonl, line 1 is not the header of a sluicegate-recording of version 1."
    ),
    entry(1): (
        "The recording a.jsonl, line 1 is not the header of a sluicegate-recording of version 1."
    ),
    HEADER + entry(2): "The recording a.jsonl, line 2: seq is 2 and should be 1.",
    HEADER + entry(1) + entry(1): "The recording a.jsonl, line 3: seq is 1 and should be 2.",
    HEADER + "{\n": "The recording a.jsonl, line 2 is not JSON.",
    HEADER + "[]\n": "The recording a.jsonl, line 2: the line should be a mapping.",
    HEADER + entry(1, body="[]"): ("The recording a.jsonl, line 2: body should be a mapping."),
    HEADER + entry(1, kind="word"): (
        "The recording a.jsonl, line 2: kind should be 'request', 'chunk', 'frame', 'decision' or "
        "'event'."
    ),
    HEADER + entry(1).replace('"seq"', '"x":1,"seq"'): (
        "The recording a.jsonl, line 2: x is not a known key."
    ),
    HEADER + entry(1).replace('"seq":1,', ""): "The recording a.jsonl, line 2: seq is missing.",
}


@pytest.mark.parametrize("text", FAULTS)
def test_an_error_is_one_sentence_with_the_line(text: str) -> None:
    with pytest.raises(RecordingError) as caught:
        parse_recording(text, name="a.jsonl")
    assert str(caught.value) == FAULTS[text]


def test_an_unreadable_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match=r"none\.jsonl cannot be read: no such file"):
        load_recording(tmp_path / "none.jsonl")
    (tmp_path / "latin").write_bytes(b"\xe9\n")
    with pytest.raises(RecordingError, match="latin is not UTF-8 text"):
        load_recording(tmp_path / "latin")
