"""The session cookie: attributes, validity and lifetime."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import HTTPConnection
from websockets.exceptions import InvalidStatus

from sluicegate.errors import Unauthenticated, Unavailable
from sluicegate.server.session_cookie import COOKIE, MAX_TOKEN, SECURE_COOKIE
from tests.server.exchange import ORIGIN, client, serving
from tests.server.fake_engine import FakeEngine, application, fake_app
from tests.transports.socket_client import opened, send_frame

ADA, BOB = "token-of-ada", "to.ken/of+bob=="
PUBLIC = "https://chat.example"


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    path = tmp_path / "tokens"
    write(path, ada=ADA, bob=BOB)
    return path


def write(path: Path, **tokens: str) -> None:
    lines = [f"sha256:{hashlib.sha256(t.encode()).hexdigest()} {u}\n" for u, t in tokens.items()]
    path.write_text("".join(lines))


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


async def status_of(app: Any, **headers: str) -> int:
    """The status of a request with only these headers."""
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    async with client(app) as http:
        return (await http.get("/api/chats", headers=given)).status_code


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, f"{COOKIE}={BOB}; Max-Age=43200; Path=/; HttpOnly; SameSite=Strict"),
        (
            {"host": "localhost:3000"},
            f"{COOKIE}={BOB}; Max-Age=43200; Path=/; HttpOnly; SameSite=Strict",
        ),
        (
            {"host": "[::1]:8000"},
            f"{COOKIE}={BOB}; Max-Age=43200; Path=/; HttpOnly; SameSite=Strict",
        ),
        (
            {"host": "chat.example"},
            f"{SECURE_COOKIE}={BOB}; Max-Age=43200; Path=/; HttpOnly; SameSite=Strict; Secure",
        ),
        # A proxy may use another host name; the Origin of the page takes precedence.
        (
            {"origin": PUBLIC},
            f"{SECURE_COOKIE}={BOB}; Max-Age=43200; Path=/; HttpOnly; SameSite=Strict; Secure",
        ),
    ],
)
async def test_the_cookie_is_http_only_and_valid_for_half_a_day(
    tokens: Path, headers: dict[str, str], expected: str
) -> None:
    app = fake_app(FakeEngine(), auth=f"bearer:{tokens}", public_url=PUBLIC)
    async with client(app) as http:
        response = await http.post("/api/session", headers=bearer(BOB) | headers)
    assert (response.status_code, response.content) == (204, b"")
    assert response.headers.get_list("set-cookie") == [expected]
    assert response.headers["cache-control"] == "no-store"


async def test_the_cookie_authenticates_the_user_until_sign_out(tokens: Path) -> None:
    engine = FakeEngine()
    app = fake_app(engine, auth=f"bearer:{tokens}")
    async with client(app, headers={"origin": ORIGIN}) as http:
        await http.post("/api/session", headers=bearer(ADA))
        assert (await http.post("/api/chat/c1/stop")).status_code == 204
        image = await http.get(
            "/api/chats/c1/files/a.png", headers={"sec-fetch-site": "same-origin"}
        )
        assert (image.status_code, image.headers["x-error-code"]) == (404, "unknown")
        assert (await http.delete("/api/session")).status_code == 204
        assert dict(http.cookies) == {}
        assert (await http.post("/api/chat/c1/stop")).status_code == 401
    assert engine.calls == [("stop", "c1", "ada"), ("get_file", "c1", "a.png", "ada")]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": ORIGIN}, 200),
        ({"origin": "http://127.0.0.1"}, 403),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "https://app.example"}, 401),
        ({"sec_fetch_site": "same-origin"}, 200),
        ({"sec_fetch_site": "same-site"}, 401),
        ({"sec_fetch_site": "cross-site"}, 401),
        ({"sec_fetch_site": "none"}, 401),
        ({}, 401),
    ],
)
async def test_the_cookie_is_accepted_only_from_an_allowed_origin(
    tokens: Path, headers: dict[str, str], status: int
) -> None:
    app = fake_app(FakeEngine(), auth=f"bearer:{tokens}", origins=["https://app.example"])
    assert await status_of(app, cookie=f"{COOKIE}={ADA}", **headers) == status


@pytest.mark.parametrize(
    ("origin", "cookie", "status"),
    [
        (PUBLIC, f"{SECURE_COOKIE}={ADA}", 200),
        # A sibling domain can set this cookie.
        (PUBLIC, f"{COOKIE}={ADA}", 401),
        (ORIGIN, f"{SECURE_COOKIE}={ADA}", 401),
        (ORIGIN, f"{COOKIE}={ADA}; other=1", 200),
        (ORIGIN, f"{COOKIE}=", 401),
        (ORIGIN, f"{COOKIE}={ADA} {ADA}", 401),
        (ORIGIN, f"{COOKIE}=somebody", 401),
        (ORIGIN, f"session={ADA}", 401),
    ],
)
async def test_only_the_session_cookie_with_a_valid_token_is_accepted(
    tokens: Path, origin: str, cookie: str, status: int
) -> None:
    app = fake_app(FakeEngine(), auth=f"bearer:{tokens}", public_url=PUBLIC)
    assert await status_of(app, origin=origin, cookie=cookie) == status


async def test_a_revoked_token_is_refused_in_the_cookie_too(tokens: Path) -> None:
    app = fake_app(FakeEngine(), auth=f"bearer:{tokens}")
    carried = {"origin": ORIGIN, "cookie": f"{COOKIE}={ADA}"}
    assert await status_of(app, **carried) == 200
    write(tokens, bob=BOB)
    assert await status_of(app, **carried) == 401


async def test_a_token_in_the_header_takes_precedence_over_the_cookie(tokens: Path) -> None:
    engine = FakeEngine()
    app = fake_app(engine, auth=f"bearer:{tokens}")
    carried = {"origin": ORIGIN, "cookie": f"{COOKIE}={ADA}"}
    assert await status_of(app, **carried, **bearer(BOB)) == 200
    assert engine.calls[0][1] == "bob"
    assert await status_of(app, **carried, **bearer("somebody")) == 401


async def test_a_cookie_authenticates_a_socket_and_is_verified_again(tokens: Path) -> None:
    engine = FakeEngine()
    app = application(engine, auth=f"bearer:{tokens}", recheck_interval=0.02)
    async with serving(app) as address:
        origin = f"http://127.0.0.1:{address[1]}"
        carried: dict[str, Any] = {"additional_headers": {"Cookie": f"{COOKIE}={ADA}"}}
        async with opened(address, origin=origin, **carried) as page:
            await page.exchange(send_frame())
            write(tokens, bob=BOB)
            assert await page.wait_closed() == (4401, "unauthenticated")
        with pytest.raises(InvalidStatus) as refused:
            async with opened(address, origin="https://evil.example", **carried):
                pass
        assert refused.value.response.status_code == 403
    assert [call[2] for call in engine.calls] == ["ada"]


async def test_a_cookie_from_a_disallowed_origin_opens_no_socket(tokens: Path) -> None:
    engine = FakeEngine()
    async with serving(application(engine, auth=f"bearer:{tokens}")) as address:
        carried = {"Cookie": f"{COOKIE}={ADA}"}
        async with opened(address, additional_headers=carried) as stranger:
            [error] = await stranger.exchange(send_frame())
    assert error["code"] == "unauthenticated"
    assert engine.calls == []


async def test_a_custom_function_verifies_the_token_of_the_cookie() -> None:
    refusal: Exception | None = None

    async def authenticate(connection: HTTPConnection) -> str | None:
        if connection.headers.get("authorization") == f"Bearer {ADA}":
            return "ada"
        if refusal is not None:
            raise refusal
        return None

    app = fake_app(FakeEngine(), authenticate=authenticate)
    carried = {"origin": ORIGIN, "cookie": f"{COOKIE}={ADA}"}
    assert await status_of(app, **carried) == 200
    refusal = Unauthenticated("Sign in, please.")
    assert await status_of(app, **carried) == 200
    assert await status_of(app, origin=ORIGIN) == 401
    refusal = Unavailable()
    assert await status_of(app, **carried) == 503


@pytest.mark.parametrize(
    ("settings", "headers"),
    [
        ({}, {}),
        ({}, bearer(ADA)),
        ({"auth": "header:x-user"}, {"x-user": "ada"}),
    ],
)
async def test_no_cookie_is_set_if_no_token_is_needed(
    settings: dict[str, Any], headers: dict[str, str]
) -> None:
    async with client(fake_app(FakeEngine(), **settings)) as http:
        response = await http.post("/api/session", headers=headers)
    assert response.status_code == 204
    assert "set-cookie" not in response.headers


async def test_a_cookie_is_ignored_behind_an_authenticating_proxy() -> None:
    app = fake_app(FakeEngine(), auth="header:authorization")
    assert await status_of(app, origin=ORIGIN, cookie=f"{COOKIE}=ada") == 401


@pytest.mark.parametrize(("length", "status"), [(MAX_TOKEN, 204), (MAX_TOKEN + 1, 413)])
async def test_a_token_too_large_for_a_cookie_is_refused(
    tokens: Path, length: int, status: int
) -> None:
    long = "x" * length
    write(tokens, ada=long)
    async with client(fake_app(FakeEngine(), auth=f"bearer:{tokens}")) as http:
        response = await http.post("/api/session", headers=bearer(long))
    assert response.status_code == status
    assert ("set-cookie" in response.headers) == (status == 204)


async def test_a_user_whose_token_was_revoked_may_still_sign_out(tokens: Path) -> None:
    app = fake_app(FakeEngine(), auth=f"bearer:{tokens}", public_url=PUBLIC)
    async with client(app) as http:
        response = await http.delete("/api/session", headers={"origin": PUBLIC})
    assert response.status_code == 204
    assert response.headers["set-cookie"] == (
        f"{SECURE_COOKIE}=; Max-Age=0; Path=/; HttpOnly; SameSite=Strict; Secure"
    )
