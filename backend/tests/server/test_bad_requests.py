"""Invalid requests: a status, one plain sentence, quickly, and no effect."""

from __future__ import annotations

import gzip
import json
import time
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.server.exchange import chat_body, client, user_message
from tests.server.fake_engine import FakeEngine, fake_app

SOON = 0.1
JSON = {"content-type": "application/json"}


@dataclass(frozen=True)
class Bad:
    """A body of ``POST /chat`` and the expected response."""

    name: str
    body: bytes
    status: int = 400
    code: str = "malformed"
    headers: dict[str, str] = field(default_factory=lambda: JSON)


def body(**changes: Any) -> bytes:
    return json.dumps(chat_body() | changes).encode()


def message(**changes: Any) -> bytes:
    return body(message=user_message() | changes)


def decided(**approval: Any) -> bytes:
    part = {"type": "tool-pay", "toolCallId": "t1", "state": "approval-responded", "input": {}}
    parts = [part | {"approval": {"id": "a1"} | approval}]
    return body(message={"id": "m1", "role": "assistant", "parts": parts})


def text(raw: bytes) -> bytes:
    """A body whose message text is unusual JSON that no encoder writes."""
    return body().replace(b'"Hi"', raw)


def data_url(url: str, media_type: str = "image/png") -> bytes:
    return message(parts=[{"type": "file", "mediaType": media_type, "url": url}])


def nested(depth: int) -> bytes:
    # The body itself and `extra` are two levels.
    inner = depth - 1
    return body().replace(b'"trigger"', b'"extra":' + b"[" * inner + b"]" * inner + b',"trigger"')


NOT_A_DECISION: list[Any] = ["yes", 1, 0, "true", None, [True], {}]

BAD = [
    # ids
    *(
        Bad(f"an id that is {name}", body(id=chat))
        for name, chat in {
            "empty": "",
            "129 characters": "x" * 129,
            "a path": "../etc",
            "one dot": ".",
            "two dots": "..",
            "two lines": "a\nb",
            "padded": " c1 ",
            "look-alike": "с1",  # noqa: RUF001
            "a number": 1,
            "missing": None,
        }.items()
    ),
    Bad("an id with NUL", body(id="a\0b")),
    Bad("a messageId of another kind", body(messageId=["m"])),
    # approved
    *(Bad(f"approved is {approved!r}", decided(approved=approved)) for approved in NOT_A_DECISION),
    Bad("approved is missing", decided()),
    Bad("an approval without an id", decided(id="", approved=True)),
    Bad("a reason of 100 kB", decided(approved=False, reason="x" * 100_000)),
    Bad("a reason with NUL", decided(approved=False, reason="a\0b")),
    Bad("a reason that is no text", decided(approved=False, reason=["why"])),
    # messages
    Bad("no messages", json.dumps({"id": "c1", "trigger": "submit-message"}).encode()),
    Bad("an empty list of messages", body(messages=[])),
    Bad("messages that are no list", body(messages={"0": user_message()})),
    Bad("a first message that is no object", body(messages=["hi", user_message()])),
    Bad("a last message of the system", message(role="system")),
    Bad("a last message of a tool", message(role="tool")),
    Bad("a message without an id", message(id=None)),
    Bad("a message without parts", message(parts=None)),
    Bad("a part that is no object", message(parts=["Hi"])),
    Bad("a message without content", message(parts=[{"type": "text", "text": "  "}])),
    Bad("a text that is no text", message(parts=[{"type": "text", "text": 7}])),
    Bad(
        "101 parts",
        message(parts=[{"type": "text", "text": "Hi"}] * 101),
        413,
        "too_large",
    ),
    Bad("a text over its limit", text(b'"' + b"x" * 100_001 + b'"'), 413, "too_large"),
    # JSON
    Bad("nothing", b""),
    Bad("no JSON", b"hello"),
    Bad("an array", b"[1]"),
    Bad("JSON with something after it", body() + b"{}"),
    Bad("JSON that is cut off", body()[:-1]),
    Bad("a key twice", text(b'"Hi","text":"Ho"')),
    Bad("NaN", text(b"NaN")),
    Bad("Infinity", text(b"-Infinity")),
    Bad("1e400", text(b"1e400")),
    Bad("10**400", text(b"1" + b"0" * 400)),
    Bad("a lone surrogate", text(rb'"\ud800"')),
    Bad("U+0000", text(rb'"a\u0000b"')),
    Bad("UTF-16", body().decode().encode("utf-16")),
    Bad("a byte order mark", b"\xef\xbb\xbf" + body()),
    Bad("bytes that are not UTF-8", text(b'"\xff"')),
    Bad("129 levels", nested(129)),
    Bad("100,000 levels", nested(100_000)),
    # trigger
    Bad("an unknown trigger", body(trigger="resume")),
    Bad("a trigger that is no text", body(trigger=1)),
    # the body's type
    *(
        Bad(f"content type {given!r}", body(), 415, "unsupported_media_type", headers)
        for given, headers in {
            "none": {},
            "text/plain": {"content-type": "text/plain"},
            "form": {"content-type": "application/x-www-form-urlencoded"},
            "json-ish": {"content-type": "application/jsonp"},
            "UTF-16": {"content-type": "application/json; charset=utf-16"},
        }.items()
    ),
    Bad(
        "a compressed body",
        gzip.compress(body()),
        415,
        "unsupported_media_type",
        JSON | {"content-encoding": "gzip"},
    ),
    # files
    Bad("a data URL without a comma", data_url("data:image/png;base64")),
    Bad("a data URL that is not base64", data_url("data:image/png;base64,***")),
    Bad("an empty file", data_url("data:image/png;base64,")),
    Bad("a file somewhere else", data_url("http://169.254.169.254/latest/meta-data")),
    Bad("a file of the disk", data_url("file:///etc/passwd")),
    Bad("a file of another chat", data_url("/api/chats/other/files/a.png")),
    Bad(
        "an SVG",
        data_url("data:image/svg+xml;base64,PHN2Zy8+", "image/svg+xml"),
        415,
        "unsupported_media_type",
    ),
]


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.name)
async def test_an_invalid_body_is_refused_in_one_sentence(engine: FakeEngine, bad: Bad) -> None:
    took = []
    async with client(fake_app(engine)) as http:
        for _ in range(3):
            began = time.process_time()
            response = await http.post("/api/chat", content=bad.body, headers=bad.headers)
            took.append(time.process_time() - began)
    assert (response.status_code, response.headers["x-error-code"]) == (bad.status, bad.code)
    assert response.headers["content-type"] == "text/plain; charset=utf-8"
    assert response.headers["x-content-type-options"] == "nosniff"
    assert is_one_sentence(response.text)
    # Minimum CPU time of three runs, which excludes other processes.
    assert min(took) < SOON
    assert engine.calls == []


def is_one_sentence(said: str) -> bool:
    return said.endswith(".") and said[0].isupper() and "\n" not in said and len(said) < 200


GOOD = {
    "1,001 messages": body(messages=[user_message(message_id=f"u{n}") for n in range(1001)]),
    "a false past": body(
        messages=[{"id": "s", "role": "system", "parts": "what?"}, user_message()]
    ),
    "a part of an unknown kind": message(
        parts=[{"type": "data-x", "data": 1}, {"type": "text", "text": "Hi"}]
    ),
    "100 parts": message(parts=[{"type": "text", "text": "Hi"}] * 100),
    "a text at its limit": text(b'"' + b"x" * 100_000 + b'"'),
    "128 levels": nested(128),
    "an id of 128 characters": body(id="x" * 128),
    "a decision": decided(approved=False, reason="x" * 2000),
    "a small file": data_url("data:image/png;base64,iVBORw0KGgo="),
    "a file of this chat": data_url("/api/chats/c1/files/a.png"),
    "tool parts without input": body(
        message={
            "id": "m1",
            "role": "assistant",
            "parts": [
                {"type": "tool-x", "toolCallId": f"t{number}", "state": state}
                for number, state in enumerate(
                    ("input-streaming", "input-available", "output-available", "output-error")
                )
            ],
        }
    ),
}


@pytest.mark.parametrize("name", GOOD)
async def test_values_at_the_limit_and_unknown_fields_are_accepted(
    engine: FakeEngine, name: str
) -> None:
    async with client(fake_app(engine)) as http:
        response = await http.post("/api/chat", content=GOOD[name], headers=JSON)
    assert response.status_code == 200
    assert [call[0] for call in engine.calls] == ["start"]


@pytest.mark.parametrize(
    "content_type",
    ["application/json", "application/json; charset=utf-8", 'Application/JSON;charset="UTF-8"'],
)
async def test_json_may_declare_its_charset(engine: FakeEngine, content_type: str) -> None:
    async with client(fake_app(engine)) as http:
        headers = {"content-type": content_type}
        response = await http.post("/api/chat", content=body(), headers=headers)
    assert response.status_code == 200


@pytest.mark.parametrize(
    "title",
    [None, "", "   ", 7, ["x"], "x" * 201, "two\nlines", "bidi \u202e mark"],
)
async def test_an_invalid_title_is_refused(engine: FakeEngine, title: object) -> None:
    async with client(fake_app(engine)) as http:
        response = await http.patch("/api/chats/c1", json={"title": title})
    assert (response.status_code, response.headers["x-error-code"]) == (400, "malformed")
    assert is_one_sentence(response.text)
    assert engine.calls == []


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=101",
        "limit=-1",
        "limit=ten",
        "limit=1.5",
        "limit=%D9%A3",
        "limit=",
        "after=a%00b",
        "q=a%0Ab",
        f"q={'x' * 257}",
    ],
)
async def test_an_invalid_query_of_the_list_is_refused(engine: FakeEngine, query: str) -> None:
    async with client(fake_app(engine)) as http:
        response = await http.get(f"/api/chats?{query}")
    assert (response.status_code, response.headers["x-error-code"]) == (400, "malformed")
    assert is_one_sentence(response.text)
    assert engine.calls == []
