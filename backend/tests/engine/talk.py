"""A client of the engine: it sends messages and decisions and reduces the response."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from sluicegate.core.chat_keys import ChatKey
from sluicegate.core.grammar import Grammar
from sluicegate.engine.turn.reader import Client
from sluicegate.wire.chunks import BaseChunk, ErrorChunk, FinishChunk
from sluicegate.wire.limits import RequestLimits
from sluicegate.wire.messages import UIMessage, is_tool_part, tool_name
from sluicegate.wire.reducer import reduce_chunks
from sluicegate.wire.requests import ChatRequest, parse_chat_request

if TYPE_CHECKING:
    from collections.abc import Collection

    from sluicegate.core.release.open_buffer import ReleasePolicy
    from sluicegate.engine.chat_engine import ChatEngine
    from sluicegate.engine.turn.reader import TurnReader
    from sluicegate.engine.turn.runner import RunningTurn


@dataclass
class Turn:
    """One request and its response."""

    chunks: list[BaseChunk]
    message: UIMessage

    @property
    def types(self) -> list[str]:
        return [str(getattr(chunk, "type")) for chunk in self.chunks]  # noqa: B009

    @property
    def failed(self) -> bool:
        return any(isinstance(chunk, ErrorChunk) for chunk in self.chunks)

    @property
    def finish_reason(self) -> str | None:
        last = self.chunks[-1]
        return last.finish_reason if isinstance(last, FinishChunk) else None


@dataclass
class Talk:
    """One chat of one user."""

    engine: ChatEngine
    release: ReleasePolicy = "deferred"
    major: Literal[6, 7] = 7
    user: str = "ann"
    chat_id: str = field(default_factory=lambda: f"chat-{secrets.token_hex(6)}")
    messages: list[UIMessage] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)

    @property
    def key(self) -> ChatKey:
        """The chat's key in the stores."""
        return ChatKey(self.engine.resources.app, self.user, self.chat_id)

    @property
    def running(self) -> RunningTurn:
        """The turn that runs."""
        turn = self.engine.resources.turns.running(self.key)
        assert turn is not None
        return turn

    @property
    def client(self) -> Client:
        return Client(self.major, self.release)

    async def say(self, text: str, *, message_id: str | None = None) -> Turn:
        """Send a new user message."""
        name = message_id or f"user-{secrets.token_hex(6)}"
        question: UIMessage = {
            "id": name,
            "role": "user",
            "parts": [{"type": "text", "text": text}],
        }
        self.messages.append(question)
        return await self.post({"message": question})

    async def approve(self, **staged: Any) -> Turn:
        """Say yes to everything that waits; ``remember`` and ``edits`` by approval id."""
        return await self.answer(approved=True, **staged)

    async def answer(
        self,
        *,
        approved: bool,
        reason: str | None = None,
        tools: Collection[str] | None = None,
        **staged: Any,
    ) -> Turn:
        """Decide the open approvals, or only those of some tools."""
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
        """Send a body; the response is not read yet."""
        return await self.engine.start(self.request(body), user=self.user, client=self.client)

    def request(self, body: dict[str, Any]) -> ChatRequest:
        """A body as the server reads it."""
        whole = {"id": self.chat_id, "trigger": "submit-message", **body}
        return parse_chat_request(whole, RequestLimits())

    async def read(self, reader: TurnReader) -> Turn:
        """Read a response as the client does, into the last assistant message."""
        chunks = [chunk async for chunk in reader]
        await reader.aclose()
        return self.take(chunks)

    def take(self, chunks: list[BaseChunk]) -> Turn:
        """Apply a response to the message it continues."""
        last = self.messages[-1] if self.messages else None
        continued = last if last is not None and last["role"] == "assistant" else None
        message = reduce_chunks(chunks, continued)
        if continued is not None:
            self.messages[-1] = message
        else:
            self.messages.append(message)
        turn = Turn(chunks, message)
        self.turns.append(turn)
        return turn

    def pending(self) -> list[dict[str, Any]]:
        """Tool parts of the last message with an open approval."""
        return [
            part
            for part in self.messages[-1]["parts"]
            if is_tool_part(part) and part["state"] == "approval-requested"
        ]

    def asks(self) -> list[str]:
        """The ids of the open approvals."""
        return [part["approval"]["id"] for part in self.pending()]

    async def history(self) -> UIMessage:
        """The stored last message."""
        chat = await self.engine.get_chat(self.chat_id, user=self.user)
        message: UIMessage = chat["messages"][-1]
        return message


def decide(part: dict[str, Any], *, approved: bool, reason: str | None = None) -> None:
    """Change a part as ``addToolApprovalResponse`` does."""
    part["state"] = "approval-responded"
    part["approval"] = {**part["approval"], "approved": approved}
    if reason is not None:
        part["approval"]["reason"] = reason


def check(chunks: list[BaseChunk], grammar: Grammar | None = None) -> None:
    """Every chunk may follow the one before it."""
    checked = grammar or Grammar()
    for chunk in chunks:
        checked.feed(chunk)
    checked.close()
