"""One chat with a running server: over SSE, the chat socket or the live socket."""

from __future__ import annotations

import contextlib
import json
import secrets
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import httpx

from sluicegate.engine.hooks import EngineHooks, ToolsFor
from sluicegate.engine.timeouts_and_intervals import EngineTimings
from sluicegate.server.app import build, engine_of
from sluicegate.server.authentication import Authenticate
from sluicegate.server.settings import Settings
from sluicegate.wire.chunks import decode_chunk
from sluicegate.wire.reducer import reduce_chunks
from sluicegate.wire.ui_messages import Part, UIMessage, is_tool_part, tool_name
from tests.engine.talk import decide
from tests.patience import LEASE
from tests.server.exchange import chunks, over_socket, serving, user_message
from tests.stores.builders import LIMIT, PATIENT
from tests.transports.socket_client import SocketClient, opened
from tests.transports.socket_client import chunks as framed

Transport = Literal["sse", "socket", "live"]
TRANSPORTS: Sequence[Transport] = ("sse", "socket", "live")


class Refused(Exception):
    """The server refused a request."""

    def __init__(self, code: str, sentence: str) -> None:
        super().__init__(code, sentence)
        self.code = code
        self.sentence = sentence


@dataclass
class Conversation:
    """A chat of a page that sends what `useChat` sends, with the staged options beside it."""

    http: httpx.AsyncClient
    socket: SocketClient | None
    chat_id: str
    messages: list[UIMessage] = field(default_factory=list)
    received: list[dict[str, Any]] = field(default_factory=list)
    """The chunks of the last response."""

    async def say(self, text: str) -> UIMessage:
        """Send a user's message and read the answer."""
        question: Any = user_message(text, message_id=f"u-{secrets.token_hex(6)}")
        self.messages.append(question)
        return await self.post()

    async def answer(
        self, *, approved: bool = True, only: str | None = None, **staged: Any
    ) -> UIMessage:
        """Decide what waits, or only the calls of one tool; each staged option is for them all."""
        asked = []
        for part in self.pending():
            if only is None or tool_name(part) == only:
                decide(part, approved=approved)
                asked.append(part["approval"]["id"])
        return await self.post(**{name: dict.fromkeys(asked, staged[name]) for name in staged})

    async def post(self, **extras: Any) -> UIMessage:
        """Post the last message; returns the assistant's message after the answer."""
        last = self.messages[-1]
        body: dict[str, Any] = {"id": self.chat_id, "messages": [last], **extras}
        if last["role"] == "assistant":
            body["messageId"] = last["id"]
        read = await (self._over_sse(body) if self.socket is None else self._over_socket(body))
        self.received = read
        continued = last if last["role"] == "assistant" else None
        message = reduce_chunks([decode_chunk(json.dumps(chunk)) for chunk in read], continued)
        if continued is not None:
            self.messages.pop()
        self.messages.append(message)
        return message

    def pending(self) -> list[Part]:
        """The parts of the last message that wait for a decision."""
        parts = self.messages[-1]["parts"]
        return [p for p in parts if is_tool_part(p) and p["state"] == "approval-requested"]

    def card(self) -> dict[str, Any]:
        """The descriptor of the only part that waits."""
        [part] = self.pending()
        descriptor: dict[str, Any] = part["approval"]["descriptor"]
        return descriptor

    async def grants(self) -> list[dict[str, Any]]:
        """The grants of the chat."""
        response = await self.http.get(f"/api/chats/{self.chat_id}/grants")
        found: list[dict[str, Any]] = response.json()["grants"]
        return found

    async def inbox(self) -> list[dict[str, Any]]:
        """The approvals that wait, of all chats."""
        found: list[dict[str, Any]] = (await self.http.get("/api/approvals")).json()["approvals"]
        return found

    async def _over_sse(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        response = await self.http.post("/api/chat", json=body, headers={"x-ai-sdk": "7"})
        if response.status_code != 200:
            raise Refused(response.headers["x-error-code"], response.text)
        return chunks(response.text)

    async def _over_socket(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        assert self.socket is not None
        request = f"r-{secrets.token_hex(6)}"
        frames = await self.socket.exchange({"type": "send", "requestId": request, "body": body})
        if frames[-1]["type"] == "error":
            raise Refused(frames[-1]["code"], frames[-1]["errorText"])
        return framed(frames)


@contextlib.asynccontextmanager
async def conversation(
    agent: Any,
    folder: Path,
    transport: Transport,
    *,
    chat_id: str = "c1",
    tools_for: ToolsFor | None = None,
    authenticate: Authenticate | None = None,
    **settings: Any,
) -> AsyncIterator[Conversation]:
    """A running server with an agent and a database in a folder, and a chat with it."""
    stores = {
        "sessions": f"sqlite+aiosqlite:///{folder}/chats.db",
        "artifacts": f"file:{folder}/files",
    }
    chosen = Settings(**{"port": 0, "lease_ttl": LEASE, **stores, **settings})
    hooks = EngineHooks(tools_for=tools_for)
    timings = EngineTimings(decision=LIMIT, database=PATIENT, worker_listing=LIMIT)
    open_engine = engine_of(agent, chosen, hooks, timings=timings)
    application = build(open_engine, chosen, authenticate=authenticate)
    async with contextlib.AsyncExitStack() as stack:
        await stack.enter_async_context(application.app.router.lifespan_context(application.app))
        address = await stack.enter_async_context(serving(application, chosen))
        http = await stack.enter_async_context(over_socket(address))
        socket: SocketClient | None = None
        if transport != "sse":
            path = "/api/chat/ws" if transport == "socket" else f"/api/live?chat={chat_id}"
            socket = await stack.enter_async_context(opened(address, path))
        yield Conversation(http, socket, chat_id)
