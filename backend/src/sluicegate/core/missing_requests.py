"""Calls whose approval was requested, and those that ask again, as the log shows them.

ADK makes no request for a call that it resumes: its response names the confirmation in the actions
of the event, and the engine makes the request before the next model call of the agent. A crash may
come between the two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluicegate.core.event_reading import (
    CONFIRMATION,
    adk_calls_of,
    attribute,
    responses_of,
    text,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from google.adk.events.event import Event


def requested_calls(events: Iterable[Event]) -> set[str]:
    """The ids of the calls whose approval ADK has requested."""
    return {
        text(attribute(call, "args", "originalFunctionCall"), "id")
        for event in events
        for call in adk_calls_of(event)
        if text(call, "name") == CONFIRMATION
    }


def calls_without_request(events: Iterable[Event]) -> dict[str, Event]:
    """The calls that ask again and whose request is not stored, by id, with their response.

    ``events`` are those of one invocation, oldest first.
    """
    of_confirmation: dict[str, str] = {}
    approved: set[str] = set()
    found: dict[str, Event] = {}
    for event in events:
        for call in adk_calls_of(event):
            if text(call, "name") == CONFIRMATION:
                call_id = text(attribute(call, "args", "originalFunctionCall"), "id")
                of_confirmation[text(call, "id")] = call_id
                approved.discard(call_id)
                found.pop(call_id, None)
        requested = attribute(event, "actions", "requested_tool_confirmations") or {}
        for response in responses_of(event):
            response_id = text(response, "id")
            if response_id in of_confirmation and text(event, "author") == "user":
                if attribute(response, "response", "confirmed") is True:
                    approved.add(of_confirmation[response_id])
            elif response_id in approved:
                approved.discard(response_id)
                if response_id in requested:
                    found[response_id] = event
            else:
                # Its end, also when it was closed in place of the request.
                found.pop(response_id, None)
    return found
