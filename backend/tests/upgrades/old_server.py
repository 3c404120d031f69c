"""What a server has left in its database before an upgrade; runs with the source of any version.

``python old_server.py SESSIONS FOLDER`` with the package of the old version on ``PYTHONPATH``: it
imports nothing else of this project and calls only what every version has. It leaves three chats: a
paid call, a call that waits, and one whose process has died while it ran.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import httpx
from google.adk.agents.llm_agent import LlmAgent
from google.adk.tools.function_tool import FunctionTool

from sluicegate import ScriptedModel, create_app

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

ORIGIN: Final = "http://127.0.0.1:8000"
PAID, WAITING, LOST = "paid", "waiting", "lost"
LEASE_SECONDS: Final = 17.0
"""Longer than the lease of a process that has died lasts."""

NEVER: Final = 1e9
"""Seconds until the approvals expire: fixtures are read years later."""

SCRIPT: Final = {
    "scenarios": [
        {
            "match": f"Pay {chat}",
            "responses": [
                {"parts": [{"call": {"name": "pay", "args": {"invoice": chat}}}]},
                {"parts": [{"text": "The invoice is settled."}]},
            ],
        }
        for chat in (PAID, WAITING, LOST)
    ]
}


def agent_that(pays: Callable[[str], dict[str, Any]]) -> LlmAgent:
    """The agent of every version: one gated tool, with a function of the caller."""

    async def pay(invoice: str) -> dict[str, Any]:
        """Pay an invoice."""
        return pays(invoice)

    return LlmAgent(
        name="payer",
        model=ScriptedModel.from_data(SCRIPT),
        tools=[FunctionTool(pay, require_confirmation=True)],
    )


def pays_or_dies(invoice: str) -> dict[str, Any]:
    if invoice == LOST:
        os._exit(9)
    return {"paid": invoice}


@asynccontextmanager
async def serving(
    sessions: str, folder: str, pays: Callable[[str], dict[str, Any]] = pays_or_dies
) -> AsyncIterator[httpx.AsyncClient]:
    """An application in this process, without a network."""
    app = create_app(
        agent_that(pays),
        sessions=sessions,
        artifacts=f"file:{folder}",
        page=False,
        approval_ttl=NEVER,
    )
    transport = httpx.ASGITransport(app, client=("127.0.0.1", 50000))
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url=ORIGIN, timeout=30) as http,
    ):
        yield http


async def say(http: httpx.AsyncClient, chat: str, message: dict[str, Any]) -> list[Any]:
    """Send a message and return the chunks of the answer."""
    body = {"id": chat, "message": message, "trigger": "submit-message"}
    response = await http.post("/api/chat", json=body)
    response.raise_for_status()
    lines = [line[6:] for line in response.text.splitlines() if line.startswith("data: {")]
    return [json.loads(line) for line in lines]


async def request_payment(http: httpx.AsyncClient, chat: str) -> dict[str, Any]:
    """Ask for the payment of a chat; returns the message that approves it."""
    text = {"type": "text", "text": f"Pay {chat}"}
    found = await say(http, chat, {"id": f"{chat}-1", "role": "user", "parts": [text]})
    asked = next(each for each in found if each["type"] == "tool-approval-request")
    part = {
        "type": "tool-pay",
        "toolCallId": asked["toolCallId"],
        "state": "approval-responded",
        "input": {"invoice": chat},
        "approval": {"id": asked["approvalId"], "approved": True},
    }
    [message_id] = {each["messageId"] for each in found if each["type"] == "start"}
    return {"id": message_id, "role": "assistant", "parts": [part]}


async def leave_calls(sessions: str, folder: str) -> None:
    """Pay, wait, and die in a call."""
    async with serving(sessions, folder) as http:
        await request_payment(http, WAITING)
        await say(http, PAID, await request_payment(http, PAID))
        await say(http, LOST, await request_payment(http, LOST))


async def read_lost_chat(sessions: str, folder: str) -> None:
    """Serve again and read the chat of the lost call after the end of its lease."""
    await asyncio.sleep(LEASE_SECONDS)
    async with serving(sessions, folder) as http:
        (await http.get(f"/api/chats/{LOST}")).raise_for_status()


def main(sessions: str, folder: str, step: str = "") -> None:
    if step == "calls":
        asyncio.run(leave_calls(sessions, folder))
    elif step == "lost":
        asyncio.run(read_lost_chat(sessions, folder))
    else:
        for each, code in (("calls", 9), ("lost", 0)):
            done = subprocess.run([sys.executable, __file__, sessions, folder, each], check=False)
            if done.returncode != code:
                raise SystemExit(f"The step {each} of the old server has failed.")


if __name__ == "__main__":
    main(*sys.argv[1:])
