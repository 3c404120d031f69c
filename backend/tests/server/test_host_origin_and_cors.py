"""Access checks: header size, Host, Origin and CORS."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient
from starlette.types import Message, Scope

from sluicegate.server.security_headers import HEADERS as SECURITY_HEADERS
from tests.server.exchange import client
from tests.server.fake_engine import FakeEngine, application, fake_app

BOUND = ("127.0.0.1", 8000)


async def call(app_settings: dict[str, Any], **changes: Any) -> tuple[int, dict[str, str], str]:
    """Call GET /api/chats with a custom ASGI scope; return status, headers and body."""
    headers = changes.pop("headers", {"host": "127.0.0.1:8000"})
    pairs = headers.items() if isinstance(headers, dict) else headers
    scope: Scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": "/api/chats",
        "raw_path": b"/api/chats",
        "query_string": b"",
        "root_path": "",
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in pairs],
        "client": ("127.0.0.1", 50000),
        "server": BOUND,
    } | changes
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    await fake_app(FakeEngine(), **app_settings)(scope, receive, send)
    answer = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], answer, b"".join(part["body"] for part in sent[1:]).decode()


@pytest.mark.parametrize(
    ("settings", "server", "host", "served"),
    [
        ({}, BOUND, "127.0.0.1:8000", True),
        ({}, BOUND, "127.0.0.1", True),
        ({}, BOUND, "localhost:8000", True),
        ({}, BOUND, "LOCALHOST", True),
        ({}, BOUND, "localhost.", True),
        ({}, BOUND, "[::1]:8000", True),
        ({}, BOUND, "evil.example", False),
        ({}, BOUND, "localhost.evil.example", False),
        ({}, BOUND, "127.0.0.1.evil.example", False),
        ({}, BOUND, "testserver", False),
        ({"allowed_hosts": ["chat.example"]}, BOUND, "chat.example", True),
        ({"allowed_hosts": ["chat.example"]}, BOUND, "Chat.Example:443", True),
        ({"allowed_hosts": ["chat.example"]}, BOUND, "a.chat.example", False),
        ({"public_url": "https://chat.example/app"}, BOUND, "chat.example", True),
        ({"public_url": "https://chat.example/app"}, BOUND, "app", False),
        ({"host": "192.0.2.7", "auth": "header:x-user"}, ("192.0.2.7", 80), "192.0.2.7", True),
        ({"host": "192.0.2.7", "auth": "header:x-user"}, ("192.0.2.7", 80), "localhost", False),
        # Bound to every address: the contacted address is accepted under any name.
        ({"host": "0.0.0.0", "auth": "header:x-user"}, ("192.0.2.7", 80), "192.0.2.7", True),
        ({"host": "0.0.0.0", "auth": "header:x-user"}, ("192.0.2.7", 80), "192.0.2.8", False),
        ({"host": "0.0.0.0", "auth": "header:x-user"}, ("192.0.2.7", 80), "evil.example", False),
        ({"host": "0.0.0.0", "auth": "header:x-user"}, BOUND, "localhost", True),
        ({"host": "0.0.0.0", "auth": "header:x-user"}, BOUND, "0.0.0.0", False),
        # In process, the server name is that of the test client.
        ({}, ("testserver", 80), "testserver", False),
        ({}, None, "127.0.0.1", True),
        ({}, ("/run/sluicegate.sock", None), "evil.example", False),
    ],
)
async def test_only_configured_hosts_are_served(
    settings: dict[str, Any], server: tuple[str, int] | None, host: str, *, served: bool
) -> None:
    headers = {"host": host, "x-user": "ada"}
    status, answer, text = await call(settings, server=server, headers=headers)
    if served:
        assert status == 200
    else:
        assert (status, answer["x-error-code"]) == (403, "host")
        assert f"--allowed-host {host.partition(':')[0].lower()}" in text


@pytest.mark.parametrize(
    "hosts",
    [[], ["127.0.0.1", "127.0.0.1"], ["a b"], ["127.0.0.1:x"], ["user@127.0.0.1"], [""], ["[::1"]],
)
async def test_a_missing_duplicate_or_malformed_host_is_refused(hosts: list[str]) -> None:
    status, answer, _ = await call({}, headers=[("host", host) for host in hosts])
    assert (status, answer["x-error-code"]) == (400, "malformed")


@pytest.mark.parametrize(
    ("settings", "scheme", "host", "origin", "accepted"),
    [
        # The origin of the server.
        ({}, "http", "127.0.0.1:8000", "http://127.0.0.1:8000", True),
        ({"auth": "header:x-user"}, "http", "127.0.0.1:8000", "http://127.0.0.1:8000", True),
        ({"auth": "header:x-user"}, "http", "localhost", "http://localhost:80", True),
        ({"auth": "header:x-user"}, "https", "localhost", "https://localhost", True),
        ({"auth": "header:x-user"}, "https", "localhost", "http://localhost", False),
        ({"auth": "header:x-user"}, "http", "localhost", "https://localhost", False),
        # Any loopback origin, only without authentication.
        ({}, "http", "127.0.0.1:8000", "http://localhost:3000", True),
        ({}, "http", "127.0.0.1:8000", "https://127.0.0.2:5173", True),
        ({}, "http", "127.0.0.1:8000", "http://[::1]:3000", True),
        ({"auth": "header:x-user"}, "http", "127.0.0.1:8000", "http://localhost:3000", False),
        # Configured origins.
        ({"origins": ["https://app.example"]}, "http", "localhost", "https://app.example", True),
        (
            {"origins": ["https://app.example"]},
            "http",
            "localhost",
            "https://app.example:443",
            True,
        ),
        ({"origins": ["https://app.example/"]}, "http", "localhost", "https://app.example", True),
        ({"origins": ["https://app.example"]}, "http", "localhost", "http://app.example", False),
        ({"origins": ["https://app.example"]}, "http", "localhost", "https://app.example:8", False),
        ({"origins": ["https://app.example"]}, "http", "localhost", "https://x.app.example", False),
        (
            {"origins": ["https://app.example"]},
            "http",
            "localhost",
            "https://app.example.evil",
            False,
        ),
        ({"public_url": "https://app.example/x"}, "http", "localhost", "https://app.example", True),
        # Other origins.
        ({}, "http", "localhost", "https://evil.example", False),
        ({}, "http", "localhost", "http://localhost.evil.example", False),
        ({}, "http", "localhost", "null", False),
        ({}, "http", "localhost", "", False),
        ({}, "http", "localhost", "http://localhost/path", False),
        ({}, "http", "localhost", "file://", False),
        ({}, "http", "localhost", "http://localhost http://localhost", False),
    ],
)
async def test_only_pages_of_allowed_origins_may_call(
    settings: dict[str, Any], scheme: str, host: str, origin: str, *, accepted: bool
) -> None:
    headers = {"host": host, "origin": origin, "x-user": "ada"}
    status, answer, text = await call(settings, scheme=scheme, headers=headers)
    if accepted:
        assert status == 200
        assert answer["access-control-allow-origin"] == origin
        assert answer["access-control-expose-headers"] == "x-error-code, retry-after"
        assert answer["vary"] == "origin"
    else:
        assert (status, answer["x-error-code"]) == (403, "origin")
        assert "--origin" in text
        assert "access-control-allow-origin" not in answer


async def test_the_refusal_of_an_origin_quotes_it_as_the_flag_expects_it() -> None:
    headers = {"host": "localhost", "origin": "https://app.example:8443"}
    _, _, text = await call({}, headers=headers)
    assert "--origin https://app.example:8443 " in text
    accepted, _, _ = await call({"origins": ["https://app.example:8443"]}, headers=headers)
    assert accepted == 200


async def test_two_origin_headers_are_refused() -> None:
    pairs = [("host", "localhost"), ("origin", "http://localhost"), ("origin", "http://localhost")]
    status, answer, _ = await call({}, headers=pairs)
    assert (status, answer["x-error-code"]) == (403, "origin")


async def test_a_call_without_an_origin_gets_no_cors_headers() -> None:
    status, answer, _ = await call({})
    assert status == 200
    assert not [name for name in answer if name.startswith("access-control")]


async def test_a_page_of_an_allowed_origin_can_read_a_refusal() -> None:
    headers = {"host": "localhost", "origin": "http://localhost:3000"}
    changes = {"path": "/api/chats/none", "raw_path": b"/api/chats/none"}
    status, answer, _ = await call({}, headers=headers, **changes)
    assert (status, answer["access-control-allow-origin"]) == (404, "http://localhost:3000")


PREFLIGHT = {
    "origin": "http://localhost:3000",
    "access-control-request-method": "POST",
    "access-control-request-headers": "content-type,x-ai-sdk",
}


@pytest.mark.parametrize("path", ["/api/chat", "/api/chats/c1", "/nowhere"])
async def test_a_preflight_response_lists_allowed_methods_and_headers(path: str) -> None:
    async with client(fake_app(FakeEngine())) as http:
        response = await http.options(path, headers=PREFLIGHT)
    assert (response.status_code, response.content) == (204, b"")
    assert dict(response.headers) == {
        "access-control-allow-origin": "http://localhost:3000",
        "access-control-allow-credentials": "true",
        "access-control-allow-methods": "GET, POST, PATCH, DELETE",
        "access-control-allow-headers": "content-type, authorization, x-ai-sdk, x-release",
        "access-control-max-age": "600",
        "vary": "origin",
        **SECURITY_HEADERS,
    }


async def test_a_preflight_needs_no_user() -> None:
    async with client(fake_app(FakeEngine(), auth="header:x-user")) as http:
        own = PREFLIGHT | {"origin": "http://127.0.0.1:8000"}
        assert (await http.options("/api/chat", headers=own)).status_code == 204


async def test_a_preflight_of_a_disallowed_origin_is_refused() -> None:
    async with client(fake_app(FakeEngine())) as http:
        foreign = PREFLIGHT | {"origin": "https://evil.example"}
        response = await http.options("/api/chat", headers=foreign)
    assert (response.status_code, response.headers["x-error-code"]) == (403, "origin")


async def test_options_without_preflight_headers_is_an_ordinary_method() -> None:
    async with client(fake_app(FakeEngine())) as http:
        response = await http.options("/api/chat")
    assert (response.status_code, response.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize(("fields", "status"), [(100, 200), (101, 413)])
async def test_the_number_of_header_fields_is_limited(fields: int, status: int) -> None:
    pairs = [("host", "localhost")] + [(f"x-{number}", "1") for number in range(fields - 1)]
    answered, answer, _ = await call({}, headers=pairs)
    assert answered == status
    assert status == 200 or answer["x-error-code"] == "too_large"


@pytest.mark.parametrize(("over", "status"), [(0, 200), (1, 413)])
@pytest.mark.parametrize("place", ["header", "query"])
async def test_the_size_of_the_header_section_is_limited(
    place: str, over: int, status: int
) -> None:
    used = len("/api/chats") + len("host") + len("localhost") + 4
    room = 32 * 1024 - used + over
    if place == "header":
        filled = {"host": "localhost", "x-fill": "x" * (room - len("x-fill") - 4)}
        answered, answer, _ = await call({}, headers=filled)
    else:
        query = b"x=" + b"y" * (room - 2)
        answered, answer, _ = await call({}, headers={"host": "localhost"}, query_string=query)
    assert answered == status
    assert status == 200 or answer["x-error-code"] == "too_large"


@pytest.mark.parametrize(
    ("headers", "refused"),
    [
        ({"host": "evil.example"}, "host"),
        ({"host": "localhost", "origin": "https://evil.example"}, "origin"),
    ],
)
async def test_a_socket_is_refused_before_it_is_accepted(
    headers: dict[str, str], refused: str
) -> None:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "websocket.connect"}

    scope: Scope = {
        "type": "websocket",
        "scheme": "ws",
        "path": "/api/chat/ws",
        "raw_path": b"/api/chat/ws",
        "query_string": b"",
        "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "client": ("127.0.0.1", 50000),
        "server": BOUND,
    }
    await application(FakeEngine()).app(scope, receive, send)
    assert sent == [{"type": "websocket.close", "code": 1008, "reason": refused}]


def test_the_test_client_of_starlette_is_told_how_to_call(engine: FakeEngine) -> None:
    app = fake_app(engine)
    refused = TestClient(app).get("/api/chats")
    assert refused.status_code == 403
    assert "base_url='http://127.0.0.1:8000' and client=('127.0.0.1', 50000)" in refused.text
    allowed = TestClient(app, base_url="http://127.0.0.1:8000", client=("127.0.0.1", 50000))
    assert allowed.get("/api/chats").status_code == 200
