"""The code in the README runs as shown."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import httpx
import pytest
from PIL import Image
from starlette.applications import Starlette

from sluicegate.engine.agents.unsupported_agents import FIRST_ADK, LAST_ADK
from tests.docs.markdown import ROOT, fences, one_fence

README = (ROOT / "README.md").read_text("utf-8")
SCRIPT = {
    "scenarios": [
        {
            "match": "Pay Ada 5 euros",
            "responses": [
                {"parts": [{"call": {"name": "pay", "args": {"recipient": "Ada", "amount": 5}}}]},
                {"parts": [{"text": "Ada is paid."}]},
            ],
        }
    ]
}


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Starlette:
    """The server of the README, with a scripted model and its own files."""
    script = tmp_path / "script.json"
    script.write_text(json.dumps(SCRIPT), "utf-8")
    monkeypatch.setenv("SLUICEGATE_MODEL_SCRIPT", str(script))
    monkeypatch.setenv("SLUICEGATE_SESSIONS", f"sqlite+aiosqlite:///{tmp_path}/chats.db")
    names: dict[str, Any] = {}
    exec(compile(one_fence(README, "python"), "server.py", "exec"), names)
    app = names["app"]
    assert isinstance(app, Starlette)
    return app


def _chunks(response: httpx.Response) -> list[dict[str, Any]]:
    assert response.status_code == 200, response.text
    lines = [line[6:] for line in response.text.splitlines() if line.startswith("data: {")]
    return [json.loads(line) for line in lines]


async def test_the_server_pays_only_after_the_approval(server: Starlette) -> None:
    user = {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "Pay Ada 5 euros"}]}
    async with (
        server.router.lifespan_context(server),
        httpx.AsyncClient(
            transport=httpx.ASGITransport(server), base_url="http://127.0.0.1:8000"
        ) as client,
    ):
        asked = _chunks(await client.post("/api/chat", json={"id": "chat", "messages": [user]}))
        request = next(chunk for chunk in asked if chunk["type"] == "tool-approval-request")
        assert not any(chunk["type"] == "tool-output-available" for chunk in asked)
        part = {
            "type": "tool-pay",
            "toolCallId": request["toolCallId"],
            "state": "approval-responded",
            "input": {"recipient": "Ada", "amount": 5},
            "approval": {"id": request["approvalId"], "approved": True},
        }
        answer = {"id": asked[0]["messageId"], "role": "assistant", "parts": [part]}
        paid = _chunks(
            await client.post("/api/chat", json={"id": "chat", "messages": [user, answer]})
        )

    outputs = [chunk["output"] for chunk in paid if chunk["type"] == "tool-output-available"]
    assert outputs == [{"recipient": "Ada", "paid": 5}]
    assert "Ada is paid." in "".join(chunk.get("delta", "") for chunk in paid)


def test_the_server_example_has_twelve_lines() -> None:
    assert len(one_fence(README, "python").splitlines()) == 12


def test_the_page_example_pins_its_major_version() -> None:
    page = one_fence(README, "tsx")

    imported = re.findall(r'from "([^"]+)"', page)
    assert imported == ["@ai-sdk/react", "ai"]
    assert '"x-ai-sdk": "7"' in page
    assert "lastAssistantMessageIsCompleteWithApprovalResponses" in page


def test_the_commands_are_targets_of_the_makefile() -> None:
    tasks = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)

    commands = re.findall(r"^make ([a-z-]+)", fences(README)[0].code, re.MULTILINE)
    assert commands == ["demo", "test"]
    every = re.findall(r"^make ([a-z-]+)", "\n".join(f.code for f in fences(README)), re.MULTILINE)
    assert {*commands, "wheel"} == set(every) <= set(tasks)


def test_the_supported_ranges_are_those_of_the_packages() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    floors = {
        major: json.loads(
            (ROOT / f"e2e/conformance/clients/ai-{major}-floor/package.json").read_text("utf-8")
        )["dependencies"]["ai"]
        for major in (6, 7)
    }

    first, last = (f"{major}.{minor}" for major, minor in (FIRST_ADK, LAST_ADK))
    assert f"google-adk>={first},<{last}" in project["dependencies"]
    assert f"| `google-adk` | {first} and newer, below {last} |" in README
    assert project["requires-python"] == ">=3.11"
    assert "| Python | 3.11 and newer |" in README
    assert f"{floors[6]} and newer, {floors[7]} and newer" in README


def test_the_moving_picture_moves_and_is_small() -> None:
    file = ROOT / "docs/images/approval-flow.webp"
    assert "(docs/images/approval-flow.webp)" in README
    with Image.open(file) as picture:
        assert getattr(picture, "n_frames", 1) > 3
    assert file.stat().st_size <= 400_000
