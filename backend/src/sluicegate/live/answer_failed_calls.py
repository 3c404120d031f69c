"""Answers the calls of a live run that end without a result.

ADK logs what a callback of the user, or the ledger, raises at such a call, and leaves it open.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from sluicegate.adk_private import background_tasks, delegation_mode, invocation_of
from sluicegate.core.call_keys import CallKey
from sluicegate.core.closed_approval_outcomes import OUTCOME_UNKNOWN
from sluicegate.core.signals import NOT_FINISHED
from sluicegate.engine.agents.inline_agent_tools import InlineAgentTool
from sluicegate.errors import StoreError

if TYPE_CHECKING:
    from google.adk.tools.base_tool import BaseTool
    from google.adk.tools.tool_context import ToolContext

    from sluicegate.live.context import LiveContext
    from sluicegate.live.event_router import EventRouter
    from sluicegate.live.run import LiveRun

NOT_STARTED: Final = "it could not be started."


def _delegates(tool: BaseTool) -> bool:
    return isinstance(tool, InlineAgentTool) or delegation_mode(tool) is not None


class FailedCalls:
    """The calls of a run that run beside its receiving loop, until they have a result."""

    def __init__(self, context: LiveContext, run: LiveRun, router: EventRouter) -> None:
        self._context = context
        self._run = run
        self._router = router

    def watch(self, tool: BaseTool, context: ToolContext) -> None:
        """Answer a call when its task ends, if it has no result then."""
        # ADK: the task of a call logs what a callback raises, and ends without a result.
        call_id = context.function_call_id or ""
        task = background_tasks(invocation_of(context)).get(call_id)
        if task is not None and not _delegates(tool):
            task.add_done_callback(partial(self._task_ended, call_id))

    def _task_ended(self, call_id: str, task: asyncio.Task[Any]) -> None:
        exchange = self._router.exchange_of(call_id)
        # What cancels a call stores its result; a client-side call waits for the browser.
        if task.cancelled() or exchange is None or exchange.open_calls.get(call_id) != "running":
            return
        self._context.spawn(self._answer(call_id))

    async def _answer(self, call_id: str) -> None:
        while not self._run.is_over:
            # A store that is not available is written later.
            with suppress(StoreError):
                result = await self._run.store_result(call_id, await self._response(call_id))
                if result is not None:
                    self._run.send_results(result)
                return
            await asyncio.sleep(self._context.timings.approval_poll)

    async def _response(self, call_id: str) -> dict[str, Any]:
        """Close the approval of a call; returns the response for the model."""
        ledger, outcomes = self._context.resources.ledger, self._run.records.outcomes
        first = CallKey(*self._context.chat, self._run.invocation, call_id)
        rows = await ledger.rows(self._context.chat)
        keys = [row.key for row in rows if row.key.with_request_number(1) == first]
        key = max(keys, key=lambda each: each.request_number, default=first)
        await ledger.refuse(key, NOT_STARTED)
        for row in await ledger.supersede([key]):
            if row.state in ("executed", "failed"):
                return outcomes.stored(call_id, row)
            if row.state in ("executing", "unknown"):
                return outcomes.not_run(call_id, OUTCOME_UNKNOWN)
            return outcomes.closed(call_id, row)
        return outcomes.not_run(call_id, NOT_FINISHED.text)
