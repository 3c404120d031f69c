"""A client of an engine without a network: it sends what `useChat` sends, and reads the answer."""

from __future__ import annotations

import secrets
import tempfile
from contextlib import asynccontextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from sluicegate.engine.chat_engine import ChatEngine
from sluicegate.engine.client_request_options import RequestingClient
from sluicegate.engine.hooks import EngineHooks
from sluicegate.engine.options import EngineOptions
from sluicegate.testing.response_checks import check_response, kind
from sluicegate.wire.chunks import BaseChunk, ErrorChunk, FinishChunk
from sluicegate.wire.limits import RequestLimits
from sluicegate.wire.reducer import reduce_chunks
from sluicegate.wire.requests import ChatRequest, parse_chat_request
from sluicegate.wire.ui_messages import UIMessage, is_tool_part, tool_name

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection

    from google.adk.agents.base_agent import BaseAgent
    from google.adk.apps.app import App

    from sluicegate.core.release.policies import ReleasePolicy
    from sluicegate.engine.hooks import ToolsFor
    from sluicegate.engine.turn.reader import TurnReader
    from sluicegate.tools import Policy


@dataclass
class Turn:
    """One response: its chunks, and the assistant's message after and before it."""

    chunks: list[BaseChunk]
    message: UIMessage
    before: UIMessage | None = None

    @property
    def types(self) -> list[str]:
        """The types of the chunks."""
        return [kind(chunk) for chunk in self.chunks]

    @property
    def failed(self) -> bool:
        """Whether the response contains an error."""
        return any(isinstance(chunk, ErrorChunk) for chunk in self.chunks)

    @property
    def finish_reason(self) -> str | None:
        """The finish reason, such as ``stop`` or ``tool-calls``; None after an error."""
        last = self.chunks[-1]
        return last.finish_reason if isinstance(last, FinishChunk) else None


@dataclass
class ChatClient:
    """One chat of one user."""

    engine: ChatEngine
    release: ReleasePolicy = "deferred"
    major: Literal[6, 7] = 7
    user: str = "ann"
    chat_id: str = field(default_factory=lambda: f"chat-{secrets.token_hex(6)}")
    messages: list[UIMessage] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)

    @property
    def client(self) -> RequestingClient:
        """The client as the server knows it."""
        return RequestingClient(self.major, self.release)

    @property
    def text(self) -> str:
        """All text of the last message."""
        parts = self.messages[-1]["parts"]
        return "".join(part["text"] for part in parts if part["type"] == "text")

    async def say(self, text: str, *, message_id: str | None = None) -> Turn:
        """Send a new user message."""
        name = message_id or f"user-{secrets.token_hex(6)}"
        message: UIMessage = {
            "id": name,
            "role": "user",
            "parts": [{"type": "text", "text": text}],
        }
        self.messages.append(message)
        return await self.post({"message": message})

    async def approve(self, **staged: Any) -> Turn:
        """Approve every open approval; ``remember`` and ``edits`` by approval id."""
        return await self.answer(approved=True, **staged)

    async def deny(self, reason: str | None = None) -> Turn:
        """Deny every open approval."""
        return await self.answer(approved=False, reason=reason)

    async def answer(
        self,
        *,
        approved: bool,
        reason: str | None = None,
        tools: Collection[str] | None = None,
        **staged: Any,
    ) -> Turn:
        """Decide the open approvals, or only those of some tools, and send the message."""
        for part in self.pending():
            if tools is None or tool_name(part) in tools:
                decide(part, approved=approved, reason=reason)
        return await self.post_last(**staged)

    async def post_last(self, **staged: Any) -> Turn:
        """Post the last assistant message as it is."""
        last = self.messages[-1]
        return await self.post({"message": last, "messageId": last["id"], **staged})

    async def post(self, body: dict[str, Any]) -> Turn:
        """Send a body and read the whole response."""
        return await self.read(await self.start(body))

    async def start(self, body: dict[str, Any]) -> TurnReader:
        """Send a body; the response is not read yet.

        Raises:
            RequestError: The server refuses the request; nothing has changed.
        """
        return await self.engine.start(self.request(body), user=self.user, client=self.client)

    def request(self, body: dict[str, Any]) -> ChatRequest:
        """Return a body as the server reads it."""
        whole = {"id": self.chat_id, "trigger": "submit-message", **body}
        return parse_chat_request(whole, RequestLimits())

    async def read(self, reader: TurnReader) -> Turn:
        """Read a response as the client does, into the last assistant message."""
        chunks = [chunk async for chunk in reader]
        await reader.aclose()
        return self.take(chunks)

    def take(self, chunks: list[BaseChunk]) -> Turn:
        """Apply a response to the message that it continues."""
        last = self.messages[-1] if self.messages else None
        continued = last if last is not None and last["role"] == "assistant" else None
        before = deepcopy(continued)
        message = reduce_chunks(chunks, continued)
        if continued is not None:
            self.messages[-1] = message
        else:
            self.messages.append(message)
        turn = Turn(chunks, message, before)
        self.turns.append(turn)
        return turn

    def pending(self) -> list[dict[str, Any]]:
        """Return the tool parts of the last message with an open approval."""
        return [
            part
            for part in self.messages[-1]["parts"]
            if is_tool_part(part) and part["state"] == "approval-requested"
        ]

    def asks(self) -> list[str]:
        """Return the ids of the open approvals."""
        return [part["approval"]["id"] for part in self.pending()]

    async def history(self) -> UIMessage:
        """Return the stored last message, as a reload shows it."""
        chat = await self.engine.get_chat(self.chat_id, user=self.user)
        message: UIMessage = chat["messages"][-1]
        return message

    def check_rules(self, client_tools: Collection[str] = ()) -> None:
        """Check every response of the chat against the rules of the wire.

        Raises:
            RuleViolation: A response breaks a rule.
        """
        release = "deferred" if self.release == "preview" and self.major == 6 else self.release
        for turn in self.turns:
            check_response(
                turn.chunks, turn.before, turn.message, release=release, client_tools=client_tools
            )


def decide(part: dict[str, Any], *, approved: bool, reason: str | None = None) -> None:
    """Change a part as ``addToolApprovalResponse`` of the AI SDK does."""
    part["state"] = "approval-responded"
    part["approval"] = {**part["approval"], "approved": approved}
    if reason is not None:
        part["approval"]["reason"] = reason


@asynccontextmanager
async def open_chat(
    agent: BaseAgent | App,
    *,
    release: ReleasePolicy = "deferred",
    policy: Policy | None = None,
    tools_for: ToolsFor | None = None,
    **options: Any,
) -> AsyncIterator[ChatClient]:
    """Serve an agent from a temporary folder, and open a chat with it.

    ``options`` are those of `EngineOptions`.

    Raises:
        ConfigurationError: The agent cannot be served; the sentence names the tool or setting.
    """
    with tempfile.TemporaryDirectory() as folder:
        stores = {
            "sessions": f"sqlite+aiosqlite:///{folder}/chats.db",
            "artifacts": f"file:{folder}/artifacts",
        }
        made = EngineOptions(**{**stores, **options})
        engine = await ChatEngine.open(agent, made, hooks=EngineHooks(policy, tools_for))
        try:
            yield ChatClient(engine, release)
        finally:
            await engine.close()
