"""The files of a chat over HTTP, and ranges of them as in RFC 9110."""

from __future__ import annotations

from typing import Any

import pytest

from sluicegate.errors import Unknown, UnsupportedMediaType
from sluicegate.server.files import requested_range
from tests.server.exchange import client
from tests.server.fake_engine import FakeEngine, fake_app


@pytest.mark.parametrize(
    ("media_type", "disposition"),
    [
        ("image/png", "inline"),
        ("audio/mpeg", "inline"),
        ("text/plain", "inline"),
        ("text/html", "attachment"),
        ("image/svg+xml", "attachment"),
        ("application/pdf", "attachment"),
        ("application/octet-stream", "attachment"),
    ],
)
async def test_a_file_is_never_rendered_as_a_page(
    engine: FakeEngine, media_type: str, disposition: str
) -> None:
    engine.files["local", "c1", "a b.png"] = (b"content", media_type)
    async with client(fake_app(engine)) as http:
        response = await http.get("/api/chats/c1/files/a%20b.png")
    assert response.content == b"content"
    assert response.headers["content-type"] == media_type
    assert response.headers["content-disposition"] == disposition
    assert response.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in response.headers["content-security-policy"]


async def test_a_media_type_that_is_no_header_value_is_not_sent(engine: FakeEngine) -> None:
    engine.files["local", "c1", "f"] = (b"content", "text/plain\r\nx-evil: 1")
    async with client(fake_app(engine)) as http:
        response = await http.get("/api/chats/c1/files/f")
    assert response.headers["content-type"] == "application/octet-stream"
    assert "x-evil" not in response.headers


@pytest.mark.parametrize("name", ["..%00", "a%0Ab", "x" * 256, "a%2Fb"])
async def test_an_impossible_file_name_is_not_found(engine: FakeEngine, name: str) -> None:
    async with client(fake_app(engine)) as http:
        response = await http.get(f"/api/chats/c1/files/{name}")
    assert (response.status_code, response.headers["x-error-code"]) == (404, "unknown")
    assert engine.calls == []


async def test_a_missing_file_is_not_found(engine: FakeEngine) -> None:
    engine.refusal = Unknown()
    async with client(fake_app(engine)) as http:
        response = await http.get("/api/chats/c1/files/a.png")
    assert (response.status_code, response.headers["x-error-code"]) == (404, "unknown")


async def test_a_file_supports_ranges_and_conditional_requests(engine: FakeEngine) -> None:
    engine.files["local", "c1", "a.png"] = (b"0123456789", "image/png")
    url = "/api/chats/c1/files/a.png"
    async with client(fake_app(engine)) as http:
        whole = await http.get(url)
        part = await http.get(url, headers={"range": "bytes=2-4"})
        none = await http.get(url, headers={"range": "bytes=10-"})
        again = await http.get(url, headers={"if-none-match": whole.headers["etag"]})
    assert whole.headers["accept-ranges"] == "bytes"
    assert (part.status_code, part.content) == (206, b"234")
    assert part.headers["content-range"] == "bytes 2-4/10"
    assert (none.status_code, none.content) == (416, b"")
    assert none.headers["content-range"] == "bytes */10"
    assert (again.status_code, again.content) == (304, b"")
    assert all("nosniff" in r.headers["x-content-type-options"] for r in (whole, part, none))


async def test_an_attachment_is_stored_unchanged(engine: FakeEngine) -> None:
    async with client(fake_app(engine)) as http:
        response = await http.post(
            "/api/chats/c1/files?filename=my%20chart.png",
            content=b"content",
            headers={"content-type": "image/png"},
        )
    url = "/api/chats/c1/files/a.png"
    assert (response.status_code, response.headers["location"]) == (201, url)
    assert response.json() == {"url": url, "mediaType": "image/png", "name": "a.png"}
    assert engine.calls == [("save_file", "c1", b"content", "image/png", "my chart.png", "local")]


REFUSED: list[tuple[str, dict[str, Any], int, str]] = [
    ("an empty file", {"content": b""}, 400, "malformed"),
    ("too large by one byte", {"content": bytes(101)}, 413, "too_large"),
    ("compressed", {"content": b"x", "headers": {"content-encoding": "gzip"}}, 415, ""),
    ("a name of two lines", {"content": b"x", "params": {"filename": "a\nb"}}, 400, "malformed"),
    ("a long name", {"content": b"x", "params": {"filename": "a" * 256}}, 400, "malformed"),
    ("two types", {"content": b"x", "headers": [("content-type", "a/b")] * 2}, 400, "malformed"),
]


@pytest.mark.parametrize(
    ("request_", "status", "code"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
async def test_an_invalid_attachment_is_refused(
    engine: FakeEngine, request_: dict[str, Any], status: int, code: str
) -> None:
    async with client(fake_app(engine, max_file_bytes=100)) as http:
        response = await http.post("/api/chats/c1/files", **request_)
    assert response.status_code == status
    assert response.headers["x-error-code"] == code or not code
    assert engine.calls == []


async def test_a_file_of_the_maximum_size_is_accepted(engine: FakeEngine) -> None:
    async with client(fake_app(engine, max_file_bytes=100)) as http:
        response = await http.post("/api/chats/c1/files", content=bytes(100))
    assert response.status_code == 201


async def test_a_refusal_of_the_engine_is_returned(engine: FakeEngine) -> None:
    engine.refusal = UnsupportedMediaType("No such files.")
    async with client(fake_app(engine)) as http:
        response = await http.post("/api/chats/c1/files", content=b"x")
    assert (response.status_code, response.text) == (415, "No such files.")


TAG = '"abc"'


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("bytes=0-0", "bytes 0-0/10"),
        ("bytes=0-9", "bytes 0-9/10"),
        ("bytes=3-", "bytes 3-9/10"),
        ("bytes=3-99", "bytes 3-9/10"),
        ("bytes=-4", "bytes 6-9/10"),
        ("bytes=-99", "bytes 0-9/10"),
        ("bytes = 1-2", "bytes 1-2/10"),
        ("bytes=10-", "bytes */10"),
        ("bytes=-0", "bytes */10"),
    ],
)
def test_a_range_is_read(asked: str, found: str) -> None:
    part = requested_range({"range": asked}, 10, TAG)
    assert part is not None
    assert part.content_range == found
    assert part.is_empty == found.startswith("bytes */")


@pytest.mark.parametrize(
    "asked",
    ["", "bytes", "bytes=-", "bytes=5-4", "bytes=0-1,3-4", "items=0-1", "bytes=a-b", "bytes=٣-٤"],
)
def test_an_invalid_range_returns_the_whole_file(asked: str) -> None:
    assert requested_range({"range": asked}, 10, TAG) is None


def test_a_range_of_another_version_returns_the_whole_file() -> None:
    headers = {"range": "bytes=0-1", "if-range": '"other"'}
    assert requested_range(headers, 10, TAG) is None
    assert requested_range({**headers, "if-range": TAG}, 10, TAG) is not None
