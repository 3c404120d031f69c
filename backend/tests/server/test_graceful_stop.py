"""A server process that receives a signal while an approved call runs."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from sluicegate.core.approvals import ApprovalRow
from sluicegate.core.chat_and_turn_keys import ChatKey
from sluicegate.stores.approvals.ledger import Ledger
from sluicegate.stores.sql.database import Database
from tests.patience import LEASE
from tests.server.exchange import chat_body, chunks

PATIENCE = 30.0

AGENT = """
import asyncio, pathlib
from google.adk.agents.llm_agent import LlmAgent
from google.adk.tools.function_tool import FunctionTool


async def hold(n: int) -> dict[str, int]:
    '''Take as long as it is let.'''
    pathlib.Path("began").touch()
    while not pathlib.Path("may-end").exists():
        await asyncio.sleep(0.01)
    with open("effects", "a") as file:
        file.write(f"{n}\\n")
    return {"held": n}


root_agent = LlmAgent(
    name="holder", model="gemini-2.5-flash", tools=[FunctionTool(hold, require_confirmation=True)]
)
"""
SCRIPT = """
scenarios:
  - match: "hold"
    responses:
      - parts: [{call: {name: hold, args: {n: 7}}}]
      - parts: [{text: "Done."}]
  - match: "wait"
    responses: [{parts: [{text: "One moment."}], hang: true}]
"""


@dataclass
class Served:
    """A real server process and the chunks of its streams."""

    process: subprocess.Popen[str]
    http: httpx.Client
    folder: Path
    said: dict[str, str] = field(default_factory=dict)
    readers: list[threading.Thread] = field(default_factory=list)

    def ask(self, chat: str, body: dict[str, Any]) -> None:
        """Post a message and read the response in a task."""

        def read() -> None:
            self.said[chat] = ""
            with self.http.stream("POST", "api/chat", json=body) as response:
                for text in response.iter_text():
                    self.said[chat] += text

        self.readers.append(threading.Thread(target=read))
        self.readers[-1].start()

    def approve(self) -> None:
        """Request the call and approve it; it is running when this returns."""
        asked = chunks(self.http.post("api/chat", json=chat_body("hold", chat="held")).text)
        [request] = [chunk for chunk in asked if chunk["type"] == "tool-approval-request"]
        part = {
            "type": "tool-hold",
            "toolCallId": request["toolCallId"],
            "state": "approval-responded",
            "input": {"n": 7},
            "approval": {"id": request["approvalId"], "approved": True},
        }
        message = {"id": asked[0]["messageId"], "role": "assistant", "parts": [part]}
        self.ask("held", {"id": "held", "message": message, "messageId": message["id"]})
        until((self.folder / "began").exists)

    def last(self, chat: str) -> dict[str, Any]:
        """The last chunk of a stream that ended cleanly."""
        for reader in self.readers:
            reader.join(PATIENCE)
        assert self.said[chat].endswith("data: [DONE]\n\n")
        return chunks(self.said[chat])[-1]

    def row(self) -> ApprovalRow:
        """The ledger entry of the call after the exit of the process."""
        return asyncio.run(_row(self.folder / ".sluicegate" / "sluicegate.db"))


async def _row(path: Path) -> ApprovalRow:
    database = await Database.open(f"sqlite+aiosqlite:///{path}")
    [row] = await Ledger(database).rows(ChatKey("holder", "local", "held"))
    await database.close()
    return row


def until(is_so: Callable[[], bool]) -> None:
    """Wait for another process."""
    deadline = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    (tmp_path / "holder.py").write_text(AGENT)
    (tmp_path / "script.yaml").write_text(SCRIPT)
    program = str(Path(sys.executable).with_name("sluicegate"))
    command = [program, "serve", "holder.py", "--port", "0"]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("SLUICEGATE_")}
    environment["SLUICEGATE_LEASE_TTL"] = str(LEASE)
    with subprocess.Popen(
        [*command, "--model-script", "script.yaml"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=tmp_path,
        env=environment,
    ) as process:
        assert process.stdout is not None
        url = process.stdout.readline().partition(" at ")[2].partition(" ")[0]
        with httpx.Client(base_url=url, timeout=PATIENCE, verify=False) as http:
            yield Served(process, http, tmp_path)
        with contextlib.suppress(ProcessLookupError):
            process.kill()


def test_an_approved_call_finishes_after_the_signal_and_no_new_work_starts(served: Served) -> None:
    http = served.http
    served.ask("free", chat_body("wait", chat="free"))
    until(lambda: '"start"' in served.said.get("free", ""))
    served.approve()
    assert http.get("readyz").status_code == 200
    served.process.terminate()
    until(lambda: http.get("readyz").status_code == 503)
    refused = http.post("api/chat", json=chat_body("hold", chat="late"))
    assert (refused.status_code, refused.headers["x-error-code"]) == (503, "unavailable")
    assert int(refused.headers["retry-after"]) > 0
    assert http.get("healthz").status_code == 200
    until(lambda: "[DONE]" in served.said["free"])
    assert "[DONE]" not in served.said["held"]
    assert served.process.poll() is None
    (served.folder / "may-end").touch()
    assert served.process.wait(PATIENCE) == 0
    for chat in ("free", "held"):
        assert served.last(chat)["type"] == "error"
        assert "restarting" in served.last(chat)["errorText"]
    assert '{"held":7}' in served.said["held"]
    assert (served.folder / "effects").read_text() == "7\n"
    assert (served.row().state, served.row().outcome) == ("executed", {"held": 7})


def test_a_second_signal_stops_the_server_immediately(served: Served) -> None:
    served.approve()
    served.process.terminate()
    until(lambda: served.http.get("readyz").status_code == 503)
    served.process.send_signal(signal.SIGTERM)
    assert served.process.wait(PATIENCE) == 1
    assert not (served.folder / "effects").exists()
    assert served.row().state == "unknown"
