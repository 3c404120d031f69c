"""The redirect page of the OAuth flow."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256

import httpx
import pytest

from tests.server.exchange import client
from tests.server.fake_engine import FakeEngine, fake_app

BACK = "/oauth/return?code=sk-code&state=s"


async def come_back(**settings: object) -> httpx.Response:
    engine = FakeEngine()
    async with client(fake_app(engine, **settings)) as http:  # type: ignore[arg-type]
        response = await http.get(BACK)
    assert engine.calls == []
    return response


async def test_the_page_runs_only_its_own_script_and_does_not_leak_the_code() -> None:
    response = await come_back()
    assert (response.status_code, response.headers["content-type"]) == (
        200,
        "text/html; charset=utf-8",
    )
    [script] = re.findall(r"<script>(.*?)</script>", response.text, re.DOTALL)
    digest = b64encode(sha256(script.encode()).digest()).decode()
    policy = response.headers["content-security-policy"]
    assert f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert response.headers["referrer-policy"] == "no-referrer"
    assert response.headers["cache-control"] == "no-store"
    assert "sk-code" not in response.text


@pytest.mark.parametrize(
    ("origins", "listed"), [((), "[]"), (("https://app.example",), '["https://app.example"]')]
)
async def test_only_pages_of_allowed_origins_receive_the_code(
    origins: tuple[str, ...], listed: str
) -> None:
    script = (await come_back(origins=origins)).text
    assert f"new Set([location.origin, ...{listed}])" in script
    assert "window.opener?.postMessage(said, origin)" in script
    assert '"*"' not in script


@pytest.mark.parametrize("settings", [{"prefix": "/v1"}, {"page": False}, {"auth": "header:x"}])
async def test_the_redirect_uri_is_stable(
    settings: dict[str, object],
) -> None:
    assert (await come_back(**settings)).status_code == 200
