"""Both databases accept the same values at a limit and refuse the same values above it."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote

import httpx
import pytest
import pytest_asyncio
from google.adk.tools.function_tool import FunctionTool

from sluicegate.engine.timeouts_and_intervals import EngineTimings
from sluicegate.server.app import build, engine_of
from sluicegate.server.settings import Settings
from sluicegate.testing.message_comparison import comparable
from tests.engine.stage import calls, part_of, says, scripted
from tests.patience import LEASE
from tests.real_stores.databases import fresh_database
from tests.server.exchange import chat_body, chunks, client, started
from tests.server.page import Page
from tests.server.test_bad_requests import BAD, JSON, Bad
from tests.stores.builders import PATIENT

pytestmark = pytest.mark.asyncio(loop_scope="module")

KEYS = {"zz": 1, "a": {"y": 2, "bbb": [3.5, 1e-7, 2**53 - 1]}, "éé": None, "b": True}
"""Keys that JSONB reorders, and numbers at their limit."""

RESULTS: dict[str, Any] = {
    "U+0000": "a\0b",
    "half a pair": "a\ud800b",
    "not finite": [float("nan"), float("-inf")],
    "past 2^53": [2**53 + 1, -(2**70)],
    "keys": KEYS,
    "other planes": "😀 \u202e \x01",
}


async def pay(n: float = 0, more: dict[str, Any] | None = None) -> dict[str, Any]:
    """Pay."""
    return {"paid": n, "more": more}


async def give(what: str) -> dict[str, Any]:
    """Return a result that not every store can keep unchanged."""
    return {"given": RESULTS[what]}


AGENT = scripted(
    {
        **{
            f"give {re.escape(name)}$": [calls(("give", {"what": name})), says("Given.")]
            for name in RESULTS
        },
        "say U": [says("a\0b \ud800 c")],
        "call U": [calls(("give", {"what": "a\0b", "n": 2**70})), says("Given.")],
        "pay": [calls(("pay", {"n": 1, "more": KEYS})), says("Paid.")],
        ".": [says("Hello.")],
    },
    [FunctionTool(pay, require_confirmation=True), give],
)


@asynccontextmanager
async def served(url: str, folder: Path) -> AsyncIterator[httpx.AsyncClient]:
    often = 10**6
    settings = Settings(
        sessions=url,
        artifacts=f"file:{folder}/files",
        lease_ttl=LEASE,
        max_messages_per_minute=often,
        max_turns_per_minute=often,
    )
    application = build(
        engine_of(AGENT, settings, timings=EngineTimings(database=PATIENT)), settings
    )
    async with started(application.app), client(application.app) as http:
        yield http


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["sqlite", "postgresql"])
async def http(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[httpx.AsyncClient]:
    """The same agent on each database, shared by all rows."""
    folder = tmp_path_factory.mktemp("store")
    if request.param == "sqlite":
        async with served(f"sqlite+aiosqlite:///{folder}/chats.db", folder) as found:
            yield found
        return
    async with (
        fresh_database(request.getfixturevalue("postgres")) as url,
        served(url, folder) as found,
    ):
        yield found


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.name)
async def test_a_refused_request_stores_nothing(http: httpx.AsyncClient, bad: Bad) -> None:
    response = await http.post("/api/chat", content=bad.body, headers=bad.headers)
    assert (response.status_code, response.headers["x-error-code"]) == (bad.status, bad.code)
    assert (await http.get("/api/chats/c1")).status_code == 404


Row: TypeAlias = tuple[str, str, Any, int]
"""A method, a path, a body of JSON text or None, and the status of the answer."""

X128, X129 = "x" * 128, "x" * 129
BIG, TOO_BIG = 2**53, 2**53 + 1
EXACT = 2**53 - 1


def new(text: str = '"Hi"', *, chat: str = "limits", message: str = "u1") -> str:
    body = json.dumps(chat_body("@", chat=chat) | {"extra": "#"}).replace('"@"', text)
    return body.replace('"u1"', json.dumps(message))


def extra(value: str) -> str:
    return new(chat="extra").replace('"#"', value)


ROWS: list[Row] = [
    ("POST", "/api/chat", new(chat=X128), 200),
    ("POST", "/api/chat", new(chat=X129), 400),
    ("POST", "/api/chat", new(chat="m128", message=X128), 200),
    ("POST", "/api/chat", new(chat="m129", message=X129), 400),
    ("POST", "/api/chat", new(r'"a\ud835\udd18 \u0001 \u202e"', chat="planes"), 200),
    ("POST", "/api/chat", new(r'"a\ud835"', chat="half"), 400),
    ("POST", "/api/chat", new(r'"a\u0000"', chat="nul"), 400),
    ("POST", "/api/chat", extra(str(BIG)), 200),
    ("POST", "/api/chat", extra(str(-BIG)), 200),
    ("POST", "/api/chat", extra(str(TOO_BIG)), 400),
    ("POST", "/api/chat", extra(str(-TOO_BIG)), 400),
    ("POST", "/api/chat", extra("1.7976931348623157e308"), 200),
    ("POST", "/api/chat", extra("1e309"), 400),
    ("POST", "/api/chat", extra("NaN"), 400),
    ("POST", "/api/chat", extra('{"b": 1, "a": 2}'), 200),
    ("POST", "/api/chat", extra('{"a": 1, "a": 2}'), 400),
    ("GET", f"/api/chats/{X128}", None, 200),
    ("GET", f"/api/chats/{X129}", None, 404),
    ("GET", "/api/chats/a%00b", None, 404),
    ("GET", f"/api/chats/{X128}/messages/{X128}/versions/1", None, 404),
    ("GET", f"/api/chats/{X128}/messages/a%00b/versions/1", None, 404),
    ("GET", "/api/chats/%ED%A0%80", None, 404),
    ("GET", f"/api/chat/{X129}/stream", None, 404),
    ("PATCH", f"/api/chats/{X128}", json.dumps({"title": "é" * 200}), 204),
    ("PATCH", f"/api/chats/{X128}", json.dumps({"title": "é" * 201}), 400),
    ("PATCH", f"/api/chats/{X128}", r'{"title": "a\u0000"}', 400),
    ("PATCH", f"/api/chats/{X128}", r'{"title": "a\udfff"}', 400),
    ("GET", "/api/chats?limit=100", None, 200),
    ("GET", "/api/chats?limit=101", None, 400),
    ("GET", f"/api/chats?limit={TOO_BIG}", None, 400),
    ("GET", f"/api/chats?q={quote('é' * 256)}", None, 200),
    ("GET", f"/api/chats?q={quote('é' * 257)}", None, 400),
    ("GET", "/api/chats?q=%25_%5C", None, 200),
    ("GET", "/api/chats?q=a%00", None, 400),
    ("GET", f"/api/chats?after={'x' * 256}", None, 404),
    ("GET", f"/api/approvals?after={'x' * 2_000}", None, 404),
    ("GET", f"/api/approvals/{'x' * 256}", None, 404),
    ("GET", f"/api/approvals/{'x' * 257}", None, 404),
    ("GET", "/api/approvals/a%00b", None, 404),
    ("DELETE", f"/api/chats/{X128}/grants/{'x' * 256}", None, 404),
    ("DELETE", f"/api/chats/{X128}/grants/a%00b", None, 404),
    ("GET", f"/api/chats/{X128}/files/{'x' * 256}", None, 404),
    ("GET", f"/api/chats/{X128}/files/a%00b", None, 404),
    ("POST", f"/api/chats/{X129}/files", None, 404),
]


async def test_ids_numbers_and_texts_are_validated_alike(http: httpx.AsyncClient) -> None:
    for method, path, body, status in ROWS:
        response = await http.request(method, path, content=body, headers=JSON if body else {})
        assert response.status_code == status, (method, path, body, response.text)
        if "event-stream" in response.headers.get("content-type", ""):
            assert chunks(response.text)[-1]["type"] == "finish"
    kept = [chat["id"] for chat in (await http.get("/api/chats?limit=100")).json()["chats"]]
    assert {X128, "m128", "planes", "extra"} <= set(kept)
    assert not {"m129", "half", "nul", X129} & set(kept)


ANSWERS: list[tuple[str, int]] = [
    ('{"approved": true, "reason": "x' + "é" * 2_000 + '"}', 400),
    (r'{"approved": true, "reason": "a\u0000"}', 400),
    (r'{"approved": true, "reason": "a\udc00"}', 400),
    ('{"approved": NaN}', 400),
    (f'{{"approved": true, "edits": {{"n": {TOO_BIG}}}}}', 400),
    (f'{{"approved": true, "edits": {{"n": {BIG}}}}}', 400),
    ('{"approved": true, "edits": {"n": 1e309}}', 400),
    (r'{"approved": true, "edits": {"n": 1, "more": {"a\u0000": 1}}}', 400),
    ('{"approved": true, "edits": {"n": "one"}}', 400),
    ('{"approved": true, "remember": "for ever"}', 400),
    (
        '{"approved": true, "reason": "'
        + "é" * 2_000
        + f'", "edits": {{"more": {{"zz": 1, "a": {EXACT}}}, "n": -0.5}}}}',
        202,
    ),
]


async def test_decisions_are_validated_alike_and_an_invalid_one_has_no_effect(
    http: httpx.AsyncClient,
) -> None:
    page = Page(http)
    await page.say("pay")
    where = f"/api/approvals/{page.asks()[0]}"
    for body, status in ANSWERS:
        assert (await http.get(where)).json()["state"] == "requested"
        response = await http.post(where, content=body.encode(), headers=JSON)
        assert response.status_code == status, (body, response.text)
    while (await http.get(where)).json()["state"] != "executed":
        pass
    row = (await http.get(where)).json()
    assert row["edits"] == {"n": -0.5, "more": {"zz": 1, "a": EXACT}}
    assert row["reason"] == "é" * 2_000


async def test_keys_in_another_order_are_the_same_arguments(http: httpx.AsyncClient) -> None:
    page = Page(http)
    await page.say("pay")
    read = await page.answer()
    assert read[-1]["type"] == "finish"
    assert part_of(page.messages[-1], "pay")["output"] == {"paid": 1, "more": KEYS}


@pytest.mark.parametrize("what", RESULTS)
async def test_a_result_that_cannot_be_stored_exactly_fails_alike(
    http: httpx.AsyncClient, what: str
) -> None:
    page = Page(http)
    read = await page.say(f"give {what}")
    assert read[-1]["type"] == "finish"
    shown = part_of(page.messages[-1], "give")
    assert part_of(await page.history(), "give")["output"] == shown["output"]
    json.dumps(shown["output"], allow_nan=False).encode()


@pytest.mark.parametrize("said", ["say U", "call U"])
async def test_model_output_that_stores_cannot_keep_is_handled_alike(
    http: httpx.AsyncClient, said: str
) -> None:
    page = Page(http)
    read = await page.say(said)
    assert read[-1]["type"] == "finish"
    assert comparable(await page.history()) == comparable(page.messages[-1])
    assert "\0" not in json.dumps(page.messages[-1]).replace(r"\u0000", "\0")
