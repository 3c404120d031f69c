"""The gate as an ADK plugin: first in the list, the same for every turn and every transport."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from google.adk.events.event import Event
from google.adk.plugins.base_plugin import BasePlugin

from sluicegate.core.exchanges import METADATA_KEY
from sluicegate.engine.turn_gate import CURRENT, STOPPED

if TYPE_CHECKING:
    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.tools.base_tool import BaseTool
    from google.adk.tools.tool_context import ToolContext

PUBLIC_FAILURE = "The agent could not finish its answer."


class GatePlugin(BasePlugin):
    """Hands tool calls to the gate of the turn that runs, and notes on events how calls ended."""

    def __init__(self) -> None:
        super().__init__(name="sluicegate")

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext
    ) -> dict[str, Any] | None:
        """Claim an approved call immediately before its effect, or answer it (A1)."""
        turn = CURRENT.get()
        return None if turn is None else await turn.before(tool, tool_args, tool_context)

    async def after_tool_callback(
        self,
        *,
        tool: BaseTool,
        tool_args: dict[str, Any],
        tool_context: ToolContext,
        result: dict[str, Any],
    ) -> dict[str, Any] | None:
        """Store the outcome of a claimed call."""
        turn = CURRENT.get()
        return None if turn is None else await turn.after(tool, tool_context, result)

    async def on_tool_error_callback(
        self,
        *,
        tool: BaseTool,
        tool_args: dict[str, Any],
        tool_context: ToolContext,
        error: Exception,
    ) -> dict[str, Any] | None:
        """Answer a failed call with a safe sentence; the turn goes on (T8)."""
        turn = CURRENT.get()
        return None if turn is None else await turn.failed(tool_context, error)

    async def on_event_callback(
        self, *, invocation_context: InvocationContext, event: Event
    ) -> Event | None:
        """Note how calls ended, and keep a failure's own words out of the session (T8, T10)."""
        turn = CURRENT.get()
        if turn is None or event.partial:
            return None
        changes: dict[str, Any] = {}
        aborted = event.error_code == "INVOCATION_ABORTED"
        if event.error_message and not aborted:
            changes["error_message"] = PUBLIC_FAILURE
        answered = [response.id or "" for response in event.get_function_responses()]
        if aborted:
            for call_id in answered:
                turn.outcomes.setdefault(call_id, {"kind": "error", "text": STOPPED})
        outcomes = {i: turn.outcomes[i] for i in answered if i in turn.outcomes}
        if outcomes:
            metadata = dict(event.custom_metadata or {})
            metadata[METADATA_KEY] = {**metadata.get(METADATA_KEY, {}), "outcomes": outcomes}
            changes["custom_metadata"] = metadata
        return Event(author=event.author, **changes) if changes else None
