"""`gated` makes a tool that requires approval, with the terms of its approvals (A9)."""

from __future__ import annotations

import copy
import inspect
from typing import TYPE_CHECKING, Any, Unpack

from google.adk.tools.base_tool import BaseTool
from google.adk.tools.function_tool import FunctionTool

from sluicegate.adk_private import (
    confirmation_setting,
    keeps_confirmation_setting,
    set_confirmation,
)
from sluicegate.errors import ConfigurationError
from sluicegate.tools.approval_terms import (
    TERMS_KEY,
    ApprovalTermOptions,
    ApprovalTerms,
    checked_terms,
)
from sluicegate.tools.client_tools import ClientTool

if TYPE_CHECKING:
    from collections.abc import Callable

    from google.adk.tools.tool_context import ToolContext


def gated(
    tool: BaseTool | Callable[..., Any],
    *,
    require_confirmation: bool | Callable[..., bool] = True,
    **terms: Unpack[ApprovalTermOptions],
) -> BaseTool:
    """Make a tool that requires approval, and declare the terms of its approvals.

    A tool is copied and stays unchanged; a function becomes a function tool. A tool that decides
    by itself when it requires approval continues to do so.

    Args:
        tool: A tool, or a function as ADK accepts it.
        require_confirmation: As in ADK: always, or a function of the arguments. False leaves it to
            the tool, which requests approval in its own code.
        **terms: ``editable``: the approver may change the arguments (A7). ``rememberable``: the
            approver may grant later calls in the chat (A8). ``idempotent``: the tool may run again
            with the same key after a crash. ``find``: looks up the outcome of a call by its key
            (A9). ``expires``: seconds an approval stays open (A5). ``by_voice``: the phrase that
            approves a call when it is spoken in a live chat. ``approvers``: the user ids and
            `Role`s that decide in place of the user of the chat, or a function of the `GatedCall`
            that returns them (also async), or None for that user. ``quorum``: how many of them have
            to approve. ``requester_may_approve``: the user of the chat counts, if named. ``veto``:
            one denial ends it. ``remind_after``: seconds until a reminder. ``then``: ``"deny"``
            tells the model that an expired request was denied. ``respond``: a JSON schema, a
            pydantic model or a type: the approver may answer in place of the tool, with a value of
            it.
            ``preview``: a function of the `GatedCall`, also async, that returns what the call would
            do without doing it: a text, the rows of a table, a `Diff`, an `Image`, or a `Preview`
            of one of them with its version. It runs before the approval is requested and again
            before the claim; if it returns something else then, the call does not run.

    Raises:
        ConfigurationError: The tool runs in the browser, or the terms are not valid.
    """
    checked = checked_terms(ApprovalTerms(**terms))
    if isinstance(tool, ClientTool):
        raise ConfigurationError(
            f"The tool {tool.name!r} runs in the browser; "
            "declare its approval with client_tool(..., require_confirmation=True)."
        )
    if isinstance(tool, BaseTool):
        result = copy.copy(tool)
        if require_confirmation:
            _require_confirmation(result, when=require_confirmation)
    else:
        result = FunctionTool(tool, require_confirmation=require_confirmation)
    result.custom_metadata = {**(result.custom_metadata or {}), TERMS_KEY: checked}
    return result


def asking_first(tool: BaseTool) -> BaseTool:
    """Return a copy of a tool that requires approval, unless its author has set the condition."""
    result = copy.copy(tool)
    _require_confirmation(result, when=True)
    return result


def _require_confirmation(tool: BaseTool, *, when: bool | Callable[..., bool]) -> None:
    """Make ADK request confirmation for a tool, unless its author has set the condition already."""
    if keeps_confirmation_setting(tool):
        set_confirmation(tool, when=confirmation_setting(tool) or when)
        return
    if type(tool).check_require_confirmation is not BaseTool.check_require_confirmation:
        return

    async def check(args: dict[str, Any], tool_context: ToolContext) -> bool:
        required: Any = when(**args) if callable(when) else when
        # ADK: it runs the call without confirmation for every value other than True.
        return bool(await required if inspect.isawaitable(required) else required)

    vars(tool)["check_require_confirmation"] = check
    set_confirmation(tool, when=when)
