"""Agents whose tool supports look-up after a crash, may run again (A9), or asks more than once.

The effect of a call is a line with its key in the file that ``SLUICEGATE_EFFECTS`` names.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from google.adk.agents.llm_agent import LlmAgent
from google.adk.tools.tool_context import ToolContext

from sluicegate.tools import approval_of, gated
from tests.engine.stage import calls, says, scripted


def _effects() -> Path:
    return Path(os.environ["SLUICEGATE_EFFECTS"])


async def pay(amount: int, tool_context: ToolContext) -> dict[str, int]:
    """Pay, once for each key."""
    approval = approval_of(tool_context)
    assert approval is not None
    if approval.key not in _effects().read_text():
        with _effects().open("a") as file:
            file.write(f"{approval.key}\n")
    return {"paid": amount}


async def find(key: str) -> dict[str, int] | None:
    """Return the outcome of a call."""
    return {"paid": 5} if key in _effects().read_text() else None


def pay_when_asked_twice(amount: int, tool_context: ToolContext) -> dict[str, int]:
    """Pay, after two questions."""
    confirmation = tool_context.tool_confirmation
    step = ((confirmation.payload if confirmation else None) or {}).get("step", 0)
    if step < 2:
        tool_context.request_confirmation(hint="Sure?", payload={"step": step + 1})
        return {"waits": step}
    approval = approval_of(tool_context)
    assert approval is not None
    with _effects().open("a") as file:
        file.write(f"{approval.key}\n")
    return {"paid": amount}


def _agent(**terms: Any) -> LlmAgent:
    return scripted([calls(("pay", {"amount": 5})), says("done")], [gated(pay, **terms)])


AGENTS = {
    "idempotent": _agent(idempotent=True),
    "find": _agent(find=find),
    "asks twice": scripted(
        [calls(("pay_when_asked_twice", {"amount": 5})), says("done")], [pay_when_asked_twice]
    ),
}
