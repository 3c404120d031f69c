"""Approvals outside the chat page: listed, shown, decided; and the grants of a chat (A8)."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

from sluicegate.core.approval_metadata import edits_of, people_of
from sluicegate.core.approvals import Resolver
from sluicegate.core.approvers import decision_of, not_entitled
from sluicegate.core.call_chunks import is_standard_hint
from sluicegate.core.chat_and_turn_keys import ChatKey
from sluicegate.core.confirmation_payload_form import is_form, seen_payload, seen_schema
from sluicegate.core.event_reading import NODE_CONFIRMATION
from sluicegate.core.plan import ContinueExchange, plan_turn
from sluicegate.core.schema_defaults import defaults_in
from sluicegate.engine.agents.agent_tree import name_in
from sluicegate.engine.client_request_options import RequestingClient
from sluicegate.engine.describe_exceptions import describe
from sluicegate.errors import NotEntitled, RequestError, Superseded, Unknown
from sluicegate.stores.approvals.inbox import ALL
from sluicegate.wire.decisions import (
    STAGED,
    PostedDecision,
    StagedOptions,
    parse_decision,
    with_staged_options,
)
from sluicegate.wire.iso_times import iso_time
from sluicegate.wire.posted_assistant_message import PostedAssistantMessage, PostedPart
from sluicegate.wire.requests import ChatRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pydantic import JsonValue

    from sluicegate.core.approvals import ApprovalRow
    from sluicegate.core.plan import ChatLog
    from sluicegate.core.tool_facts import ToolFacts
    from sluicegate.engine.agents.survey import AgentSurvey
    from sluicegate.engine.entitlement import Entitlement
    from sluicegate.engine.load_chat_log import ChatLogs
    from sluicegate.engine.turn.reader import TurnReader
    from sluicegate.engine.unknown_outcomes import UnknownOutcomes
    from sluicegate.media.chat_files import ChatFiles
    from sluicegate.stores.approvals.grants import Grants
    from sluicegate.stores.approvals.inbox import ApprovalFilter, ApprovalInbox, ApprovalPage
    from sluicegate.stores.chats import ChatIndex

logger = logging.getLogger("sluicegate")


class StartFromLog(Protocol):
    """Continues an exchange: `ChatEngine.start_from_log`."""

    async def __call__(
        self,
        request_of: Callable[[ChatLog], ChatRequest],
        *,
        chat: ChatKey,
        client: RequestingClient,
    ) -> TurnReader:
        """Raises RequestError."""


@dataclass(frozen=True, slots=True)
class ChatApprovals:
    """The approvals of each user's chats.

    ``patience`` is in seconds: `decide` returns after them although the turn that runs on the chat
    has not ended, so that the decision has no effect yet.
    """

    app: str
    survey: AgentSurvey
    inbox: ApprovalInbox
    grant_store: Grants
    chats: ChatIndex
    logs: ChatLogs
    start_from_log: StartFromLog
    unknown: UnknownOutcomes
    patience: float
    entitlement: Entitlement
    files: ChatFiles
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def waiting(
        self, *, user: str, limit: int, after: str | None, selection: ApprovalFilter = ALL
    ) -> dict[str, Any]:
        """``{approvals: [...], next}``: what waits for a user over all chats, newest first.

        They are those of the user's chats, and those of other people that the user may decide.

        Raises:
            Unknown: the cursor ``after`` is none of ours.
        """
        roles, entitlement = None, self.entitlement.read_once()
        if self.survey.has_approvers:
            roles = await entitlement.roles(user)
        page = await self.inbox.page(
            self.app, user, roles=roles, limit=limit, after=after, selection=selection
        )
        return await self._page(page, user, entitlement)

    async def unknown_outcomes(
        self, *, user: str, limit: int, after: str | None, selection: ApprovalFilter = ALL
    ) -> dict[str, Any]:
        """As `waiting`, of the user's calls that may have taken effect."""
        await self.unknown.find(user)
        selection = replace(selection, state="unknown")
        page = await self.inbox.page(self.app, user, limit=limit, after=after, selection=selection)
        return await self._page(page, user, self.entitlement.read_once())

    async def get(self, approval_id: str, *, user: str) -> dict[str, Any]:
        """One approval, open or not; raises Unknown."""
        return await self._shown(await self._row(approval_id, user), user)

    async def preview_image(self, approval_id: str, *, user: str) -> tuple[bytes, str]:
        """The picture that an approval's preview shows, and its media type; raises Unknown."""
        row = await self._row(approval_id, user)
        name = None if row.preview is None else row.preview.get("file")
        if not isinstance(name, str):
            raise Unknown("This approval shows no picture.")
        return await self.files.read(row.key.chat_key, name)

    async def decide(
        self,
        approval_id: str,
        body: Mapping[str, JsonValue],
        *,
        user: str,
        via: str,
        is_identified: bool = True,
    ) -> dict[str, Any]:
        """Record a person's decision and let the turn run on, with or without readers.

        ``body`` is ``{approved, reason?, edits?, payload?, remember?, digest?, response?}``.
        ``is_identified``: the person is known to be the user, as a speaker is not.
        Returns the approval as it is then.

        Raises:
            RequestError: nothing has changed; or the decision is recorded and the chat cannot
                continue now, then the same decision again makes it.
        """
        row = await self._row(approval_id, user)
        if row.approvers is not None and not is_identified:
            raise NotEntitled(not_entitled(row.approvers))
        request_of = self._request_of(row, body)
        task = asyncio.create_task(self._run(request_of, row.key.chat_key, user, via))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        await asyncio.wait([task], timeout=self.patience)
        if not task.done() and await self._is_recorded(request_of, row, user, task):
            # A turn that runs has to end first; it does so without this request.
            task.add_done_callback(_log_failure)
        else:
            await task
        return await self._shown(await self._row(approval_id, user, has_decided=True), user)

    async def resolve(
        self, approval_id: str, body: Mapping[str, JsonValue], *, user: str, via: str
    ) -> dict[str, Any]:
        """Resolve an unknown outcome; returns the approval as it is then.

        ``body`` is ``{outcome, reason}``, with the outcome ``executed``, ``failed`` or
        ``run-again``.

        Who may decide it may resolve it. It runs again only while the approvals that it had count.

        Raises:
            RequestError: nothing has changed.
        """
        outcome, reason = self.unknown.parse(body)
        row = await self._row(approval_id, user)
        if row.approvers is not None and not await self.entitlement.may_decide(row, user):
            raise NotEntitled(not_entitled(row.approvers))
        await self.unknown.resolve(row, outcome, Resolver(user, via, reason))
        return await self._shown(await self._row(approval_id, user), user)

    async def close(self) -> None:
        """Stop waiting for turns to end; the decisions are recorded."""
        await self.unknown.run_again.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def grants(self, chat_id: str, *, user: str) -> dict[str, Any]:
        """``{grants: [{id, tool, agent, where, …}]}``: calls that need not ask in a chat.

        Raises:
            Unknown: no such chat of this user.
        """
        chat = await self._chat(chat_id, user)
        grants = [
            {
                "id": grant.id,
                "tool": grant.tool,
                "agent": grant.agent,
                "where": dict(grant.where),
                "approvalId": grant.approval_id,
                "grantedAt": iso_time(grant.granted_at),
                "expiresAt": iso_time(grant.expires_at),
            }
            for grant in await self.grant_store.all(chat)
        ]
        return {"grants": grants}

    async def revoke(self, chat_id: str, grant_id: str, *, user: str, via: str) -> None:
        """Revoke a grant: the next call that it covers asks again.

        Raises:
            Unknown: no such chat of this user, or it has no such grant.
        """
        chat = await self._chat(chat_id, user)
        if not await self.grant_store.revoke(chat, grant_id, by=user, via=via):
            raise Unknown("This chat has no such grant; load its grants again.")

    async def _run(
        self, request_of: Callable[[ChatLog], ChatRequest], chat: ChatKey, by: str, via: str
    ) -> None:
        client = RequestingClient(major=7, via=via, decided_by=by)
        reader = await self.start_from_log(request_of, chat=chat, client=client)
        await reader.detach()

    async def _is_recorded(
        self,
        request_of: Callable[[ChatLog], ChatRequest],
        row: ApprovalRow,
        user: str,
        task: asyncio.Task[None],
    ) -> bool:
        """Whether the decision that a task makes is recorded.

        Raises:
            RequestError: It is refused, and the task is cancelled.
        """
        log = await self.logs.load(row.key.chat_key)
        try:
            decider = await self.entitlement.decider(log.rows, user)
            plan = plan_turn(request_of(log), log, decider)
        except RequestError:
            task.cancel()
            raise
        return isinstance(plan, ContinueExchange) and row.approval_id in plan.repeats

    def _request_of(
        self, row: ApprovalRow, body: Mapping[str, JsonValue]
    ) -> Callable[[ChatLog], ChatRequest]:
        """The decision as a request that continues the approval's exchange in a log."""
        approval = {"id": row.approval_id} | _only(body, "approved", "reason")
        options_in_body = _only(body, *STAGED)
        staged = {name: {row.approval_id: value} for name, value in options_in_body.items()}
        answer = replace(parse_decision(approval, self.logs.options.request_limits), form="whole")
        options = StagedOptions(**staged)
        decision = with_staged_options(answer, options)
        part: dict[str, JsonValue] = {
            "type": f"tool-{row.tool}",
            "toolCallId": row.key.call_id,
            "state": "approval-responded",
            "approval": approval,
        }

        def request_of(log: ChatLog) -> ChatRequest:
            message_id = _message_of(log, row)
            message: dict[str, JsonValue] = {"id": message_id, "role": "assistant", "parts": [part]}
            body = {"id": row.key.chat, "messageId": message_id, **staged, "message": message}
            return ChatRequest(
                chat_id=row.key.chat,
                trigger="submit-message",
                message_id=message_id,
                user_message=None,
                continued=_continued(message_id, row, decision),
                posted_body=body,
            )

        return request_of

    async def _page(
        self, page: ApprovalPage, user: str, entitlement: Entitlement
    ) -> dict[str, Any]:
        shown = [await self._shown(row, user, entitlement) for row in page.rows]
        return {"approvals": shown, "next": page.next}

    async def _shown(
        self, row: ApprovalRow, user: str, entitlement: Entitlement | None = None
    ) -> dict[str, Any]:
        entitlement, shown = entitlement or self.entitlement.read_once(), self._card(row)
        if row.approvers is None:
            return shown
        approved_by, is_open = row.approved_by, row.state == "requested"
        if is_open:
            entitled = await entitlement.entitled_among(row, approved_by)
            shown["missing"] = max(0, row.approvers.quorum - len(entitled))
        may_decide = is_open and await entitlement.may_decide(row, user)
        has_decided = decision_of(row.decisions, user) is not None
        shown["requester"] = row.key.user
        shown["mayDecide"] = may_decide and not has_decided
        for decision in shown["decisions"]:
            decision["at"] = iso_time(decision["at"])
        return shown

    def _card(self, row: ApprovalRow) -> dict[str, Any]:
        agent = row.agent or ""
        chat = ChatKey(row.key.app, row.key.user, row.key.chat)
        facts = self.survey.of_chat(chat).facts(name_in(agent), row.tool)
        has_begun = is_form(row.payload)
        is_of_node = row.key.call.startswith(NODE_CONFIRMATION)
        rememberable = facts.rememberable and not is_of_node and not has_begun
        shown: dict[str, Any] = {
            "approvalId": row.approval_id,
            "chatId": row.key.chat,
            "requester": row.key.user,
            "tool": row.tool,
            "agent": agent,
            "arguments": row.arguments,
            "state": row.state,
            "requestedAt": iso_time(row.requested_at),
            "expiresAt": iso_time(row.deadline),
            "editable": facts.editable and not has_begun,
            "rememberable": rememberable,
            "grantTtl": facts.grant_ttl,
            "decisions": _decisions(row),
        }
        if row.state == "unknown":
            shown["unknown"] = self.unknown.shown(row)
        schema = None if _is_declared_otherwise(row, facts) else facts.schema
        optional = {
            "hint": None if is_standard_hint(row.hint, row.tool) else row.hint,
            "title": facts.title,
            "toolMetadata": facts.metadata,
            "defaults": _defaults(row, schema),
            "schema": schema,
            "resolution": row.resolution,
            "changed": row.changed,
            "approved": row.answer,
            "reason": row.reason,
            "payload": seen_payload(row.payload),
            "payloadSchema": seen_schema(row.payload),
            "responseSchema": facts.respond,
            "preview": row.preview,
            "digest": None if row.preview is None else row.digest,
            **edits_of(row),
            **people_of(row),
            "remember": None if row.remember is None else row.remember.as_json(),
            "decidedBy": row.decided_by,
            "decidedAt": None if row.decided_at is None else iso_time(row.decided_at),
        }
        return shown | {name: value for name, value in optional.items() if value is not None}

    async def _row(self, approval_id: str, user: str, *, has_decided: bool = False) -> ApprovalRow:
        row = await self.inbox.find(self.app, user, approval_id)
        if row is None:
            row = await self.inbox.find_ruled(self.app, approval_id)
            if (
                row is not None
                and not has_decided
                and not await self.entitlement.may_see(row, user)
            ):
                row = None
        if row is None:
            raise Unknown("There is no such approval.")
        return row

    async def _chat(self, chat_id: str, user: str) -> ChatKey:
        chat = ChatKey(self.app, user, chat_id)
        if await self.chats.get(chat) is None:
            raise Unknown("There is no such chat.")
        return chat


def _only(body: Mapping[str, JsonValue], *names: str) -> dict[str, JsonValue]:
    return {name: body[name] for name in names if name in body}


def _continued(
    message_id: str, row: ApprovalRow, decision: PostedDecision
) -> PostedAssistantMessage:
    """A message that holds the decision alone."""
    part = PostedPart(f"tool-{row.tool}", row.key.call_id, "approval-responded", row.approval_id)
    return PostedAssistantMessage(id=message_id, parts=(part,), decisions=(decision,), outputs=())


def _message_of(log: ChatLog, row: ApprovalRow) -> str:
    """The id of the message that holds the approval request; raises RequestError."""
    for exchange in reversed(log.exchanges):
        if exchange.invocation == row.key.invocation:
            states = log.rebuild(exchange).buffer.calls.values()
            if any(
                s.request is not None and s.request.approval_id == row.approval_id for s in states
            ):
                return exchange.message_id
    if row.state == "superseded":
        raise Superseded
    raise Unknown("The chat of this approval has gone on without it.")


def _decisions(row: ApprovalRow) -> list[dict[str, Any]]:
    """The decisions of people on a request, in their order."""
    if row.answer is None or row.is_automatic or row.decided_at is None:
        return []
    said = {"by": row.decided_by or "", "at": iso_time(row.decided_at), "approved": row.answer}
    return [said if row.reason is None else said | {"reason": row.reason}]


def _defaults(
    row: ApprovalRow, schema: Mapping[str, JsonValue] | None
) -> dict[str, JsonValue] | None:
    """What the tool uses for the arguments that are left out, as the card shows it."""
    if schema is None or not isinstance(row.arguments, dict):
        return None
    return defaults_in(schema, row.arguments) or None


def _log_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        logger.warning("an approval was recorded, its turn waits: %s", describe(task.exception()))


def _is_declared_otherwise(row: ApprovalRow, facts: ToolFacts) -> bool:
    """Whether the tool of a request was declared otherwise than its facts say."""
    hashes = (row.definition_hash, facts.definition_hash)
    return None not in hashes and row.definition_hash != facts.definition_hash
