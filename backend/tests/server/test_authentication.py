"""Authentication: none, by token, by a proxy header, by a custom function."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import HTTPConnection

from sluicegate.errors import ConfigurationError, Unauthenticated, Unavailable
from sluicegate.server.app import build
from sluicegate.server.authentication import User
from sluicegate.server.demo_users import DEMO_COOKIE, DemoUsers
from sluicegate.server.settings import Settings
from tests.server.exchange import chat_body, client
from tests.server.fake_engine import FakeEngine, fake_app

ADA, BOB = "token-of-ada", "token.of/bob="


def line(token: str, user: str) -> str:
    return f"sha256:{hashlib.sha256(token.encode()).hexdigest()} {user}\n"


def rewrite(file: Path, content: str | None) -> None:
    """Replace or remove a file; the new modification time always differs."""
    if content is None:
        file.unlink()
        return
    file.write_text(content)
    os.utime(file, ns=(1, 1))


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    file = tmp_path / "tokens"
    file.write_text(f"# who may call\n\n{line(ADA, 'ada')}{line(BOB, 'bob@example.com')}  # Bob")
    return file


async def called_as(
    engine: FakeEngine, app: Any, *, peer: str = "127.0.0.1", **headers: str
) -> Any:
    """Return the user of the engine call, or the status of the refusal."""
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    async with client(app, peer=peer) as http:
        response = await http.post("/api/chat/c1/stop", headers=given)
    if response.status_code == 204:
        return engine.calls.pop()[-1]
    assert response.headers["content-type"] == "text/plain; charset=utf-8"
    assert engine.calls == []
    return response.status_code


@pytest.mark.parametrize(
    ("peer", "expected"),
    [
        ("127.0.0.1", "local"),
        ("127.8.8.8", "local"),
        ("::1", "local"),
        ("::ffff:127.0.0.1", "local"),
        ("testclient", "local"),
        ("192.0.2.7", 401),
        ("::ffff:192.0.2.7", 401),
        ("2001:db8::1", 401),
    ],
)
async def test_without_authentication_only_loopback_clients_may_call(
    peer: str, expected: object
) -> None:
    engine = FakeEngine()
    assert await called_as(engine, fake_app(engine), peer=peer) == expected


async def test_the_refusal_of_a_remote_client_names_the_flag() -> None:
    async with client(fake_app(FakeEngine()), peer="192.0.2.7") as http:
        response = await http.get("/api/chats")
    assert (response.status_code, response.headers["x-error-code"]) == (401, "unauthenticated")
    assert "--auth" in response.text


@pytest.mark.parametrize(
    ("authorization", "expected"),
    [
        (f"Bearer {ADA}", "ada"),
        (f"bearer  {ADA} ", "ada"),
        (f"Bearer {BOB}", "bob@example.com"),
        ("Bearer unknown", 401),
        (f"Basic {ADA}", 401),
        (ADA, 401),
        ("Bearer", 401),
        ("Bearer ", 401),
        (f"Bearer {ADA} {ADA}", 401),
        (f"Bearer {hashlib.sha256(ADA.encode()).hexdigest()}", 401),
        ("", 401),
    ],
)
async def test_a_token_identifies_its_user(
    tokens: Path, authorization: str, expected: object
) -> None:
    engine = FakeEngine()
    app = fake_app(engine, auth=f"bearer:{tokens}")
    assert await called_as(engine, app, authorization=authorization) == expected


async def test_a_refused_token_gets_a_www_authenticate_header(tokens: Path) -> None:
    async with client(fake_app(FakeEngine(), auth=f"bearer:{tokens}")) as http:
        response = await http.post("/api/chat", json=chat_body())
    assert response.status_code == 401
    assert response.headers["www-authenticate"] == "Bearer"


async def test_a_token_authenticates_remote_clients_too(tokens: Path) -> None:
    engine = FakeEngine()
    app = fake_app(engine, auth=f"bearer:{tokens}", host="0.0.0.0", allowed_hosts=["127.0.0.1"])
    assert await called_as(engine, app, peer="192.0.2.7", authorization=f"Bearer {ADA}") == "ada"


async def test_two_authorization_headers_are_refused(tokens: Path) -> None:
    async with client(fake_app(FakeEngine(), auth=f"bearer:{tokens}")) as http:
        twice = [("authorization", f"Bearer {ADA}"), ("authorization", f"Bearer {BOB}")]
        assert (await http.get("/api/chats", headers=twice)).status_code == 401


async def test_the_token_file_is_reloaded_when_it_changes(tokens: Path) -> None:
    engine = FakeEngine()
    app = fake_app(engine, auth=f"bearer:{tokens}")
    assert await called_as(engine, app, authorization=f"Bearer {ADA}") == "ada"
    rewrite(tokens, line("another", "ada"))
    assert await called_as(engine, app, authorization=f"Bearer {ADA}") == 401
    assert await called_as(engine, app, authorization="Bearer another") == "ada"


@pytest.mark.parametrize("content", ["nonsense", None], ids=["broken", "gone"])
async def test_an_invalid_token_file_refuses_every_call_until_it_is_repaired(
    tokens: Path, content: str | None
) -> None:
    engine = FakeEngine()
    app = fake_app(engine, auth=f"bearer:{tokens}")
    rewrite(tokens, content)
    assert await called_as(engine, app, authorization=f"Bearer {ADA}") == 503
    assert await called_as(engine, app, authorization=f"Bearer {ADA}") == 503
    rewrite(tokens, line(ADA, "ada"))
    assert await called_as(engine, app, authorization=f"Bearer {ADA}") == "ada"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"sha256:abc ada", "Line 1"),
        (line(ADA, "ada").encode() + b"plain-token bob", "Line 2"),
        (line(ADA, "a/b").encode(), "Line 1"),
        (line(ADA, "..").encode(), "Line 1"),
        (line(ADA, "x" * 129).encode(), "Line 1"),
        (b"\xff\xfe", "UTF-8"),
    ],
)
def test_a_token_file_with_an_invalid_line_is_refused_at_startup(
    tmp_path: Path, content: bytes, said: str
) -> None:
    file = tmp_path / "tokens"
    file.write_bytes(content)
    with pytest.raises(ConfigurationError, match=said):
        fake_app(FakeEngine(), auth=f"bearer:{file}")


def test_a_missing_token_file_is_refused_at_startup(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read: No such file"):
        fake_app(FakeEngine(), auth=f"bearer:{tmp_path / 'none'}")


@pytest.mark.parametrize(
    ("trusted", "peer", "headers", "expected"),
    [
        (None, "127.0.0.1", {"x_user": "ada"}, "ada"),
        (None, "::1", {"x_user": "ada"}, "ada"),
        (None, "192.0.2.7", {"x_user": "ada"}, 401),
        (["192.0.2.0/24"], "192.0.2.7", {"x_user": "ada"}, "ada"),
        (["192.0.2.0/24"], "::ffff:192.0.2.7", {"x_user": "ada"}, "ada"),
        (["192.0.2.0/24"], "127.0.0.1", {"x_user": "ada"}, 401),
        (["2001:db8::/32"], "2001:db8::1", {"x_user": "ada"}, "ada"),
        (None, "unix", {"x_user": "ada"}, 401),
        (None, "127.0.0.1", {}, 401),
        (None, "127.0.0.1", {"x_user": ""}, 401),
        (None, "127.0.0.1", {"x_user": "a/../b"}, 401),
        (None, "127.0.0.1", {"x_user": "ada "}, "ada"),
        # Other headers about the peer are not trusted.
        (None, "192.0.2.7", {"x_user": "ada", "x_forwarded_for": "127.0.0.1"}, 401),
    ],
)
async def test_the_proxy_header_is_trusted_only_from_the_proxy_address(
    trusted: list[str] | None, peer: str, headers: dict[str, str], expected: object
) -> None:
    engine = FakeEngine()
    settings: dict[str, Any] = {} if trusted is None else {"trusted_proxies": trusted}
    app = fake_app(engine, auth="header:X-User", **settings)
    # An HTTP server strips whitespace around a value.
    plain = {name: value.strip() for name, value in headers.items()}
    assert await called_as(engine, app, peer=peer, **plain) == expected


async def test_a_duplicate_user_header_is_refused() -> None:
    async with client(fake_app(FakeEngine(), auth="header:x-user")) as http:
        twice = [("x-user", "ada"), ("x-user", "bob")]
        assert (await http.get("/api/chats", headers=twice)).status_code == 401


async def by_cookie(connection: HTTPConnection) -> str | None:
    return connection.cookies.get("user")


async def test_a_custom_function_replaces_the_setting() -> None:
    engine = FakeEngine()
    app = fake_app(engine, authenticate=by_cookie)
    assert await called_as(engine, app, cookie="user=ada") == "ada"
    assert await called_as(engine, app) == 401


async def test_a_user_id_that_cannot_be_stored_is_refused() -> None:
    engine = FakeEngine()
    app = fake_app(engine, authenticate=by_cookie)
    assert await called_as(engine, app, cookie="user=a/b") == 401


async def test_a_custom_function_may_refuse_with_its_own_message() -> None:
    async def refusing(_: HTTPConnection) -> str | None:
        raise Unauthenticated("Your session has ended; sign in again.")

    async with client(fake_app(FakeEngine(), authenticate=refusing)) as http:
        response = await http.get("/api/chats")
    assert (response.status_code, response.text) == (401, "Your session has ended; sign in again.")


async def test_a_custom_function_that_fails_refuses_the_call(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def failing(_: HTTPConnection) -> str | None:
        raise RuntimeError("sk-very-secret")

    engine = FakeEngine()
    assert await called_as(engine, fake_app(engine, authenticate=failing)) == 500
    assert "sk-very-secret" not in caplog.text


async def test_an_unauthenticated_call_is_refused_before_its_body_is_read(tokens: Path) -> None:
    read = 0

    async def pieces() -> Any:
        nonlocal read
        read += 1
        yield b"{}"

    async with client(fake_app(FakeEngine(), auth=f"bearer:{tokens}")) as http:
        headers = {"content-type": "application/json"}
        response = await http.post("/api/chat", content=pieces(), headers=headers)
    assert (response.status_code, read) == (401, 0)


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.7", "::", "chat.example"])
def test_a_public_address_is_not_served_without_authentication(host: str) -> None:
    engine = FakeEngine()
    with pytest.raises(ConfigurationError, match="--auth"):
        build(engine.open, Settings(host=host))
    build(engine.open, Settings(host=host), authenticate=by_cookie)
    build(engine.open, Settings(host=host, auth="header:x-user"))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "::1", "localhost"])
def test_a_loopback_address_is_served_without_authentication(host: str) -> None:
    build(FakeEngine().open, Settings(host=host))


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/"])
async def test_resources_without_an_owner_need_no_authentication(tokens: Path, path: str) -> None:
    async with client(fake_app(FakeEngine(), auth=f"bearer:{tokens}")) as http:
        assert (await http.get(path)).status_code == 200


async def test_the_detail_of_the_readiness_is_for_users(tokens: Path) -> None:
    engine = FakeEngine()
    engine.notes = ["streams are kept in memory"]
    async with client(fake_app(engine, auth=f"bearer:{tokens}"), peer="172.18.0.5") as http:
        user = {"authorization": f"Bearer {ADA}"}
        assert (await http.get("/readyz")).text == "ok\n"
        assert (await http.get("/readyz", headers={"authorization": "Bearer x"})).text == "ok\n"
        noted = await http.get("/readyz", headers=user)
        assert noted.text == "ok\nnote: streams are kept in memory\n"
        engine.not_ready = Unavailable("The database does not answer; try again.", retry_after=5)
        unready = await http.get("/readyz")
        assert (unready.status_code, unready.text) == (503, "The server is not ready; try again.")
        assert unready.headers["retry-after"] == "5"
        reason = await http.get("/readyz", headers=user)
        assert (reason.status_code, reason.text) == (503, engine.not_ready.message)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/api/chat"),
        ("GET", "/api/chat/c1/stream"),
        ("POST", "/api/chat/c1/stop"),
        ("GET", "/api/chats"),
        ("GET", "/api/chats/c1"),
        ("PATCH", "/api/chats/c1"),
        ("DELETE", "/api/chats/c1"),
        ("GET", "/api/chats/c1/files/a.png"),
        ("POST", "/api/session"),
        ("GET", "/api/approvals"),
        ("GET", "/api/approvals/a1"),
        ("POST", "/api/approvals/a1"),
        ("GET", "/api/openapi.json"),
        ("GET", "/api/chats/c1/grants"),
        ("DELETE", "/api/chats/c1/grants/pay"),
    ],
)
async def test_every_resource_of_a_user_needs_authentication(
    tokens: Path, method: str, path: str
) -> None:
    engine = FakeEngine()
    async with client(fake_app(engine, auth=f"bearer:{tokens}")) as http:
        response = await http.request(method, path)
    assert (response.status_code, response.headers["x-error-code"]) == (401, "unauthenticated")
    assert engine.calls == []


@pytest.mark.parametrize(
    ("cookie", "address", "user"),
    [
        (None, "127.0.0.1", "local"),
        ("colleague", "127.0.0.1", "colleague"),
        ("stranger", "127.0.0.1", "local"),
        ("colleague", "10.0.0.1", None),
    ],
)
async def test_a_cookie_names_the_person_of_the_demo_on_this_machine_alone(
    cookie: str | None, address: str, user: str | None
) -> None:
    people = DemoUsers(User("local"), User("colleague", ["finance"]))
    fake = FakeEngine()

    async def open_engine() -> Any:
        return fake

    app = build(open_engine, Settings(), authenticate=people)
    http = client(app.app, peer=address)
    if cookie is not None:
        http.cookies.set(DEMO_COOKIE, cookie)
    response = await http.get("/api/session")
    if user is None:
        assert response.status_code == 401
        return
    expected = {"user": user, "canSignOut": False, "demoUsers": ["local", "colleague"]}
    assert response.json() == expected
    assert people.roles_of("colleague") == {"finance"}
