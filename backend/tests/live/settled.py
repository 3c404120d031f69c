"""What holds after every live run, however it has ended: no part of its chat is left running."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

_STREAMING = ("streaming", "input-streaming")
_RUNNING = (*_STREAMING, "input-available")
_PENDING = ("approval-requested", "approval-responded")


def running_parts(chat: dict[str, Any], client_tools: Collection[str] = ()) -> list[str]:
    """The parts of a stored chat that claim that something runs, or waits, which does not.

    A call of the last message may wait for a decision, and the results of others are held until
    then; or it may wait for its result in the browser.
    """
    found: list[str] = []
    for message in chat["messages"]:
        is_open = chat["status"] == "waiting" and message is chat["messages"][-1]
        is_held = any(part.get("state") in _PENDING for part in message["parts"])
        for part in message["parts"]:
            kind, state = part["type"], part.get("state")
            waits = is_held or kind.removeprefix("tool-") in client_tools
            is_running = state in _RUNNING or state in _PENDING
            if is_running and not (is_open and waits and state not in _STREAMING):
                found.append(f"{kind} of {message['id']} is {state}")
    return found
