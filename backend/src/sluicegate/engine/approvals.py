"""What a person may see and do about approvals outside the chat page (A8)."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Protocol

from sluicegate.core.events import NODE_CONFIRMATION
from sluicegate.core.keys import ChatKey
from sluicegate.engine.failures import describe
from sluicegate.engine.resources import moment
from sluicegate.engine.turn.reader import Client
from sluicegate.errors import Superseded, Unknown
from sluicegate.wire.requests import parse_chat_request

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import JsonValue

    from sluicegate.core.approvals import ApprovalRow
    from sluicegate.core.plan import ChatLog
    from sluicegate.engine.resources import EngineResources
    from sluicegate.engine.turn.reader import TurnReader
    from sluicegate.wire.requests import ChatRequest

logger = logging.getLogger("sluicegate")

STAGED = ("edits", "remember")
PATIENCE = 2.0
"""Seconds after which a decision that is recorded is not waited for any longer."""


class Start(Protocol):
    """How a request of a chat is begun."""

    async def __call__(self, request: ChatRequest, *, user: str, client: Client) -> TurnReader:
        """Begin it; raises RequestError."""


class ChatApprovals:
    """The approvals of each user's chats."""

    def __init__(self, parts: EngineResources, start: Start) -> None:
        self._parts = parts
        self._start = start
        self._tasks: set[asyncio.Task[None]] = set()

    async def waiting(self, *, user: str, limit: int, after: str | None) -> dict[str, Any]:
        """``{approvals: [...], next}``: what waits for a user over all chats, newest first.

        Raises:
            Malformed: the cursor ``after`` is none of ours.
        """
        page = await self._parts.waiting.page(self._parts.app, user, limit=limit, after=after)
        return {"approvals": [self._shown(row) for row in page.rows], "next": page.next}

    async def get(self, approval_id: str, *, user: str) -> dict[str, Any]:
        """One approval, also one that does not wait any more; raises Unknown."""
        return self._shown(await self._row(approval_id, user))

    async def decide(
        self, approval_id: str, said: Mapping[str, JsonValue], *, user: str, via: str
    ) -> dict[str, Any]:
        """Record a person's answer and let the turn run on, whoever reads it.

        ``said`` is ``{approved, reason?, edits?, remember?}``. Returns the approval as it is then.

        Raises:
            RequestError: nothing has changed; or the answer is recorded and the chat cannot go on
                now, then the same answer again makes it.
        """
        row = await self._row(approval_id, user)
        request = await self._request(row, said)
        task = asyncio.create_task(self._answer(request, user, via))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        await asyncio.wait([task], timeout=PATIENCE)
        row = await self._row(approval_id, user)
        if task.done() or row.answer is None:
            await task
            row = await self._row(approval_id, user)
        else:
            # A turn that runs has to end first; it does so without this request.
            task.add_done_callback(_report)
        return self._shown(row)

    async def close(self) -> None:
        """Give up what waits for a turn to end; the decisions are recorded."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def grants(self, chat_id: str, *, user: str) -> dict[str, Any]:
        """``{grants: [{tool, approvalId, grantedAt}]}``: tools that need not ask in a chat.

        Raises:
            Unknown: no such chat of this user.
        """
        chat = await self._known(chat_id, user)
        grants = [
            {
                "tool": grant.tool,
                "approvalId": grant.approval_id,
                "grantedAt": moment(grant.granted_at),
            }
            for grant in await self._parts.grants.all(chat)
        ]
        return {"grants": grants}

    async def revoke(self, chat_id: str, tool: str, *, user: str, via: str) -> None:
        """Let a tool ask again, from its next call on.

        Raises:
            Unknown: no such chat of this user, or nothing is remembered of the tool.
        """
        chat = await self._known(chat_id, user)
        if not await self._parts.grants.revoke(chat, tool, by=user, via=via):
            raise Unknown("No approval of this tool is remembered in this chat.")

    async def _answer(self, request: ChatRequest, user: str, via: str) -> None:
        reader = await self._start(request, user=user, client=Client(major=7, via=via))
        await reader.detach()

    async def _request(self, row: ApprovalRow, said: Mapping[str, JsonValue]) -> ChatRequest:
        """What the chat page would post with this answer."""
        log = await self._parts.chat_log(row.key.chat_key)
        message_id = _message_of(log, row)
        if message_id is None:
            if row.state == "superseded":
                raise Superseded
            raise Unknown("The chat of this approval has gone on without it.")
        approval = {name: said[name] for name in ("approved", "reason") if name in said}
        part: dict[str, JsonValue] = {
            "type": f"tool-{row.tool}",
            "toolCallId": row.key.call,
            "state": "approval-responded",
            "approval": {"id": row.approval_id, **approval},
        }
        staged: dict[str, JsonValue] = {
            name: {row.approval_id: said[name]} for name in STAGED if name in said
        }
        message: dict[str, JsonValue] = {"id": message_id, "role": "assistant", "parts": [part]}
        body: dict[str, JsonValue] = {
            "id": row.key.chat,
            "messageId": message_id,
            "message": message,
            **staged,
        }
        return parse_chat_request(body, self._parts.options.request_limits)

    def _shown(self, row: ApprovalRow) -> dict[str, Any]:
        facts = self._parts.survey.facts("", row.tool)
        shown: dict[str, Any] = {
            "approvalId": row.approval_id,
            "chatId": row.key.chat,
            "tool": row.tool,
            "arguments": row.arguments,
            "state": row.state,
            "requestedAt": moment(row.requested_at),
            "expiresAt": moment(row.deadline),
            "editable": facts.editable,
            "rememberable": facts.rememberable and not row.key.call.startswith(NODE_CONFIRMATION),
        }
        further = {
            "hint": row.hint,
            "schema": facts.schema,
            "approved": row.answer,
            "reason": row.reason,
            "edits": row.edits,
            "decidedBy": row.decided_by,
            "decidedAt": None if row.decided_at is None else moment(row.decided_at),
        }
        return shown | {name: value for name, value in further.items() if value is not None}

    async def _row(self, approval_id: str, user: str) -> ApprovalRow:
        row = await self._parts.waiting.find(self._parts.app, user, approval_id)
        if row is None:
            raise Unknown("There is no such approval.")
        return row

    async def _known(self, chat_id: str, user: str) -> ChatKey:
        chat = ChatKey(self._parts.app, user, chat_id)
        if await self._parts.chats.get(chat) is None:
            raise Unknown("There is no such chat.")
        return chat


def _message_of(log: ChatLog, row: ApprovalRow) -> str | None:
    """The message that holds the question."""
    for exchange in reversed(log.exchanges):
        if exchange.invocation == row.key.invocation:
            states = log.rebuild(exchange).buffer.calls.values()
            if any(
                s.request is not None and s.request.approval_id == row.approval_id for s in states
            ):
                return exchange.message_id
    return None


def _report(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        logger.warning("an approval was recorded, its turn waits: %s", describe(task.exception()))
