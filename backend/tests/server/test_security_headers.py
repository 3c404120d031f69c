"""Security headers of the responses of a running server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.server.exchange import ORIGIN, chat_body, client, over_socket, serving
from tests.server.fake_engine import FakeEngine, application, fake_app

PATHS = [
    "/",
    "/assets/page-1a2b.js",
    "/healthz",
    "/readyz",
    "/api/chats",
    "/missing",
    "/favicon.svg",
]


async def test_every_response_is_isolated_from_other_sites() -> None:
    async with serving(application(FakeEngine())) as address, over_socket(address) as http:
        responses = [await http.get(path) for path in PATHS]
        responses.append(await http.post("/api/chat", json=chat_body()))
        responses.append(await http.get("/", headers={"host": "evil.example"}))
    for response in responses:
        headers = response.headers
        assert headers["cross-origin-opener-policy"] == "same-origin", response.url
        assert headers["cross-origin-resource-policy"] == "same-origin", response.url
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert "camera=()" in headers["permissions-policy"]
        assert "microphone=(self)" in headers["permissions-policy"]
        assert "strict-transport-security" not in headers


@pytest.mark.parametrize(
    ("settings", "base_url", "expected"),
    [
        ({}, ORIGIN, None),
        ({"public_url": "http://chat.example"}, ORIGIN, None),
        ({"public_url": "https://chat.example"}, ORIGIN, "max-age=31536000"),
        ({}, "https://127.0.0.1:8000", "max-age=31536000"),
    ],
)
async def test_https_is_kept_once_it_is_used(
    settings: dict[str, Any], base_url: str, expected: str | None
) -> None:
    async with client(fake_app(FakeEngine(), **settings), base_url=base_url) as http:
        for path in PATHS:
            headers = (await http.get(path)).headers
            assert headers.get("strict-transport-security") == expected


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"auth": "bearer:TOKENS"}, "same-origin"),
        ({"auth": "bearer:TOKENS", "origins": ["https://app.example"]}, "cross-origin"),
        # Without authentication every page of this machine may call.
        ({}, "cross-origin"),
    ],
)
async def test_a_file_is_embedded_only_where_other_origins_may_call(
    tmp_path: Path, settings: dict[str, Any], expected: str
) -> None:
    (tmp_path / "tokens").write_text(
        "sha256:2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b ada\n"
    )
    engine = FakeEngine()
    engine.files["ada", "c1", "a.png"] = engine.files["local", "c1", "a.png"] = (b"x", "image/png")
    if "auth" in settings:
        settings = {**settings, "auth": f"bearer:{tmp_path / 'tokens'}"}
    async with client(fake_app(engine, **settings)) as http:
        response = await http.get(
            "/api/chats/c1/files/a.png", headers={"authorization": "Bearer secret"}
        )
    assert response.status_code == 200
    assert response.headers["cross-origin-resource-policy"] == expected


async def test_the_return_page_of_oauth_reaches_the_page_that_opened_it() -> None:
    async with client(fake_app(FakeEngine())) as http:
        response = await http.get("/oauth/return?code=x")
    assert response.headers["cross-origin-opener-policy"] == "unsafe-none"
