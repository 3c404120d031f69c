"""Runs a call again whose outcome is unknown, because a person says so (A5, A9)."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import logging
import secrets
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.invocation_context import InvocationContext
from google.adk.agents.llm_agent import LlmAgent
from google.adk.agents.readonly_context import ReadonlyContext
from google.adk.tools.tool_confirmation import ToolConfirmation
from google.adk.tools.tool_context import ToolContext

from sluicegate.engine.agents.tool_definitions import definition_of
from sluicegate.engine.agents.tree_walk import name_in
from sluicegate.engine.describe_exceptions import describe
from sluicegate.engine.guard.call_responses import approval_from, outcome_with_edits
from sluicegate.engine.turn.chat_owners import turn_owner
from sluicegate.errors import NotIdempotent, StoreError, ToolError, new_error_id
from sluicegate.media.result_files import ResultFiles
from sluicegate.tools.gated import GatedCall, set_approval, terms_of

if TYPE_CHECKING:
    from google.adk.runners import Runner
    from google.adk.tools.base_tool import BaseTool
    from pydantic import JsonValue

    from sluicegate.core.approvals import ApprovalRow
    from sluicegate.engine.options import EngineOptions
    from sluicegate.engine.turn.leases import ChatLeases
    from sluicegate.engine.turn.session_log import SessionLog
    from sluicegate.media.chat_files import ChatFiles
    from sluicegate.stores.approvals.ledger import Ledger
    from sluicegate.stores.approvals.resolutions import Resolver
    from sluicegate.tools.gated import Policy

logger = logging.getLogger("sluicegate")

_GONE: Final = (
    "This call cannot run again: its agent has no such tool any more, or another one. Check what "
    "happened, and say whether it took effect."
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
    options: EngineOptions
    patience: float
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def __call__(self, row: ApprovalRow, by: Resolver) -> bool:
        """Claim an unknown call and run it; False when the outcome is known, or it runs.

        Raises:
            NotIdempotent: the tool may not run twice, is gone or is another one, or the policy
                forbids the call.
            HeldElsewhere: a turn runs on the chat.
        """
        chat = row.key.chat_key
        owner = turn_owner(f"again-{secrets.token_hex(8)}")
        fence = await self.leases.acquire(chat, owner)
        task: asyncio.Task[None] | None = None
        try:
            tool, context = await self._prepare(row)
            await self._check(row, by)
            if await self.ledger.resolutions.claim(row.key, owner=owner, by=by):
                task = asyncio.create_task(self._run(row, tool, context, owner, fence))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
        finally:
            if task is None:
                await self.leases.release(chat, owner, fence)
        if task is not None:
            await asyncio.wait([task], timeout=self.patience)
        return task is not None

    async def close(self) -> None:
        """Cancel the calls that still run; their outcome is unknown again."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _prepare(self, row: ApprovalRow) -> tuple[BaseTool, ToolContext]:
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
        set_approval(context, replace(approval_from(row), is_repeated=True))
        return tool, context

    async def _check(self, row: ApprovalRow, by: Resolver) -> None:
        """Evaluate the policy for the person who wants the call to run again."""
        if self.policy is None:
            return
        call = GatedCall(
            *row.key.chat_key,
            tool=row.tool,
            arguments=_arguments(row),
            approval=approval_from(row),
        )
        try:
            verdict = await self.policy(call, by.user)
        except Exception as error:  # noqa: BLE001 - it is the user's and may raise anything
            error_id = _log(row, error)
            verdict = f"Whether this is allowed could not be checked (error {error_id})."
        if verdict is not True:
            said = isinstance(verdict, str) and verdict
            raise NotIdempotent(f"The call may not run again: {said or 'it is not allowed.'}")

    async def _run(
        self, row: ApprovalRow, tool: BaseTool, context: ToolContext, owner: str, fence: int
    ) -> None:
        chat = row.key.chat_key
        renewing = asyncio.create_task(self.leases.keep_renewed(chat, owner, fence))
        try:
            outcome, error = await self._outcome(row, tool, context)
            await self.ledger.store_outcome(
                row.key,
                owner=owner,
                state="executed" if error is None else "failed",
                outcome=outcome if error is None else {"status": "error", "error": error},
            )
        except StoreError as lost:
            logger.warning("an outcome was not stored chat=%s: %s", chat.chat, lost)
        finally:
            renewing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await renewing
            await self.leases.release(chat, owner, fence)

    async def _outcome(
        self, row: ApprovalRow, tool: BaseTool, context: ToolContext
    ) -> tuple[JsonValue, str | None]:
        """Run the tool; returns its outcome, or why it failed."""
        try:
            async with asyncio.timeout(self.options.tool_timeout):
                result: Any = await tool.run_async(args=_arguments(row), tool_context=context)
        except ToolError as error:
            return None, str(error)
        except Exception as error:  # noqa: BLE001 - it is the user's and may raise anything
            return None, f"The tool failed (error {_log(row, error)})."
        files = ResultFiles(self.files, row.key.chat_key, self.options.result_limits)
        outcome, _ = await files.outcome_of(result, is_claimed=True)
        if isinstance(row.edits, dict):
            outcome = outcome_with_edits(outcome, row.edits)
        return outcome, None


def _arguments(row: ApprovalRow) -> dict[str, Any]:
    approved = row.edits if isinstance(row.edits, dict) else row.arguments
    return copy.deepcopy(approved) if isinstance(approved, dict) else {}


def _log(row: ApprovalRow, error: BaseException) -> str:
    error_id = new_error_id()
    said = describe(error, with_text=True)
    logger.error("a call that ran again failed tool=%s error=%s %s", row.tool, error_id, said)
    return error_id
