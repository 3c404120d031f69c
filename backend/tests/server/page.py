"""A client of the real server that sends the same HTTP requests as `useChat`."""

from __future__ import annotations

import contextlib
import functools
import secrets
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast
from unittest.mock import patch

import httpx
from pydantic import TypeAdapter

from sluicegate import create_app
from sluicegate.engine.timeouts_and_intervals import EngineTimings
from sluicegate.server.app import engine_of
from sluicegate.wire.chunks import Chunk
from sluicegate.wire.reducer import reduce_chunks
from sluicegate.wire.ui_messages import UIMessage, is_tool_part
from tests.new_database import new_database
from tests.patience import LEASE
from tests.server.exchange import chunks, client, started, user_message
from tests.stores.builders import LIMIT, PATIENT, PATIENT_STREAMS

CHUNK: TypeAdapter[Chunk] = TypeAdapter(Chunk)


@dataclass
class Page:
    """One chat of one user."""

    http: httpx.AsyncClient
    major: Literal[6, 7] = 7
    chat_id: str = field(default_factory=lambda: f"chat-{secrets.token_hex(6)}")
    messages: list[UIMessage] = field(default_factory=list)
    posts: int = 0

    async def say(self, text: str) -> list[dict[str, Any]]:
        """Send a new message and read the response."""
        question = user_message(text, message_id=f"u-{secrets.token_hex(6)}")
        self.messages.append(cast("UIMessage", question))
        return await self.post()

    async def answer(self, *, approved: bool = True, **staged: Any) -> list[dict[str, Any]]:
        """Answer all pending parts."""
        for part in self.pending():
            part["state"] = "approval-responded"
            part["approval"]["approved"] = approved
        return await self.post(**staged)

    async def post(self, **staged: Any) -> list[dict[str, Any]]:
        """Post the last message as ``DefaultChatTransport`` does, and read the response."""
        last = self.messages[-1]
        self.posts += 1
        response = await self.http.post(
            "/api/chat",
            json={"id": self.chat_id, "messages": self.messages, **staged},
            headers={"x-ai-sdk": str(self.major)},
        )
        assert response.status_code == 200, response.text
        read = chunks(response.text)
        continued = last if last["role"] == "assistant" else None
        message = reduce_chunks([CHUNK.validate_python(chunk) for chunk in read], continued)
        if continued is not None:
            self.messages.pop()
        self.messages.append(message)
        return read

    def pending(self) -> list[dict[str, Any]]:
        """The pending parts of the last message."""
        return [
            part
            for part in self.messages[-1]["parts"]
            if is_tool_part(part) and part["state"] == "approval-requested"
        ]

    def asks(self) -> list[str]:
        """The ids of the pending approvals."""
        return [part["approval"]["id"] for part in self.pending()]

    async def history(self) -> UIMessage:
        """The stored last message."""
        chat = (await self.http.get(f"/api/chats/{self.chat_id}")).json()
        last: UIMessage = chat["messages"][-1]
        return last


@contextlib.contextmanager
def patient_engines() -> Iterator[None]:
    """Let `create_app` make engines with time limits that a busy machine does not reach."""
    timings = EngineTimings(
        decision=LIMIT, database=PATIENT, streams=PATIENT_STREAMS, worker_listing=LIMIT
    )
    patient = functools.partial(engine_of, timings=timings)
    with patch("sluicegate.server.app.engine_of", patient):
        yield


@contextlib.asynccontextmanager
async def served(agent: Any, folder: Path, **settings: Any) -> AsyncIterator[httpx.AsyncClient]:
    """The complete application with an agent and a database in a folder."""
    url = new_database(folder / "chats.db")
    stores = {"sessions": url, "artifacts": f"file:{folder}/files"}
    with patient_engines():
        app = create_app(agent, **{"lease_ttl": LEASE, **stores, **settings})
    async with started(app), client(app) as http:
        yield http
