"""The agent of the conformance stories; every effect is appended to a file as a line.

``SLUICEGATE_EFFECTS`` names the file. A line is JSON with ``tool``, ``args``, ``chat`` (the session
id) and ``call`` (the function call id), and is on the disk before the tool returns.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from google.adk.agents.callback_context import CallbackContext
from google.adk.agents.llm_agent import LlmAgent
from google.adk.models.llm_request import LlmRequest
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.tool_context import ToolContext

from sluicegate.replay import ScriptedModel
from sluicegate.tools import Approvers, GatedCall, client_tool, gated

NAME = "conformance"
SECRET = "secret-8731"
SCENARIOS = Path(__file__).with_name("conformance.yaml")


def pay(amount: float, tool_context: ToolContext) -> dict[str, float]:
    """Pay an amount of money."""
    record_effect("pay", {"amount": amount}, tool_context)
    return {"paid": amount}


def pay_together(amount: float, tool_context: ToolContext) -> dict[str, float]:
    """Pay an amount of money; another person has to approve it too."""
    record_effect("pay_together", {"amount": amount}, tool_context)
    return {"paid": amount}


def pay_soon(amount: float, tool_context: ToolContext) -> dict[str, float]:
    """Pay an amount of money; the stories let its approvals expire soon."""
    record_effect("pay_soon", {"amount": amount}, tool_context)
    return {"paid": amount}


def search(query: str, tool_context: ToolContext) -> dict[str, Any]:
    """Search the database."""
    record_effect("search", {"query": query}, tool_context)
    return {"query": query, "rows": 10}


def update(rows: int, tool_context: ToolContext) -> dict[str, int]:
    """Update rows of the database."""
    record_effect("update", {"rows": rows}, tool_context)
    return {"updated": rows}


def notify(person: str, tool_context: ToolContext) -> dict[str, str]:
    """Notify a person."""
    record_effect("notify", {"person": person}, tool_context)
    return {"message": f"{person} was notified."}


def lookup(word: str, tool_context: ToolContext) -> dict[str, str]:
    """Look a word up."""
    record_effect("lookup", {"word": word}, tool_context)
    return {"word": word, "meaning": f"the meaning of {word}"}


def fails(reason: str, tool_context: ToolContext) -> dict[str, str]:
    """Fail after the effect, with a secret in the exception."""
    record_effect("fails", {"reason": reason}, tool_context)
    raise RuntimeError(f"{reason}: {SECRET}")


def ask_when_big(amount: float, tool_context: ToolContext) -> dict[str, float]:
    """Pay; amounts above 100 are asked for first."""
    record_effect("ask_when_big", {"amount": amount}, tool_context)
    return {"paid": amount}


def ask_dynamic(amount: float, tool_context: ToolContext) -> dict[str, Any]:
    """Pay; the tool itself asks, with a hint and a payload."""
    confirmation = tool_context.tool_confirmation
    if confirmation is None:
        hint = f"Shall {amount:g} be paid?"
        tool_context.request_confirmation(hint=hint, payload={"amount": amount})
        return {"status": "waiting"}
    if not confirmation.confirmed:
        return {"status": "refused"}
    record_effect("ask_dynamic", {"amount": amount}, tool_context)
    return {"paid": amount}


def ask_twice(amount: float, tool_context: ToolContext) -> dict[str, Any]:
    """Pay; the tool asks for the amount first, then for the payee."""
    confirmation = tool_context.tool_confirmation
    payload = (confirmation.payload if confirmation else None) or {}
    if "payee" in payload:
        record_effect("ask_twice", {"amount": amount, **payload}, tool_context)
        return {"paid": amount}
    asked = {"payee": "Ada"} if payload else {"amount": amount}
    tool_context.request_confirmation(hint=f"Is the {next(iter(asked))} right?", payload=asked)
    return {"status": "waiting"}


def is_held(chat: str, tool: str) -> bool:
    """Whether the model of a chat is paused, with or without a tool result."""
    folder = os.environ.get("SLUICEGATE_HOLDS")
    if folder is None:
        return False
    return any(Path(folder, name).exists() for name in (chat, f"{chat}.{tool}"))


async def wait_while_held(callback_context: CallbackContext, llm_request: LlmRequest) -> None:
    """Pause the model of a chat as long as its file, or that of the last result, exists."""
    results = [part.function_response for part in llm_request.contents[-1].parts or []]
    tool = next((result.name for result in results if result), None) or ""
    # Another process removes the file, and the standard library has no event for that.
    while is_held(callback_context.session.id, tool):  # noqa: ASYNC110
        await asyncio.sleep(0.01)


def _is_big(amount: float, tool_context: ToolContext) -> bool:
    # ADK passes the context to a predicate if the guarded function takes one.
    return amount > 100


def record_effect(tool: str, args: dict[str, Any], context: ToolContext) -> None:
    """Append an execution of a tool to the file, before the tool returns."""
    path = os.environ.get("SLUICEGATE_EFFECTS")
    if path:
        who = {"chat": context.session.id, "call": context.function_call_id}
        line = json.dumps({"tool": tool, "args": args, **who}) + "\n"
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            # One write per line keeps concurrent lines intact.
            os.write(file, line.encode())
            os.fsync(file)
        finally:
            os.close(file)


def _with_the_boss(call: GatedCall) -> Approvers:
    return Approvers(call.user, "boss", quorum=2)


def _gated(function: Callable[..., Any]) -> FunctionTool:
    return FunctionTool(function, require_confirmation=True)


_PLACE = {"type": "object", "properties": {"precise": {"type": "boolean"}}}

root_agent = LlmAgent(
    name=NAME,
    description="Plays the conformance stories.",
    model=ScriptedModel.from_file(SCENARIOS, root=NAME),
    before_model_callback=wait_while_held,
    tools=[
        _gated(pay),
        _gated(pay_soon),
        gated(pay_together, approvers=_with_the_boss),
        _gated(search),
        _gated(update),
        _gated(notify),
        _gated(fails),
        FunctionTool(lookup),
        FunctionTool(ask_when_big, require_confirmation=_is_big),
        FunctionTool(ask_dynamic),
        FunctionTool(ask_twice),
        client_tool("locate", "Ask the browser for the place.", _PLACE),
        client_tool(
            "locate_gated",
            "Ask the browser for the exact place.",
            _PLACE,
            require_confirmation=True,
        ),
    ],
)
