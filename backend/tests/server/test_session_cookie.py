"""The session cookie: attributes, validity and lifetime."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import HTTPConnection
from websockets.exceptions import InvalidStatus

from sluicegate import create_app
from sluicegate.errors import StoreUnavailable, Unauthenticated, Unavailable
from sluicegate.server.session_cookie import COOKIE, SECURE_COOKIE
from tests.engine.stage import says, scripted
from tests.real_stores.databases import fresh_database
from tests.real_stores.postgres import Postgres
from tests.server.exchange import ORIGIN, client, serving, started
from tests.server.fake_engine import FakeEngine, application, fake_app
from tests.server.page import patient_engines
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


async def signed_in(app: Any, token: str = ADA, **headers: str) -> str:
    """Sign in and return the id of the session."""
    given = bearer(token) | {"origin": ORIGIN} | headers
    async with client(app) as http:
        response = await http.post("/api/session", headers=given)
    [cookie] = response.headers.get_list("set-cookie")
    return str(cookie.partition("=")[2].partition(";")[0])


async def status_of(app: Any, **headers: str) -> int:
    """The status of a request with only these headers."""
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    async with client(app) as http:
        return (await http.get("/api/chats", headers=given)).status_code


PLAIN = f"{COOKIE}=ID; Max-Age=43200; Path=/; HttpOnly; SameSite=Strict"
SECURE = f"{SECURE_COOKIE}=ID; Max-Age=43200; Path=/; HttpOnly; SameSite=Strict; Secure"


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, PLAIN),
        ({"host": "localhost:3000"}, PLAIN),
        ({"host": "[::1]:8000"}, PLAIN),
        ({"host": "chat.example"}, SECURE),
        # A proxy may use another host name; the Origin of the page takes precedence.
        ({"origin": PUBLIC}, SECURE),
        ({"origin": "https://localhost:8443"}, SECURE),
    ],
)
async def test_the_cookie_is_http_only_and_valid_for_half_a_day(
    tokens: Path, headers: dict[str, str], expected: str
) -> None:
    app = fake_app(
        FakeEngine(),
        auth=f"bearer:{tokens}",
        public_url=PUBLIC,
        origins=["https://localhost:8443"],
    )
    async with client(app) as http:
        response = await http.post("/api/session", headers=bearer(BOB) | headers)
    assert (response.status_code, response.content) == (204, b"")
    [cookie] = response.headers.get_list("set-cookie")
    session_id = cookie.partition("=")[2].partition(";")[0]
    assert cookie.replace(session_id, "ID") == expected
    assert re.fullmatch(r"[A-Za-z0-9_-]{43}", session_id)
    assert BOB not in cookie
    assert response.headers["cache-control"] == "no-store"


async def test_a_request_over_tls_gets_a_secure_cookie_on_loopback(tokens: Path) -> None:
    app = fake_app(FakeEngine(), auth=f"bearer:{tokens}")
    async with client(app, base_url="https://127.0.0.1:8000") as http:
        response = await http.post("/api/session", headers=bearer(BOB))
        assert response.headers["set-cookie"].startswith(f"{SECURE_COOKIE}=")
        image = {"sec-fetch-site": "same-origin"}
        assert (await http.get("/api/chats", headers=image)).status_code == 200


async def test_each_sign_in_has_a_new_id_and_ends_the_session_before(tokens: Path) -> None:
    app = fake_app(FakeEngine(), auth=f"bearer:{tokens}")
    planted = await signed_in(app)
    second = await signed_in(app, cookie=f"{COOKIE}={planted}")
    assert second != planted
    assert await status_of(app, origin=ORIGIN, cookie=f"{COOKIE}={planted}") == 401
    assert await status_of(app, origin=ORIGIN, cookie=f"{COOKIE}={second}") == 200
    # A sign-in of another browser does not end it.
    await signed_in(app)
    assert await status_of(app, origin=ORIGIN, cookie=f"{COOKIE}={second}") == 200


async def test_sign_out_ends_the_session_for_a_copy_of_the_cookie_too(tokens: Path) -> None:
    app = fake_app(FakeEngine(), auth=f"bearer:{tokens}")
    session_id = await signed_in(app)
    carried = {"origin": ORIGIN, "cookie": f"{COOKIE}={session_id}"}
    async with client(app) as http:
        assert (await http.delete("/api/session", headers=carried)).status_code == 204
    assert await status_of(app, **carried) == 401


async def test_a_session_is_described_to_its_page(tokens: Path) -> None:
    app = fake_app(FakeEngine(), auth=f"bearer:{tokens}")
    carried = {"sec-fetch-site": "same-origin", "cookie": f"{COOKIE}={await signed_in(app)}"}
    async with client(app) as http:
        by_cookie = await http.get("/api/session", headers=carried)
        by_header = await http.get("/api/session", headers=bearer(BOB))
        assert (await http.get("/api/session")).status_code == 401
    assert by_cookie.json() == {"user": "ada", "canSignOut": True}
    assert by_cookie.headers["cache-control"] == "no-store"
    assert by_header.json() == {"user": "bob", "canSignOut": False}


@pytest.mark.parametrize(("settings", "user"), [({}, None), ({"auth": "header:x-user"}, "ada")])
async def test_a_user_without_a_session_cannot_sign_out(
    settings: dict[str, Any], user: str | None
) -> None:
    carried = {"x-user": "ada", "origin": ORIGIN, "cookie": f"{COOKIE}={'x' * 43}"}
    async with client(fake_app(FakeEngine(), **settings)) as http:
        response = await http.get("/api/session", headers=carried)
    assert response.json() == {"user": user, "canSignOut": False}


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
    session_id = await signed_in(app)
    assert await status_of(app, cookie=f"{COOKIE}={session_id}", **headers) == status


@pytest.mark.parametrize(
    ("origin", "cookie", "status"),
    [
        (PUBLIC, f"{SECURE_COOKIE}=ID", 200),
        # A sibling domain can set this cookie.
        (PUBLIC, f"{COOKIE}=ID", 401),
        (ORIGIN, f"{SECURE_COOKIE}=ID", 200),
        (ORIGIN, f"{COOKIE}=ID; other=1", 200),
        (ORIGIN, f"{COOKIE}=", 401),
        (ORIGIN, f"{COOKIE}=ID ID", 401),
        (ORIGIN, f"{COOKIE}=IDx", 401),
        # The token itself is no session.
        (ORIGIN, f"{COOKIE}={ADA}", 401),
        (ORIGIN, "session=ID", 401),
    ],
)
async def test_only_the_session_cookie_with_a_valid_id_is_accepted(
    tokens: Path, origin: str, cookie: str, status: int
) -> None:
    app = fake_app(FakeEngine(), auth=f"bearer:{tokens}", public_url=PUBLIC)
    cookie = cookie.replace("ID", await signed_in(app))
    assert await status_of(app, origin=origin, cookie=cookie) == status


async def test_a_revoked_token_ends_the_session(tokens: Path) -> None:
    app = fake_app(FakeEngine(), auth=f"bearer:{tokens}")
    carried = {"origin": ORIGIN, "cookie": f"{COOKIE}={await signed_in(app)}"}
    assert await status_of(app, **carried) == 200
    write(tokens, bob=BOB)
    assert await status_of(app, **carried) == 401
    # It stays ended when the token is accepted again.
    write(tokens, ada=ADA, bob=BOB)
    assert await status_of(app, **carried) == 401


async def test_a_token_in_the_header_takes_precedence_over_the_cookie(tokens: Path) -> None:
    engine = FakeEngine()
    app = fake_app(engine, auth=f"bearer:{tokens}")
    carried = {"origin": ORIGIN, "cookie": f"{COOKIE}={await signed_in(app)}"}
    assert await status_of(app, **carried, **bearer(BOB)) == 200
    assert engine.calls[0][1] == "bob"
    assert await status_of(app, **carried, **bearer("somebody")) == 401


async def test_a_cookie_authenticates_a_socket_and_is_verified_again(tokens: Path) -> None:
    engine = FakeEngine()
    app = application(engine, auth=f"bearer:{tokens}", recheck_interval=0.02)
    session_id = await signed_in(app.app)
    async with serving(app) as address:
        origin = f"http://127.0.0.1:{address[1]}"
        carried: dict[str, Any] = {"additional_headers": {"Cookie": f"{COOKIE}={session_id}"}}
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
    app = application(engine, auth=f"bearer:{tokens}")
    session_id = await signed_in(app.app)
    async with serving(app) as address:
        carried = {"Cookie": f"{COOKIE}={session_id}"}
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
    carried = {"origin": ORIGIN, "cookie": f"{COOKIE}={await signed_in(app)}"}
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


async def test_a_token_of_any_length_fits_since_the_cookie_does_not_hold_it(
    tokens: Path,
) -> None:
    long = "x" * 20_000
    write(tokens, ada=long)
    app = fake_app(FakeEngine(), auth=f"bearer:{tokens}")
    session_id = await signed_in(app, long)
    assert await status_of(app, origin=ORIGIN, cookie=f"{COOKIE}={session_id}") == 200


async def test_an_unavailable_database_is_not_a_missing_session(
    tokens: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = FakeEngine()
    app = fake_app(engine, auth=f"bearer:{tokens}")
    session_id = await signed_in(app)

    async def unavailable(_session_id: str) -> str | None:
        raise StoreUnavailable("the database does not answer")

    monkeypatch.setattr(engine.cookie_sessions, "token", unavailable)
    assert await status_of(app, origin=ORIGIN, cookie=f"{COOKIE}={session_id}") == 503


async def test_replicas_share_sessions(tokens: Path, tmp_path: Path, postgres: Postgres) -> None:
    async with fresh_database(postgres) as url:
        options: dict[str, Any] = {"sessions": url, "artifacts": f"file:{tmp_path}/files"}
        agent = scripted({".": [says("Hello.")]}, [])
        with patient_engines():
            one, other = (create_app(agent, auth=f"bearer:{tokens}", **options) for _ in range(2))
        async with started(one), started(other):
            carried = {"origin": ORIGIN, "cookie": f"{COOKIE}={await signed_in(one)}"}
            assert await status_of(other, **carried) == 200
            async with client(other) as http:
                await http.delete("/api/session", headers=carried)
            assert await status_of(one, **carried) == 401


async def test_a_user_whose_token_was_revoked_may_still_sign_out(tokens: Path) -> None:
    app = fake_app(FakeEngine(), auth=f"bearer:{tokens}", public_url=PUBLIC)
    async with client(app) as http:
        response = await http.delete("/api/session", headers={"origin": PUBLIC})
    assert response.status_code == 204
    assert response.headers["set-cookie"] == (
        f"{SECURE_COOKIE}=; Max-Age=0; Path=/; HttpOnly; SameSite=Strict; Secure"
    )
