"""Limits: each is a setting; a value at the limit is accepted, one above it refused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.server.exchange import client
from tests.server.fake_engine import FakeEngine, fake_app
from tests.server.test_bad_requests import (
    JSON,
    body,
    data_url,
    decided,
    is_one_sentence,
    message,
)


def padded(size: int) -> bytes:
    """A valid body of exactly ``size`` bytes."""
    return body() + b" " * (size - len(body()))


@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize(("size", "status"), [(1000, 200), (1001, 413)])
async def test_the_body_limit_applies_with_and_without_a_declared_length(
    engine: FakeEngine, size: int, status: int, *, declared: bool
) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        content = padded(size)
        for start in range(0, size, 100):
            yield content[start : start + 100]

    content = padded(size) if declared else pieces()
    async with client(fake_app(engine, max_body_bytes=1000)) as http:
        response = await http.post("/api/chat", content=content, headers=JSON)
    assert response.status_code == status
    if status == 413:
        assert response.headers["x-error-code"] == "too_large"
        assert engine.calls == []


async def test_32_mebibytes_are_read_and_one_byte_more_is_not(engine: FakeEngine) -> None:
    limit = 32 * 1024 * 1024
    async with client(fake_app(engine)) as http:
        at_limit = await http.post("/api/chat", content=padded(limit), headers=JSON)
        over = await http.post("/api/chat", content=padded(limit + 1), headers=JSON)
    assert (at_limit.status_code, over.status_code) == (200, 413)
    assert len(engine.calls) == 1


async def test_a_body_that_does_not_end_in_time_is_refused(engine: FakeEngine) -> None:
    async def half() -> AsyncIterator[bytes]:
        yield body()[:20]
        await asyncio.Event().wait()

    async with client(fake_app(engine, body_timeout=0.01)) as http:
        response = await http.post("/api/chat", content=half(), headers=JSON)
    assert (response.status_code, response.headers["x-error-code"]) == (408, "timeout")
    assert is_one_sentence(response.text)
    assert engine.calls == []


LIMITS = {
    "max_text_characters": message(parts=[{"type": "text", "text": "xxx"}]),
    "max_reason_characters": decided(approved=True, reason="xxx"),
    "max_parts": message(parts=[{"type": "text", "text": "x"}] * 3),
    "max_files": message(
        parts=[{"type": "file", "mediaType": "image/png", "url": "data:;base64,AAAA"}] * 3
    ),
    "max_file_bytes": data_url("data:;base64,AAAA"),
}


@pytest.mark.parametrize("setting", LIMITS)
async def test_each_limit_of_a_request_is_a_setting(engine: FakeEngine, setting: str) -> None:
    async def status(limit: int) -> int:
        settings: dict[str, Any] = {setting: limit}
        async with client(fake_app(engine, **settings)) as http:
            return (await http.post("/api/chat", content=LIMITS[setting], headers=JSON)).status_code

    assert await status(3) == 200
    assert await status(2) in (400, 413)
