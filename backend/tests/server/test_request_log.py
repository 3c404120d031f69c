"""Log lines about requests: each refusal with its reason, and all of them on demand."""

from __future__ import annotations

import json

import pytest

from sluicegate.errors import (
    AlreadyDecided,
    HeldElsewhere,
    RequestError,
    TooLarge,
    TooManyRequests,
    Unauthenticated,
    Unavailable,
    Unknown,
)
from sluicegate.server.logs import SafeFormatter
from sluicegate.server.request_log import LINES_PER_MINUTE
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
        HeldElsewhere(),
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
    async with client(fake_app(engine, access_log=True, clock=clock), peer="127.0.0.9") as http:
        await http.get("/api/chats?token=1")
    [record] = [each for each in caplog.records if each.getMessage().startswith("request GET")]
    line = json.loads(SafeFormatter(as_json=True).format(record))
    assert line["message"] == "request GET /api/chats 200 0ms"
    fields = ("method", "path", "status", "milliseconds", "peer")
    assert [line[name] for name in fields] == ["GET", "/api/chats", 200, 0.0, "127.0.0.9"]
    assert SafeFormatter(as_json=False).format(record).endswith("request GET /api/chats 200 0ms")


@pytest.mark.parametrize("access_log", [True, False])
async def test_the_access_log_has_each_request(
    engine: FakeEngine, caplog: pytest.LogCaptureFixture, *, access_log: bool
) -> None:
    caplog.set_level("INFO", logger="sluicegate")
    async with client(fake_app(engine, access_log=access_log)) as http:
        await http.get("/api/chats?token=1")
        await http.get("/nowhere")
    lines = [line for line in caplog.messages if line.startswith("request GET")]
    shown = [line.rpartition(" ")[0] for line in lines]
    assert shown == (["request GET /api/chats 200", "request GET /nowhere 404"] * access_log)
