"""The stored chats over HTTP."""

from __future__ import annotations

import re
import sys

import pytest

from sluicegate.errors import TurnRunning
from sluicegate.server.schemas import TITLE
from sluicegate.wire.one_line_pattern import ONE_LINE as ONE_LINE_PATTERN
from sluicegate.wire.one_line_pattern import is_one_line
from tests.server.exchange import client
from tests.server.fake_engine import FakeEngine, fake_app


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", (30, None, None)),
        ("?limit=1&after=abc&q=two%20words", (1, "abc", "two words")),
        ("?limit=100&q=&other=1", (100, None, None)),
    ],
)
async def test_the_query_parameters_of_the_list_reach_the_engine(
    engine: FakeEngine, query: str, expected: tuple[int, str | None, str | None]
) -> None:
    async with client(fake_app(engine)) as http:
        response = await http.get(f"/api/chats{query}")
    assert response.json() == {"chats": [], "next": None}
    assert response.headers["content-type"] == "application/json"
    assert response.headers["cache-control"] == "no-store"
    assert engine.calls == [("list_chats", "local", *expected)]


async def test_a_chat_is_returned_as_the_engine_provides_it(engine: FakeEngine) -> None:
    chat = {"id": "c1", "title": "Héllo", "messages": [], "status": "ready"}
    engine.chats["local", "c1"] = chat
    async with client(fake_app(engine)) as http:
        assert (await http.get("/api/chats/c1")).json() == chat
        missing = await http.get("/api/chats/c2")
    assert (missing.status_code, missing.headers["x-error-code"]) == (404, "unknown")


async def test_a_missing_chat_and_a_chat_of_another_user_get_the_same_answer(
    engine: FakeEngine,
) -> None:
    engine.chats["somebody", "theirs"] = {"id": "theirs"}
    async with client(fake_app(engine)) as http:
        missing = await http.get("/api/chats/nobodys")
        foreign = await http.get("/api/chats/theirs")
    assert missing.status_code == foreign.status_code == 404
    assert missing.content == foreign.content
    assert missing.headers == foreign.headers


async def test_an_earlier_version_of_a_message_is_loaded_by_its_number(engine: FakeEngine) -> None:
    async with client(fake_app(engine)) as http:
        response = await http.get("/api/chats/c1/messages/m1/versions/2")
    assert response.json() == {"version": 2, "messages": []}
    assert engine.calls == [("get_version", "c1", "m1", 2, "local")]


@pytest.mark.parametrize("version", ["0", "-1", "01", "1.0", "x", "²", "9" * 10])
async def test_an_invalid_number_of_a_version_is_unknown(engine: FakeEngine, version: str) -> None:
    async with client(fake_app(engine)) as http:
        response = await http.get(f"/api/chats/c1/messages/m1/versions/{version}")
    assert (response.status_code, response.headers["x-error-code"]) == (404, "unknown")
    assert engine.calls == []


async def test_a_title_is_trimmed_and_passed_to_the_engine(engine: FakeEngine) -> None:
    async with client(fake_app(engine)) as http:
        response = await http.patch("/api/chats/c1", json={"title": " New title "})
    assert (response.status_code, response.content) == (204, b"")
    assert engine.calls == [("rename_chat", "c1", "New title", "local")]


ONE_LINE = (
    "東京\u3000天気",
    "\u0645\u06cc\u200c\u062e",
    "👩\u200d🔧",
    "5\u202f€",
    "\u20f8",
    "\U0001d54b",
)
NOT_ONE_LINE = ("a\nb", "a\u2028b", "a\u202eb", "a\u200bb", "a\x7f", "a\u00ad", "a\U000e0041")


@pytest.mark.parametrize("text", [*ONE_LINE, *NOT_ONE_LINE], ids=ascii)
async def test_a_title_and_a_search_are_one_line_without_invisible_characters(
    engine: FakeEngine, text: str
) -> None:
    async with client(fake_app(engine)) as http:
        renamed = await http.patch("/api/chats/c1", json={"title": text})
        found = await http.get("/api/chats", params={"q": text})
    accepted = (204, 200) if text in ONE_LINE else (400, 400)
    assert (renamed.status_code, found.status_code) == accepted
    assert len(engine.calls) == (2 if text in ONE_LINE else 0)


def test_the_document_and_the_server_agree_on_titles_and_texts() -> None:
    title, text = (re.compile(pattern) for pattern in (TITLE, ONE_LINE_PATTERN))
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        if 0xD800 <= code < 0xE000:
            assert not is_one_line(character)
            continue
        assert is_one_line(character) == bool(text.fullmatch(character))
        assert bool(title.fullmatch(character)) == (
            is_one_line(character) and bool(character.strip())
        )


async def test_a_chat_is_deleted_unless_a_turn_is_running(engine: FakeEngine) -> None:
    async with client(fake_app(engine)) as http:
        assert (await http.delete("/api/chats/c1")).status_code == 204
        engine.refusal = TurnRunning()
        refused = await http.delete("/api/chats/c1")
    assert (refused.status_code, refused.headers["x-error-code"]) == (409, "turn_running")
    assert engine.calls == [("delete_chat", "c1", "local")] * 2
