"""The OpenAPI document against the running server, by Schemathesis."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import httpx
import jsonschema_rs
import pytest
from google.adk.agents.llm_agent import LlmAgent
from google.adk.tools.tool_context import ToolContext

from sluicegate import ScriptedModel
from sluicegate.server.app import Application, build, engine_of
from sluicegate.server.settings import Settings
from sluicegate.tools import typed_tool
from tests.server.exchange import over_socket, serving
from tests.server.fake_engine import PAGE
from tests.server.page import Page

HOOKS = Path(__file__).with_name("schemathesis_hooks.py")
EXAMPLES = int(os.environ.get("SCHEMATHESIS_EXAMPLES", "10"))
SEED = os.environ.get("SCHEMATHESIS_SEED", "1")
APPROVALS = max(12, EXAMPLES)
SCRIPT = {
    "scenarios": [
        {
            "match": "^Pay",
            "responses": [
                {"parts": [{"call": {"name": "pay", "args": {"amount": 5}}}]},
                {"parts": [{"text": "Done."}]},
            ],
        },
        {"match": "(?s).", "responses": [{"parts": [{"text": "Hello."}]}]},
    ]
}


def pay(amount: int, tool_context: ToolContext, note: Any = None) -> dict[str, Any]:
    """Pay an amount; the note is any JSON, and so is that of the payload."""
    confirmation = tool_context.tool_confirmation
    if confirmation is None:
        tool_context.request_confirmation(hint="Pay?", payload={"note": None})
        return {"waits": True}
    return {"paid": amount, "note": note, "payload": confirmation.payload}


@pytest.fixture
def app(tmp_path: Path) -> Application:
    """A server of an agent with a gated tool."""
    agent = LlmAgent(
        name="payer",
        model=ScriptedModel.from_data(SCRIPT),
        tools=[typed_tool(pay)],
    )
    settings = Settings(
        port=0,
        sessions=f"sqlite+aiosqlite:///{tmp_path}/chats.db",
        artifacts=f"file:{tmp_path}/files",
        max_requests_per_minute=1_000_000,
        max_uploads_per_hour=1_000_000,
        max_turns_per_minute=1_000_000,
        max_messages_per_minute=1_000_000,
    )
    return build(engine_of(agent, settings), settings, page_folder=PAGE)


async def test_schemathesis_finds_no_difference_between_the_document_and_the_server(
    app: Application, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("ERROR")
    async with serving(app) as address, over_socket(address) as http:
        waiting: list[str] = []
        for _ in range(APPROVALS):
            page = Page(http)
            await page.say("Pay 5")
            waiting += page.asks()
        process = await asyncio.create_subprocess_exec(
            *(str(Path(sys.executable).with_name("schemathesis")), "run"),
            f"{http.base_url}/api/openapi.json",
            *("--phases", "coverage,fuzzing", "--max-examples", str(EXAMPLES)),
            *("--seed", SEED, "--generation-database", "none", "--no-color", "--warnings", "off"),
            *("--continue-on-failure", "--generation-allow-x00", "false"),
            *("--request-timeout", "60"),
            # It never ends.
            *("--exclude-path", "/api/events"),
            cwd=tmp_path,
            env=os.environ
            | {"SCHEMATHESIS_HOOKS": str(HOOKS), "WAITING_APPROVALS": " ".join(waiting)},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        said = (await process.communicate())[0].decode()
    assert process.returncode == 0, said


async def test_what_a_page_posts_is_valid_under_the_document(app: Application) -> None:
    posted: list[Any] = []

    async def keep(request: httpx.Request) -> None:
        if request.method == "POST":
            posted.append(json.loads(request.content))

    async with serving(app) as address, over_socket(address) as http:
        document = (await http.get("/api/openapi.json")).json()
        http.event_hooks["request"] = [keep]
        page = Page(http)
        await page.say("Hello")
        await page.say("Pay 5")
        [asked] = page.asks()
        await page.answer(edits={asked: {"amount": 6}}, remember={asked: "chat"})
    [*_, last] = posted
    posted += [{"id": last["id"], "message": message} for message in last["messages"]]
    schema = document["paths"]["/api/chat"]["post"]["requestBody"]["content"]["application/json"]
    check = jsonschema_rs.validator_for({**schema["schema"], "components": document["components"]})
    for body in posted:
        check.validate(body)
    roles = [body["messages"][-1]["role"] for body in posted[:3]]
    assert (len(posted), roles) == (7, ["user", "user", "assistant"])
    assert not check.is_valid({"id": "c1", "messages": []})
