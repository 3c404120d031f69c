"""The limit of failed authentications: guesses are refused, users of the same peer are not."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import HTTPConnection
from websockets.exceptions import InvalidStatus

from sluicegate.errors import Forbidden, TooManyRequests, Unavailable
from sluicegate.server.app import build, engine_of
from sluicegate.server.failed_authentications import (
    TOO_MANY_FAILURES,
    FailureLimits,
    FailureLog,
    RecentDigests,
)
from sluicegate.server.session_cookie import COOKIE
from sluicegate.server.settings import Settings
from tests.clock import Clock
from tests.patience import LEASE
from tests.server.exchange import ORIGIN, PATIENCE, chat_body, client, over_socket, serving
from tests.server.fake_engine import FakeEngine, application
from tests.transports.socket_client import Frame, SocketClient, opened, send_frame
from tests.transports.test_live_socket import agent

Address = tuple[str, int]
BURST = 3
REFUSED = (429, "1", "too_many_requests", TOO_MANY_FAILURES)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def auth(tmp_path: Path) -> str:
    tokens = tmp_path / "tokens"
    write(tokens, "ada", "bob")
    return f"bearer:{tokens}"


def write(tokens: Path, *names: str) -> None:
    lines = [f"sha256:{hashlib.sha256(f'token-{n}'.encode()).hexdigest()} {n}\n" for n in names]
    tokens.write_text("".join(lines))


def bearer(name: str) -> dict[str, str]:
    return {"authorization": f"Bearer token-{name}"}


@asynccontextmanager
async def served(engine: FakeEngine, clock: Clock, **settings: Any) -> AsyncIterator[Address]:
    app = application(engine, clock=clock, max_failed_authentications=BURST, **settings)
    async with serving(app) as address:
        yield address


async def statuses(http: Any, *names: str) -> list[int]:
    """The statuses of requests with these tokens."""
    return [(await http.get("/api/chats", headers=bearer(name))).status_code for name in names]


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [line for line in caplog.messages if line.startswith("authentication failed")]


async def test_a_peer_that_guesses_is_refused_while_its_users_go_on(
    engine: FakeEngine, auth: str, clock: Clock
) -> None:
    async with served(engine, clock, auth=auth) as address, over_socket(address) as http:
        assert await statuses(http, "ada", "g1", "g2", "g3") == [200, 401, 401, 401]
        refused = await http.get("/api/chats", headers=bearer("g4"))
        headers = refused.headers
        answer = (refused.status_code, headers["retry-after"], headers["x-error-code"])
        assert (*answer, refused.text) == REFUSED
        # Not even a valid token is checked, but one that was accepted before.
        stream = [
            await http.post("/api/chat", json=chat_body(), headers=bearer(name))
            for name in ("bob", "ada")
        ]
        assert [each.status_code for each in stream] == [429, 200]
        assert stream[1].text.endswith("data: [DONE]\n\n")
        # Requests without credentials are no guesses.
        assert (await http.get("/api/chats")).status_code == 401
        clock.now += 1
        assert await statuses(http, "bob", "g5", "g6", "bob") == [200, 401, 429, 200]


async def test_failures_are_logged_once_a_minute_without_tokens(
    engine: FakeEngine, auth: str, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    by = "authentication failed by=127.0.0.1"
    async with served(engine, clock, auth=auth) as address, over_socket(address) as http:
        await statuses(http, "ada")
        assert lines(caplog) == []
        await statuses(http, "g1")
        assert lines(caplog) == [f"{by} failed=1 unchecked=0"]
        await statuses(http, "g2", "g3", "g4", "g5")
        clock.now += 59
        await statuses(http, "g6")
        assert len(lines(caplog)) == 1
        clock.now += 1
        await statuses(http, "ada")
        assert lines(caplog)[1:] == [f"{by} failed=3 unchecked=2"]
        clock.now += 60
        await statuses(http, "ada")
        assert len(lines(caplog)) == 2
        await statuses(http, "g7")
        assert lines(caplog)[2:] == [f"{by} failed=1 unchecked=0"]
    for name in ("ada", "g1", "g4", "g7"):
        assert f"token-{name}" not in caplog.text
        assert hashlib.sha256(f"token-{name}".encode()).hexdigest()[:16] not in caplog.text


async def test_the_same_refused_token_again_is_no_guess(
    engine: FakeEngine, auth: str, clock: Clock
) -> None:
    async with served(engine, clock, auth=auth) as address, over_socket(address) as http:
        given = [*["expired"] * 10, "g1", "g2", "g3"]
        assert await statuses(http, *given) == [*[401] * 12, 429]


async def test_a_token_that_is_revoked_is_not_accepted_from_memory(
    engine: FakeEngine, auth: str, clock: Clock
) -> None:
    async with served(engine, clock, auth=auth) as address, over_socket(address) as http:
        assert await statuses(http, "ada") == [200]
        write(Path(auth.removeprefix("bearer:")), "bob")
        assert await statuses(http, "ada", "g1", "g2", "g3", "ada") == [401, 401, 401, 401, 429]


async def test_an_accepted_token_is_known_for_an_hour(
    engine: FakeEngine, auth: str, clock: Clock
) -> None:
    async with served(engine, clock, auth=auth) as address, over_socket(address) as http:
        assert await statuses(http, "ada", "bob") == [200, 200]
        clock.now += 3_000
        assert await statuses(http, "ada") == [200]
        clock.now += 601
        assert await statuses(http, "g1", "g2", "g3", "ada", "bob") == [401, 401, 401, 200, 429]


async def guess_in_frames(client: SocketClient, *names: str, chat: str = "c1") -> list[Frame]:
    """The last frames of requests with these tokens on one socket."""
    frames = []
    for name in names:
        frame = send_frame(f"r-{name}", chat=chat) | {"headers": bearer(name)}
        frames.append((await client.exchange(frame))[-1])
    return frames


def codes(frames: list[Frame]) -> list[str]:
    return [str(frame.get("code", frame["type"])) for frame in frames]


async def handshake_status(address: Address, name: str, path: str) -> int:
    with pytest.raises(InvalidStatus) as caught:
        async with opened(address, path, additional_headers=bearer(name)):
            pass
    response = caught.value.response
    assert response.headers["retry-after"] == "1"
    return response.status_code


async def test_guesses_on_a_socket_are_refused(engine: FakeEngine, auth: str, clock: Clock) -> None:
    path = "/api/chat/ws"
    async with served(engine, clock, auth=auth) as address, opened(address) as client:
        assert codes(await guess_in_frames(client, "ada")) == ["end"]
        # The handshake of the first guess is a failure too, though a frame may bring a token.
        async with opened(address, additional_headers=bearer("g1")) as other:
            frames = await guess_in_frames(other, "g2", "g3", "g4", "ada")
        assert codes(frames) == ["unauthenticated", "unauthenticated", "too_many_requests", "end"]
        assert frames[2]["errorText"] == TOO_MANY_FAILURES
        assert await handshake_status(address, "bob", path) == 429
        assert codes(await guess_in_frames(client, "bob", "ada")) == ["too_many_requests", "end"]
        async with opened(address, additional_headers=bearer("ada")) as known:
            assert (await known.exchange(send_frame()))[-1]["type"] == "end"
        clock.now += 1
        assert codes(await guess_in_frames(client, "bob")) == ["end"]


async def test_guesses_on_a_live_socket_are_refused(
    auth: str, clock: Clock, tmp_path: Path
) -> None:
    path = "/api/live?chat="
    settings = Settings(
        port=0,
        sessions=f"sqlite+aiosqlite:///{tmp_path}/sluicegate.db",
        artifacts=f"file:{tmp_path}/files",
        auth=auth,
        lease_ttl=LEASE,
        max_failed_authentications=BURST,
    )
    app = build(engine_of(agent(), settings), settings, clock=clock)
    async with app.app.router.lifespan_context(app.app), serving(app, settings) as address:
        async with opened(address, f"{path}c1") as client:
            assert codes(await guess_in_frames(client, "ada")) == ["end"]
        async with opened(address, f"{path}c2") as client:
            frames = await guess_in_frames(client, "g1", "g2", "g3", "bob", "ada", chat="c2")
            assert codes(frames) == [*["unauthenticated"] * 3, "too_many_requests", "end"]
        assert await handshake_status(address, "bob", f"{path}c3") == 429
        clock.now += 1
        async with opened(address, f"{path}c3") as client:
            assert codes(await guess_in_frames(client, "bob", chat="c3")) == ["end"]


async def test_sessions_in_cookies_are_guessed_no_faster(
    engine: FakeEngine, auth: str, clock: Clock
) -> None:
    def cookie(session_id: str) -> dict[str, str]:
        return {"origin": ORIGIN, "cookie": f"{COOKIE}={session_id}"}

    app = application(engine, clock=clock, auth=auth, max_failed_authentications=BURST).app
    async with client(app) as http:
        signed_in = await http.post("/api/session", headers=bearer("ada") | {"origin": ORIGIN})
        session_id = signed_in.headers["set-cookie"].partition("=")[2].partition(";")[0]
        http.cookies.clear()
        tried = [session_id, *(number * 43 for number in "1234"), session_id]
        answers = [(await http.get("/api/chats", headers=cookie(each))) for each in tried]
        assert [each.status_code for each in answers] == [200, 401, 401, 401, 429, 200]
        # A cookie of another program is no credential.
        other = {"origin": ORIGIN, "cookie": "theme=dark"}
        assert (await http.get("/api/chats", headers=other)).status_code == 401


async def test_a_peer_that_is_no_proxy_is_limited_and_a_proxy_is_not(
    engine: FakeEngine, clock: Clock
) -> None:
    app = application(
        engine, clock=clock, auth="header:x-user", max_failed_authentications=BURST
    ).app
    names = ["ada", "bob", "eve", "joe"]
    for peer, expected in (("192.0.2.7", [401, 401, 401, 429]), ("127.0.0.1", [401] * 4)):
        async with client(app, peer=peer) as http:
            answers = [
                await http.get("/api/chats", headers=[("x-user", name), ("x-user", "ada")])
                for name in names
            ]
        assert [each.status_code for each in answers] == expected
    async with client(app) as http:
        assert (await http.get("/api/chats", headers={"x-user": "ada"})).status_code == 200


@pytest.mark.parametrize(
    ("other", "expected"),
    [("2001:db8::2", 429), ("2001:db8:0:1::1", 401), ("192.0.2.1", 401)],
)
async def test_each_peer_has_failures_of_its_own(
    engine: FakeEngine, auth: str, clock: Clock, other: str, expected: int
) -> None:
    app = application(engine, clock=clock, auth=auth, max_failed_authentications=BURST).app
    async with client(app, peer="2001:db8::1") as http:
        assert await statuses(http, "g1", "g2", "g3", "g4") == [401, 401, 401, 429]
    async with client(app, peer=other) as http:
        assert await statuses(http, "g5") == [expected]


async def test_credentials_of_workers_are_guessed_no_faster(
    engine: FakeEngine, auth: str, clock: Clock
) -> None:
    file = auth.removeprefix("bearer:")
    async with (
        served(engine, clock, worker_registrations=file) as address,
        over_socket(address) as http,
    ):
        names = ["g1", "g2", "g3", "g4", "ada"]
        answers = [await http.delete("/api/workers/bob", headers=bearer(name)) for name in names]
        assert [each.status_code for each in answers] == [401, 401, 401, 429, 429]
        # Without an authentication of users there is nothing that they could guess.
        assert await statuses(http, "g5") == [200]


class ByKey:
    """An authenticator that reads a header of its own and counts its checks."""

    def __init__(self) -> None:
        self.checked: list[str] = []
        self.outcomes: dict[str, Exception] = {}
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def __call__(self, connection: HTTPConnection) -> str | None:
        key = connection.headers.get("x-api-key", "")
        self.checked.append(key)
        await self.may_answer.wait()
        if key in self.outcomes:
            raise self.outcomes[key]
        return "ada" if key == "right" else None

    def served(self, clock: Clock) -> Any:
        return application(
            FakeEngine(),
            authenticate=self,
            clock=clock,
            max_failed_authentications=BURST,
            credential_headers=["X-API-Key"],
        ).app


async def test_an_authenticator_of_your_own_is_not_called_for_further_guesses(
    clock: Clock,
) -> None:
    keys = ByKey()
    keys.outcomes = {
        "down": Unavailable(),
        "g1": Forbidden("This key is not for this server; ask for another one."),
        "g2": RuntimeError("a fault"),
    }
    async with client(keys.served(clock)) as http:
        given = ["", "down", "down", "right", "g1", "g2", "g3", "g4", "", "right", "down"]
        answers = [await http.get("/api/chats", headers={"x-api-key": key}) for key in given]
    expected = [401, 503, 503, 200, 403, 500, 401, 429, 401, 200, 429]
    assert [each.status_code for each in answers] == expected
    assert keys.checked == ["", "down", "down", "right", "g1", "g2", "g3", "", "right"]


async def test_guesses_at_the_same_time_are_all_counted(clock: Clock) -> None:
    keys = ByKey()
    keys.may_answer.clear()
    async with client(keys.served(clock)) as http:
        headers = [{"x-api-key": f"g{number}"} for number in range(10)]
        asked = [asyncio.create_task(http.get("/api/chats", headers=each)) for each in headers]
        async with asyncio.timeout(PATIENCE):
            refused, _ = await _first(asked, len(headers) - BURST)
        assert {task.result().status_code for task in refused} == {429}
        keys.may_answer.set()
        answers = await asyncio.gather(*asked)
    assert sorted(each.status_code for each in answers) == [401] * BURST + [429] * 7
    assert len(keys.checked) == BURST


async def _first(tasks: list[asyncio.Task[Any]], count: int) -> tuple[set[Any], set[Any]]:
    done, pending = set[Any](), set(tasks)
    while len(done) < count:
        ended, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        done |= ended
    return done, pending


async def test_the_memory_of_peers_is_bounded(clock: Clock) -> None:
    async def refuse(_: HTTPConnection) -> str | None:
        return None

    limits = FailureLimits(burst=1, per_minute=60, clock=clock, max_peers=2)
    refused: list[bool] = []
    for host in ("192.0.2.1", "192.0.2.2", "192.0.2.1", "192.0.2.3", "192.0.2.1", "192.0.2.2"):
        scope = {"type": "http", "client": (host, 1), "headers": []}
        try:
            await limits.check(refuse, HTTPConnection(scope), [f"guess {len(refused)}"])
        except TooManyRequests:
            refused.append(True)
        else:
            refused.append(False)
    assert refused == [False, False, True, False, True, False]


def test_the_memory_of_digests_is_bounded() -> None:
    digests = RecentDigests(2)
    for digest in (b"one", b"two", b"one", b"three"):
        digests.add(digest, 0.0)
    assert [digests.contains(each, 3_600.0) for each in (b"one", b"two", b"three")] == [
        True,
        False,
        True,
    ]
    assert not digests.contains(b"one", 3_601.0)


def test_counts_of_peers_that_are_removed_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    log = FailureLog(1)
    log.note("a", 0.0, checked=True)
    log.note("a", 0.0, checked=True)
    log.note("b", 0.0, checked=False)
    assert [line.partition(" by=")[2] for line in lines(caplog)] == [
        "a failed=1 unchecked=0",
        "b failed=0 unchecked=1",
        "a failed=1 unchecked=0",
    ]
    log.write_due(60.0)
    assert len(lines(caplog)) == 3


def test_a_header_that_cannot_be_one_is_refused_at_startup() -> None:
    with pytest.raises(ValueError, match="no spaces or colons"):
        Settings(credential_headers=("x api key",))
