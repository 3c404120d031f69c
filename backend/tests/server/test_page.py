"""The chat page: its files, their headers, and that it names no other host."""

from __future__ import annotations

import gzip
import re

import httpx
import pytest

from sluicegate.server.app import build
from sluicegate.server.page import FOLDER
from sluicegate.server.settings import Settings
from tests.server.exchange import client
from tests.server.fake_engine import FakeEngine, fake_app

FILES = {
    "/": "text/html; charset=utf-8",
    "/app.js": "text/javascript; charset=utf-8",
    "/stream.js": "text/javascript; charset=utf-8",
    "/style.css": "text/css; charset=utf-8",
    "/suggestions.json": "application/json",
}


async def fetch(path: str, **headers: str) -> httpx.Response:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    async with client(fake_app(FakeEngine())) as http:
        return await http.get(path, headers={"accept-encoding": "identity"} | given)


@pytest.mark.parametrize("path", FILES)
async def test_every_file_has_its_type_and_lets_nothing_foreign_in(path: str) -> None:
    response = await fetch(path)
    assert response.status_code == 200
    assert response.headers["content-type"] == FILES[path]
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["referrer-policy"] == "no-referrer"
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert "frame-ancestors 'none'" in policy


@pytest.mark.parametrize("path", FILES)
@pytest.mark.parametrize(
    ("accepted", "packed"),
    [("gzip", True), ("br, gzip;q=0.5", True), ("gzip;q=0", False), ("br", False), ("", False)],
)
async def test_a_file_is_compressed_for_who_takes_it(
    path: str, accepted: str, *, packed: bool
) -> None:
    plain = await fetch(path)
    response = await fetch(path, accept_encoding=accepted)
    assert response.content == plain.content
    assert ("content-encoding" in response.headers) == packed
    assert response.headers["vary"] == "accept-encoding"


async def test_streams_and_answers_are_never_compressed() -> None:
    response = await fetch("/api/chats", accept_encoding="gzip")
    assert "content-encoding" not in response.headers


async def test_a_file_that_has_not_changed_is_not_sent_again() -> None:
    first = await fetch("/app.js")
    again = await fetch("/app.js", if_none_match=first.headers["etag"])
    other = await fetch("/app.js", if_none_match='"other"')
    assert (again.status_code, again.content) == (304, b"")
    assert other.status_code == 200


def test_all_files_of_the_folder_are_served() -> None:
    served = {path.removeprefix("/") or "index.html" for path in FILES} - {"suggestions.json"}
    assert {file.name for file in FOLDER.iterdir()} == served


def test_the_page_names_no_other_host_and_has_no_script_or_style_inside() -> None:
    html = (FOLDER / "index.html").read_text("utf-8")
    assert not re.search(r"<script(?![^>]*\ssrc=)", html)
    assert "<style" not in html
    assert "style=" not in html
    assert not re.search(r"\son\w+=", html)
    for file in FOLDER.iterdir():
        assert "//" not in re.sub(r"(?m)^\s*//.*$|/\^https\?:/", "", file.read_text("utf-8"))


def test_the_page_stays_small() -> None:
    lines = sum(len(file.read_text("utf-8").splitlines()) for file in FOLDER.glob("*.js"))
    assert lines < 300


async def test_suggestions_are_for_the_page_to_offer() -> None:
    app = build(FakeEngine().open, Settings(), suggestions=["Hello", "Wörter"]).app
    async with client(app) as http:
        assert (await http.get("/suggestions.json")).json() == ["Hello", "Wörter"]
    assert (await fetch("/suggestions.json")).json() == []


async def test_the_page_can_be_left_out() -> None:
    async with client(fake_app(FakeEngine(), page=False)) as http:
        for path in FILES:
            assert (await http.get(path)).status_code == 404
        assert (await http.get("/api/chats")).status_code == 200


async def test_what_is_packed_is_the_same_every_time() -> None:
    async with client(fake_app(FakeEngine())) as http, http.stream("GET", "/") as response:
        first = b"".join([piece async for piece in response.aiter_raw()])
    async with client(fake_app(FakeEngine())) as http, http.stream("GET", "/") as response:
        second = b"".join([piece async for piece in response.aiter_raw()])
    assert first == second
    assert gzip.decompress(first).startswith(b"<!doctype html>")
