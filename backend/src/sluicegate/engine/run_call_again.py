"""Runs a call again whose outcome is unknown, because a person says so (A5, A9)."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import logging
import secrets
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.invocation_context import InvocationContext
from google.adk.agents.llm_agent import LlmAgent
from google.adk.agents.readonly_context import ReadonlyContext
from google.adk.tools.tool_confirmation import ToolConfirmation
from google.adk.tools.tool_context import ToolContext

from sluicegate.engine.agents.agent_tree import name_in
from sluicegate.engine.agents.tool_declarations import definition_of
from sluicegate.engine.describe_exceptions import describe
from sluicegate.engine.guard.call_responses import Outcomes
from sluicegate.engine.guard.claims import ApprovedCalls, ToolCall
from sluicegate.engine.guard.running_claims import RunningClaims
from sluicegate.engine.turn.lease_owner_ids import turn_owner
from sluicegate.errors import NotIdempotent, StoreError, ToolError, new_error_id
from sluicegate.media.replace_files_by_references import ResultFiles
from sluicegate.tools.approval_terms import terms_of

if TYPE_CHECKING:
    from google.adk.runners import Runner

    from sluicegate.core.approvals import ApprovalRow, Resolver
    from sluicegate.core.chat_and_turn_keys import ChatKey
    from sluicegate.engine.entitlement import Entitlement
    from sluicegate.engine.guard.compute_previews import Previews
    from sluicegate.engine.options import EngineOptions
    from sluicegate.engine.turn.chat_leases import ChatLeases
    from sluicegate.engine.turn.session_log import SessionLog
    from sluicegate.media.chat_files import ChatFiles
    from sluicegate.stores.approvals.ledger import Ledger
    from sluicegate.tools.approval_terms import Policy

logger = logging.getLogger("sluicegate")

_GONE: Final = (
    "This call cannot run again: its agent has no such tool any more, or another one. Check what "
    "happened, and say whether it took effect."
)


_ASKED: Final = (
    "The tool did not run: it asked for another approval. Ask the agent for this call again."
)


@dataclass(frozen=True, slots=True)
class RunAgain:
    """Runs calls again, outside of turns: the model gets nothing.

    The lease of the chat is held meanwhile, so that no turn runs on it. Changes that the tool makes
    to the state of the session are not stored. ``patience`` is in seconds: the caller is answered
    after them although the tool still runs.
    """

    runner: Runner
    ledger: Ledger
    leases: ChatLeases
    log: SessionLog
    files: ChatFiles
    policy: Policy | None
    entitlement: Entitlement
    previews: Previews | None
    options: EngineOptions
    patience: float
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def __call__(self, row: ApprovalRow, by: Resolver) -> None:
        """Claim an unknown call and run it.

        Raises:
            NotIdempotent: the tool may not run twice, is gone or is another one, the policy
                forbids the call, or its approvals no longer count.
            AlreadyDecided: the outcome is known, or the call runs.
            HeldByAnotherOwner: a turn runs on the chat.
        """
        chat = row.key.chat_key
        owner = turn_owner(f"again-{secrets.token_hex(8)}")
        fence = await self.leases.acquire(chat, owner)
        task: asyncio.Task[None] | None = None
        try:
            call = await self._prepare(row)
            approved = self._approved_calls(row, owner)
            refusal = await approved.claim_again(call, row, by)
            if refusal is not None:
                raise NotIdempotent(f"The call may not run again: {refusal}")
            task = asyncio.create_task(self._run(chat, call, approved, fence))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        finally:
            if task is None:
                await self.leases.release(chat, owner, fence)
        await asyncio.wait([task], timeout=self.patience)

    async def close(self) -> None:
        """Cancel the calls that still run; their outcome is unknown again."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _approved_calls(self, row: ApprovalRow, owner: str) -> ApprovedCalls:
        """What claims the call and stores its outcome, as in a turn."""
        return ApprovedCalls(
            chat=row.key.chat_key,
            owner=owner,
            ledger=self.ledger,
            claims=RunningClaims(self.options.tool_timeout, lambda: None),
            outcomes=Outcomes(),
            policy=self.policy,
            report=partial(_report, row.tool),
            entitlement=self.entitlement,
            previews=self.previews,
        )

    async def _prepare(self, row: ApprovalRow) -> ToolCall:
        """Return the call with the arguments of its request."""
        root = self.runner.agent
        agent = root.find_agent(name_in(row.agent or "")) if isinstance(root, BaseAgent) else None
        session = await self.log.load(row.key.chat_key)
        if not isinstance(agent, LlmAgent) or session is None:
            raise NotIdempotent(_GONE)
        run = InvocationContext(
            invocation_id=row.key.invocation,
            agent=agent,
            session=session,
            session_service=self.runner.session_service,
            artifact_service=self.runner.artifact_service,
        )
        tools = await agent.canonical_tools(ReadonlyContext(run))
        tool = next((each for each in tools if each.name == row.tool), None)
        definition = None if tool is None else definition_of(tool)
        if tool is None or definition is None or definition.digest != row.definition_hash:
            raise NotIdempotent(_GONE)
        if not terms_of(tool).idempotent:
            raise NotIdempotent
        confirmation = ToolConfirmation(
            hint=row.hint or "", confirmed=True, payload=copy.deepcopy(row.approved_payload)
        )
        context = ToolContext(run, function_call_id=row.key.call_id, tool_confirmation=confirmation)
        arguments = copy.deepcopy(row.arguments) if isinstance(row.arguments, dict) else {}
        return ToolCall(row.key.call, tool, arguments, context)

    async def _run(
        self, chat: ChatKey, call: ToolCall, approved: ApprovedCalls, fence: int
    ) -> None:
        renewing = asyncio.create_task(self.leases.keep_renewed(chat, approved.owner, fence))
        try:
            await self._store_outcome(chat, call, approved)
        except StoreError as lost:
            logger.warning("an outcome was not stored chat=%s: %s", chat.chat, lost)
        finally:
            renewing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await renewing
            await self.leases.release(chat, approved.owner, fence)

    async def _store_outcome(self, chat: ChatKey, call: ToolCall, approved: ApprovedCalls) -> None:
        """Run the tool and store its outcome, or why it failed."""
        try:
            async with asyncio.timeout(self.options.tool_timeout):
                result: Any = await call.tool.run_async(
                    args=call.arguments, tool_context=call.context
                )
            if call.context.actions.requested_tool_confirmations:
                # No turn runs that could make the request.
                raise ToolError(_ASKED)
        except asyncio.CancelledError:
            approved.claims.end(call.name, interrupted=True)
            raise
        except Exception as error:  # noqa: BLE001 - it is the user's and may raise anything
            sentence = str(error)
            if not isinstance(error, ToolError):
                sentence = f"The tool failed (error {_report(call.tool.name, error)})."
            response = {"status": "error", "error": sentence}
            await approved.store_failure(call.name, response, call.context)
            return
        files = ResultFiles(self.files, chat, self.options.result_limits)
        outcome, shown = await files.outcome_of(result, is_claimed=True)
        outcome, _ = approved.with_edits(call.name, outcome, shown, result)
        await approved.store_outcome(call.name, outcome, call.context)


def _report(tool: str, error: BaseException) -> str:
    error_id = new_error_id()
    said = describe(error, with_text=True)
    logger.error("a call that ran again failed tool=%s error=%s %s", tool, error_id, said)
    return error_id
