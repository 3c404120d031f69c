"""Real servers, each in a process of its own that a test may kill, and their clients."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx

from tests.fork_server import ForkedProcess, ForkServer
from tests.server.exchange import user_message
from tests.server.page import Page

BACKEND: Final = Path(__file__).resolve().parents[2]
LEASE: Final = 10.0
"""Seconds after which a replica that was killed loses its chats; a busy machine renews in time."""

LIMIT: Final = 30.0
"""Seconds for an event of another process; only a defect takes so long."""

COMMAND: Final = str(Path(sys.executable).with_name("sluicegate"))
_URL: Final = re.compile(r"http://127\.0\.0\.1:([1-9]\d*)")
SETTINGS: Final = {
    "SLUICEGATE_LEASE_TTL": str(LEASE),
    "SLUICEGATE_MAX_TURNS_PER_MINUTE": "100000",
    "SLUICEGATE_MAX_MESSAGES_PER_MINUTE": "100000",
    "SLUICEGATE_MAX_REQUESTS_PER_MINUTE": "100000",
    "SLUICEGATE_MAX_TURNS_PER_USER": "100",
}


def is_running(pid: int) -> bool:
    """Whether a process runs."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


class Replica:
    """One ``sluicegate serve`` of the conformance agent."""

    def __init__(
        self, name: str, folder: Path, sessions: str, streams: str, fork_server: ForkServer
    ) -> None:
        self.log = folder / f"{name}.log"
        self._effects = folder / "effects"
        self._holds = folder / "holds"
        self._stores = ("--sessions", sessions, "--streams", streams)
        self._files = ("--artifacts", f"file:{folder}/files")
        self._fork_server = fork_server
        self._process: ForkedProcess | None = None
        self.port = 0

    @property
    def url(self) -> str:
        """The URL of the server."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start the server; `wait` waits until it listens."""
        source = os.environ.get("PYTHONPATH", str(BACKEND / "src"))
        target = "tests.agents.conformance_agent:root_agent"
        options = (*self._stores, *self._files, "--port", "0", "--no-page")
        self.log.unlink(missing_ok=True)
        self._process = self._fork_server.start(
            *("serve", target, *options),
            log=self.log,
            folder=BACKEND,
            environment={
                **SETTINGS,
                "PYTHONPATH": os.pathsep.join((source, str(BACKEND))),
                "SLUICEGATE_EFFECTS": str(self._effects),
                "SLUICEGATE_HOLDS": str(self._holds),
            },
        )

    def wait(self) -> None:
        """Wait until the server prints its URL, the only line of its output."""
        assert self._process is not None
        found = _URL.search(self._process.line())
        assert found is not None, self.log.read_text()
        self.port = int(found[1])

    def kill(self) -> None:
        """Kill the server with SIGKILL, as the system does without memory."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Shut the server down gracefully."""
        self._end(signal.SIGTERM)

    def freeze(self) -> None:
        """Suspend the process; its connections and leases stay."""
        assert self._process is not None
        self._process.send(signal.SIGSTOP)

    def thaw(self) -> None:
        """Resume the process."""
        assert self._process is not None
        self._process.send(signal.SIGCONT)

    def revive(self) -> None:
        """Restart the server if it was killed."""
        if self._process is None:
            self.start()
            self.wait()

    def effects(self, chat: str) -> list[str]:
        """Return the tools that have run in a chat."""
        lines = self._effects.read_text().splitlines() if self._effects.exists() else []
        return [said["tool"] for said in map(json.loads, lines) if said["chat"] == chat]

    def hold(self, chat: str) -> Path:
        """Pause the model of a chat until the returned file is removed."""
        self._holds.mkdir(exist_ok=True)
        held = self._holds / chat
        held.touch()
        return held

    def _end(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.send(signal.SIGCONT)
            process.end(number)


@contextlib.asynccontextmanager
async def client_of(
    url: str, *, patience: float = LEASE + LIMIT
) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a server."""
    async with httpx.AsyncClient(base_url=url, verify=False, timeout=patience) as http:
        yield http


def at(page: Page, http: httpx.AsyncClient) -> Page:
    """Return a page with the same chat on another server."""
    messages = json.loads(json.dumps(page.messages))
    return Page(http, page.major, page.chat_id, messages)


@dataclass
class Stream:
    """One response while it is read."""

    response: httpx.Response
    chunks: list[dict[str, Any]] = field(default_factory=list)
    _lines: AsyncIterator[str] | None = None

    async def until(self, kind: str) -> dict[str, Any]:
        """Read up to the first chunk of a type."""
        async for chunk in self.rest():
            if chunk["type"] == kind:
                return chunk
        raise AssertionError(f"the stream ended without {kind}: {self.chunks}")

    async def rest(self) -> AsyncIterator[dict[str, Any]]:
        """Read on to the end."""
        if self._lines is None:
            self._lines = self.response.aiter_lines()
        async for line in self._lines:
            if line.startswith("data: {"):
                self.chunks.append(json.loads(line[6:]))
                yield self.chunks[-1]

    async def to_the_end(self) -> list[dict[str, Any]]:
        """Read to the end and return all chunks."""
        async for _ in self.rest():
            pass
        return self.chunks


@contextlib.asynccontextmanager
async def asking(page: Page, text: str, **headers: str) -> AsyncIterator[Stream]:
    """Send a message and stream the answer; the page is unchanged."""
    body = {"id": page.chat_id, "message": user_message(text, message_id=f"u-{text}")}
    headers = {"x-ai-sdk": str(page.major), **headers}
    async with page.http.stream("POST", "/api/chat", json=body, headers=headers) as response:
        assert response.status_code == 200, await response.aread()
        yield Stream(response)


@contextlib.asynccontextmanager
async def resuming(page: Page, http: httpx.AsyncClient) -> AsyncIterator[Stream]:
    """Resume the running stream, possibly on another server."""
    headers = {"x-ai-sdk": str(page.major)}
    url = f"/api/chat/{page.chat_id}/stream"
    async with http.stream("GET", url, headers=headers) as response:
        assert response.status_code == 200, response.status_code
        yield Stream(response)


async def answers_again(http: httpx.AsyncClient) -> None:
    """Wait until a server is ready."""
    async with asyncio.timeout(LIMIT):
        # Another process becomes ready, and no event of this one announces it.
        while (await http.get("/readyz")).status_code != 200:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
