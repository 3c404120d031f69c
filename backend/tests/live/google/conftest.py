"""Servers with an agent on Google's own client, connected to the double of the Live API."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from google.adk.agents.run_config import RunConfig

from tests.engine.stage import Tool
from tests.live.google.certificates import Certificates, create_certificates
from tests.live.google.live_api import Family, LiveApi, Script, serving_live_api
from tests.live.google.page import Site, serving_agent

OpenSite = Callable[..., Any]
"""Opens a `Site` for a family, a script and tools."""


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return create_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
async def open_site(
    certificates: Certificates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[OpenSite]:
    """Opens sites; at the end of the test no client has broken a rule of the Live API."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates.authority))
    monkeypatch.setenv("NO_PROXY", "localhost,127.0.0.1")
    async with contextlib.AsyncExitStack() as stack:
        apis: list[LiveApi] = []

        async def opened(
            family: Family,
            script: Script,
            tools: Sequence[Tool] = (),
            *,
            live: RunConfig | None = None,
            settings: Mapping[str, Any] | None = None,
            **more: Any,
        ) -> Site:
            api = LiveApi(family, script, **more)
            apis.append(api)
            await stack.enter_async_context(serving_live_api(api, certificates))
            serving = serving_agent(api, tools, tmp_path, live, **settings or {})
            return await stack.enter_async_context(serving)

        yield opened
    assert [violation for api in apis for violation in api.violations] == []
