"""Log lines about requests: each refusal with its reason, and all of them on demand."""

from __future__ import annotations

import json
from contextlib import nullcontext

import pytest
from starlette.types import Message, Receive, Scope, Send

from sluicegate.errors import (
    AlreadyDecided,
    HeldByAnotherOwner,
    RequestError,
    TooLarge,
    TooManyRequests,
    Unauthenticated,
    Unavailable,
    Unknown,
)
from sluicegate.server.logging_config import SafeFormatter
from sluicegate.server.request_log import LINES_PER_MINUTE, AccessLog
from tests.clock import Clock
from tests.server.exchange import chat_body, client
from tests.server.fake_engine import FakeEngine, fake_app


def refusals(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [line for line in caplog.messages if line.startswith("request refused")]


@pytest.mark.parametrize(
    "error",
    [
        Unauthenticated(),
        Unknown("There is no chat c1; check its id."),
        AlreadyDecided(),
        HeldByAnotherOwner(),
        TooLarge(),
        TooManyRequests(),
        Unavailable(),
    ],
    ids=lambda error: error.code,
)
async def test_a_refusal_by_the_engine_is_one_line_with_its_sentence(
    engine: FakeEngine, caplog: pytest.LogCaptureFixture, error: RequestError
) -> None:
    async with client(fake_app(engine), peer="127.0.0.9") as http:
        await http.get("/api/chats")
        engine.refusal = error
        await http.post("/api/chat?secret=1", json=chat_body())
    assert refusals(caplog) == [
        f"request refused status={error.status} code={error.code} method=POST path=/api/chat "
        f"by=127.0.0.9 {error.message}"
    ]


@pytest.mark.parametrize(
    ("path", "headers", "expected"),
    [
        ("/nowhere", {}, "status=404 code=unknown method=GET path=/nowhere"),
        ("/api/chat", {}, "status=405 code=method_not_allowed method=GET path=/api/chat"),
        ("/api/chats", {"origin": "https://x.example"}, "status=403 code=origin method=GET"),
        ("/api/chats", {"host": "x.example"}, "status=403 code=host method=GET"),
        ("/a%0Ab", {}, "status=404 code=unknown method=GET path=/a%0Ab "),
    ],
)
async def test_a_refusal_before_the_engine_is_one_line(
    engine: FakeEngine,
    caplog: pytest.LogCaptureFixture,
    path: str,
    headers: dict[str, str],
    expected: str,
) -> None:
    async with client(fake_app(engine)) as http:
        response = await http.get(path, headers=headers)
    [line] = refusals(caplog)
    assert expected in line
    assert line.endswith(response.text)


async def test_an_accepted_request_has_no_line(
    engine: FakeEngine, caplog: pytest.LogCaptureFixture
) -> None:
    async with client(fake_app(engine)) as http:
        assert (await http.get("/api/chats")).status_code == 200
    assert refusals(caplog) == []


async def test_the_lines_about_one_peer_are_bounded(
    engine: FakeEngine, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    app = fake_app(engine, clock=clock)
    async with client(app) as http, client(app, peer="127.0.0.2") as other:
        for _ in range(LINES_PER_MINUTE + 5):
            await http.get("/nowhere")
        assert len(refusals(caplog)) == LINES_PER_MINUTE
        await other.get("/nowhere")
        assert len(refusals(caplog)) == LINES_PER_MINUTE + 1
        clock.now += 61
        await http.get("/nowhere")
    assert len(refusals(caplog)) == LINES_PER_MINUTE + 2


async def test_in_json_the_access_log_has_fields(
    engine: FakeEngine, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="sluicegate")
    clock = Clock()
    app = fake_app(engine, access_log=True, clock=clock, auth="header:x-user")
    async with client(app, peer="127.0.0.9", headers={"x-user": "ann"}) as http:
        await http.get("/api/chats?token=1")
    [record] = [each for each in caplog.records if each.getMessage().startswith("request GET")]
    line = json.loads(SafeFormatter(as_json=True).format(record))
    assert line["message"] == "request GET /api/chats 200 0ms user=ann"
    fields = ("method", "path", "status", "milliseconds", "peer", "user")
    assert [line[name] for name in fields] == ["GET", "/api/chats", 200, 0.0, "127.0.0.9", "ann"]
    assert SafeFormatter(as_json=False).format(record).endswith(f" {line['message']}")


@pytest.mark.parametrize("access_log", [True, False])
async def test_the_access_log_has_each_request(
    engine: FakeEngine, caplog: pytest.LogCaptureFixture, *, access_log: bool
) -> None:
    caplog.set_level("INFO", logger="sluicegate")
    async with client(fake_app(engine, access_log=access_log)) as http:
        await http.get("/api/chats?token=1")
        await http.get("/nowhere")
    lines = [line for line in caplog.messages if line.startswith("request GET")]
    shown = [line.partition("ms")[0].rpartition(" ")[0] for line in lines]
    assert shown == (["request GET /api/chats 200", "request GET /nowhere 404"] * access_log)
    assert [line.endswith("ms user=local") for line in lines] == ([True, False] * access_log)


def ends(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [line for line in caplog.messages if line.startswith("request ended")]


async def test_a_stream_has_a_line_at_its_end_and_a_short_response_has_none(
    engine: FakeEngine, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="sluicegate")
    app = fake_app(engine, access_log=True, clock=Clock(), auth="header:x-user")
    async with client(app, headers={"x-user": "ann"}) as http:
        await http.get("/api/chats")
        assert ends(caplog) == []
        response = await http.post("/api/chat", json=chat_body())
    size = len(response.content)
    assert ends(caplog) == [f"request ended POST /api/chat 0.0s {size}B finished user=ann"]
    [record] = [each for each in caplog.records if each.getMessage() == ends(caplog)[0]]
    fields = json.loads(SafeFormatter(as_json=True).format(record))
    assert (fields["seconds"], fields["bytes"], fields["end"]) == (0.0, size, "finished")
    assert fields["user"] == "ann"


EVENTS = {"headers": [(b"content-type", b"text/event-stream; charset=utf-8")], "status": 200}
LEFT: dict[str, list[Message]] = {
    "http": [{"type": "http.disconnect"}],
    "websocket": [{"type": "websocket.connect"}, {"type": "websocket.disconnect", "code": 1006}],
}
SENT: dict[str, list[Message]] = {
    "http": [
        {"type": "http.response.start", **EVENTS},
        {"type": "http.response.body", "body": b"data: 1\n\n", "more_body": True},
    ],
    "websocket": [
        {"type": "websocket.accept"},
        {"type": "websocket.send", "text": "é"},
        {"type": "websocket.send", "bytes": b"1234567"},
    ],
}


@pytest.mark.parametrize("kind", ["http", "websocket"])
@pytest.mark.parametrize("end", ["disconnected", "closed", "failed"])
async def test_the_end_of_a_stream_names_its_reason(
    caplog: pytest.LogCaptureFixture, kind: str, end: str
) -> None:
    caplog.set_level("INFO", logger="sluicegate")
    clock = Clock()
    received = iter(LEFT[kind])

    async def receive() -> Message:
        return next(received)

    async def send(_: Message) -> None:
        """Nobody reads it."""

    async def app(_: Scope, receive: Receive, send: Send) -> None:
        for message in SENT[kind]:
            await send(message)
        clock.now += 2.5
        if end == "failed":
            raise RuntimeError("no")
        while end == "disconnected" and (await receive())["type"] != f"{kind}.disconnect":
            pass
        if end == "closed" and kind == "websocket":
            await send({"type": "websocket.close", "code": 1001})

    scope = {"type": kind, "path": "/x", "headers": [], "client": ("127.0.0.9", 1)}
    logged = AccessLog(app, clock=clock)
    with pytest.raises(RuntimeError) if end == "failed" else nullcontext():
        await logged(scope, receive, send)
    assert ends(caplog) == [f"request ended WEBSOCKET /x 2.5s 9B {end}"]
