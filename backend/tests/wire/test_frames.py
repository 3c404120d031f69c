"""Parsing and encoding of the frames of a WebSocket."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from sluicegate.wire.chunks import BaseChunk, StartChunk, TextDeltaChunk
from sluicegate.wire.encoding import to_json
from sluicegate.wire.frames import (
    CLOSE_INVALID_PAYLOAD,
    CLOSE_POLICY_VIOLATION,
    HEARTBEAT_ID,
    MAX_REQUEST_ID,
    AbortFrame,
    ChunkFrame,
    ClientFrame,
    EndFrame,
    ErrorFrame,
    HeartbeatFrame,
    InvalidFrame,
    NoActiveFrame,
    ResumeFrame,
    SendFrame,
    ServerFrame,
    StartFrame,
    encode_frame,
    parse_frame,
)

MESSAGES: list[Any] = [{"id": "u1", "role": "user", "parts": [{"type": "text", "text": "Hi"}]}]
SEND: dict[str, Any] = {
    "type": "send",
    "requestId": "r1",
    "id": "c1",
    "trigger": "submit-message",
    "messages": MESSAGES,
    "headers": {},
    "body": {},
}
RESUME: dict[str, Any] = {
    "type": "resume",
    "requestId": "r1",
    "id": "c1",
    "headers": {},
    "body": {},
}
SECRET = "sk-very-secret"


def parse(frame: object) -> ClientFrame:
    return parse_frame(json.dumps(frame).encode())


def without(frame: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in frame.items() if name not in names}


def test_a_send_becomes_the_body_that_a_post_would_have() -> None:
    sent = {
        **SEND,
        "messageId": "m1",
        "headers": {"X-AI-SDK": "7", "authorization": "Bearer x"},
        "body": {"remember": {"a1": "chat"}},
        "metadata": {"any": "thing"},
    }
    assert parse(sent) == SendFrame(
        "r1",
        {"x-ai-sdk": "7", "authorization": "Bearer x"},
        {
            "id": "c1",
            "trigger": "submit-message",
            "messageId": "m1",
            "messages": MESSAGES,
            "remember": {"a1": "chat"},
        },
    )


def test_fields_of_the_frame_take_precedence_over_its_body() -> None:
    nested = {"id": "c2", "messages": [], "messageId": "m2", "trigger": "regenerate-message"}
    sent = parse({**SEND, "messageId": "m1", "body": nested})
    assert isinstance(sent, SendFrame)
    assert sent.body == {
        "id": "c1",
        "messages": MESSAGES,
        "messageId": "m1",
        "trigger": "submit-message",
    }


def test_a_send_may_carry_the_last_message_alone() -> None:
    sent = parse({**without(SEND, "messages"), "body": {"message": MESSAGES[0]}})
    assert isinstance(sent, SendFrame)
    assert sent.body["message"] == MESSAGES[0]
    assert "messages" not in sent.body


@pytest.mark.parametrize("missing", ["headers", "body"])
@pytest.mark.parametrize("frame", [SEND, RESUME], ids=["send", "resume"])
def test_headers_and_body_may_be_left_out(frame: dict[str, Any], missing: str) -> None:
    assert parse(without(frame, missing)) == parse(frame)


@pytest.mark.parametrize("last", [0, 1, 2**53 - 1])
def test_a_resume_ignores_the_last_sequence(last: int) -> None:
    assert parse({**RESUME, "lastSequence": last}) == ResumeFrame("r1", {}, "c1")
    assert parse(RESUME) == ResumeFrame("r1", {}, "c1")


def test_an_abort_consists_of_a_request_id() -> None:
    assert parse({"type": "abort", "requestId": "r1"}) == AbortFrame("r1")


@pytest.mark.parametrize("request_id", ["r", "r" * MAX_REQUEST_ID, "ä € 🎈", " ", '"\\'])
def test_a_request_id_is_any_text_that_is_not_too_long(request_id: str) -> None:
    assert parse({"type": "abort", "requestId": request_id}) == AbortFrame(request_id)


@pytest.mark.parametrize(
    "frame",
    [
        None,
        1,
        "send",
        [],
        [SEND],
        {},
        without(SEND, "requestId"),
        {**SEND, "requestId": ""},
        {**SEND, "requestId": "r" * (MAX_REQUEST_ID + 1)},
        {**SEND, "requestId": 1},
        {**SEND, "requestId": None},
        {**SEND, "requestId": ["r1"]},
    ],
    ids=repr,
)
def test_a_frame_without_a_request_id_cannot_be_answered(frame: object) -> None:
    bad = parse(frame)
    assert isinstance(bad, InvalidFrame)
    assert (bad.request_id, bad.close_code) == (None, CLOSE_POLICY_VIOLATION)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"hello",
        b'data: {"type":"send"}\n\n',
        b'{"type":"abort","requestId":"r1"} {}',
        b'\xef\xbb\xbf{"type":"abort"',
        b"\xff",
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"9" * 10_000,
    ],
    ids=lambda data: repr(data[:20]),
)
def test_a_message_that_is_not_json_cannot_be_answered(data: bytes) -> None:
    bad = parse_frame(data)
    assert isinstance(bad, InvalidFrame)
    assert (bad.request_id, bad.close_code) == (None, CLOSE_INVALID_PAYLOAD)


@pytest.mark.parametrize(
    "data",
    [
        b'{"requestId":"r1","type":"abort","type":"abort"}',
        b'{"requestId":"r1","type":"send","body":{"x":NaN}}',
        b'{"requestId":"r1","type":"send","body":{"x":1e400}}',
        b'{"requestId":"r1","type":"send","body":{"x":9007199254740993}}',
        b'{"requestId":"r1","type":"send","body":{"x":"\\u0000"}}',
        b'{"requestId":"r1","type":"send","body":{"x":"\\ud800"}}',
        b'{"requestId":"r1","type":"send","body":' + b"[" * 40 + b"]" * 40 + b"}",
    ],
    ids=lambda data: repr(data[30:60]),
)
def test_refused_json_is_answered_under_its_request_id(data: bytes) -> None:
    bad = parse_frame(data)
    assert isinstance(bad, InvalidFrame)
    assert bad.request_id == "r1"
    assert bad.error.code == "malformed"


BAD: list[tuple[dict[str, Any], str]] = [
    ({"type": None}, "malformed"),
    ({"type": "ping"}, "malformed"),
    ({"type": ["send"]}, "malformed"),
    ({"type": "chunk"}, "malformed"),
    ({"headers": None}, "malformed"),
    ({"headers": []}, "malformed"),
    ({"headers": {"x-ai-sdk": 7}}, "malformed"),
    ({"headers": {"x-ai-sdk": None}}, "malformed"),
    ({"body": None}, "malformed"),
    ({"body": "x"}, "malformed"),
    ({"body": [1]}, "malformed"),
]


@pytest.mark.parametrize(("changes", "code"), BAD, ids=repr)
@pytest.mark.parametrize("frame", [SEND, RESUME], ids=["send", "resume"])
def test_an_invalid_field_is_answered_under_its_request_id(
    frame: dict[str, Any], changes: dict[str, Any], code: str
) -> None:
    bad = parse({**frame, **changes})
    assert isinstance(bad, InvalidFrame)
    assert (bad.request_id, bad.error.code) == ("r1", code)
    assert re.fullmatch(r"[A-Z][^\n]*\.", bad.error.message)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"lastSequence": -1}, "malformed"),
        ({"lastSequence": 1.5}, "malformed"),
        ({"lastSequence": 2**53}, "malformed"),
        ({"lastSequence": "1"}, "malformed"),
        ({"lastSequence": None}, "malformed"),
        ({"lastSequence": True}, "malformed"),
        ({"lastSequence": [1]}, "malformed"),
        ({"id": None}, "malformed"),
        ({"id": 1}, "malformed"),
        ({"id": ""}, "unknown"),
        ({"id": ".."}, "unknown"),
        ({"id": "../c1"}, "unknown"),
        ({"id": "c" * 129}, "unknown"),
    ],
    ids=repr,
)
def test_a_resume_with_an_invalid_chat_or_sequence_is_refused(
    changes: dict[str, Any], code: str
) -> None:
    bad = parse({**RESUME, **changes})
    assert isinstance(bad, InvalidFrame)
    assert (bad.request_id, bad.error.code) == ("r1", code)


@pytest.mark.parametrize("frame", [SEND, RESUME], ids=["send", "resume"])
def test_no_request_has_the_id_of_the_heartbeat(frame: dict[str, Any]) -> None:
    bad = parse({**frame, "requestId": HEARTBEAT_ID})
    assert isinstance(bad, InvalidFrame)
    assert (bad.request_id, bad.error.code) == (HEARTBEAT_ID, "malformed")


def test_a_refusal_does_not_repeat_the_frame() -> None:
    for changes in ({"type": SECRET}, {"headers": {SECRET: 1}}, {"body": SECRET}):
        bad = parse({**SEND, **changes})
        assert isinstance(bad, InvalidFrame)
        assert SECRET not in bad.error.message


WRITTEN: list[tuple[ServerFrame, dict[str, Any]]] = [
    (StartFrame("r1"), {"type": "start", "requestId": "r1"}),
    (EndFrame("r1"), {"type": "end", "requestId": "r1"}),
    (NoActiveFrame("r1"), {"type": "no-active", "requestId": "r1"}),
    (HeartbeatFrame(), {"type": "heartbeat", "requestId": "-"}),
    (
        ErrorFrame("r1", "It failed.", "malformed"),
        {"type": "error", "requestId": "r1", "errorText": "It failed.", "code": "malformed"},
    ),
    (
        ChunkFrame("r1", 0, StartChunk(message_id="m1")),
        {
            "type": "chunk",
            "requestId": "r1",
            "sequence": 0,
            "chunk": {"type": "start", "messageId": "m1"},
        },
    ),
]


@pytest.mark.parametrize(("frame", "written"), WRITTEN, ids=lambda value: type(value).__name__)
def test_a_frame_is_encoded_as_the_client_reads_it(
    frame: ServerFrame, written: dict[str, Any]
) -> None:
    text = encode_frame(frame)
    assert json.loads(text) == written
    assert list(json.loads(text)) == list(written)
    assert " " not in text.replace("It failed.", "")


CHUNK: BaseChunk = TextDeltaChunk(id="t", delta='"}]\n\u2028 ä 🎈 \ud800')


@pytest.mark.parametrize("request_id", ["r1", '"},{"', "ä\u2028", "\ud800"])
def test_ids_and_texts_are_unchanged_in_a_frame(request_id: str) -> None:
    text = encode_frame(ChunkFrame(request_id, 7, CHUNK))
    assert json.loads(text.encode()) == {
        "type": "chunk",
        "requestId": request_id,
        "sequence": 7,
        "chunk": json.loads(to_json(CHUNK)),
    }
    assert to_json(CHUNK) in text
    for frame in (StartFrame(request_id), ErrorFrame(request_id, "It failed.", "malformed")):
        assert json.loads(encode_frame(frame).encode())["requestId"] == request_id


def test_a_number_that_is_not_finite_is_not_sent() -> None:
    from_float = TextDeltaChunk.model_construct(type="text-delta", id="t", delta=float("nan"))
    with pytest.raises(ValueError, match="JSON compliant"):
        encode_frame(ChunkFrame("r1", 0, from_float))
