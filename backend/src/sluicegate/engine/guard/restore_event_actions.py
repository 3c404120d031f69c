"""What a call does beside its result: the actions of ADK's event.

A process may die between the outcome in the ledger and ADK's event, which stores both together.
The call does not run again, so the ledger has its actions too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from google.adk.sessions.state import State

from sluicegate.core.json_values import json_safe

if TYPE_CHECKING:
    from google.adk.tools.tool_context import ToolContext
    from pydantic import JsonValue

_FLAGS: Final = ("escalate", "skip_summarization", "transfer_to_agent")


def actions_of(context: ToolContext) -> JsonValue:
    """Return the actions of a call as JSON; None if it has none.

    Values of the state for one run alone (``temp:``) are not among them.
    """
    actions = context.actions
    state = {
        key: value
        for key, value in actions.state_delta.items()
        if not key.startswith(State.TEMP_PREFIX)
    }
    found: dict[str, Any] = {
        "state_delta": state,
        "artifact_delta": actions.artifact_delta,
        **{name: getattr(actions, name) for name in _FLAGS},
    }
    return json_safe({name: value for name, value in found.items() if value}) or None


def restore_actions(context: ToolContext, stored: JsonValue) -> None:
    """Give a call that has run earlier the actions that it had."""
    if not isinstance(stored, dict):
        return
    found: dict[str, Any] = dict(stored)
    context.state.update(found.get("state_delta", {}))
    context.actions.artifact_delta.update(found.get("artifact_delta", {}))
    for name in _FLAGS:
        if name in found:
            setattr(context.actions, name, found[name])
