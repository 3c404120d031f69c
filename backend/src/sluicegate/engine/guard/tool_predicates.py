"""Predicates with which code of the user decides for each call whether it requires an approval."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from sluicegate.adk_private import confirmation_setting

if TYPE_CHECKING:
    from google.adk.tools.base_tool import BaseTool

    from sluicegate.engine.guard.claims import ToolCall


def has_predicate(tool: BaseTool) -> bool:
    """Whether code of the user decides per call if a tool requires an approval."""
    if callable(confirmation_setting(tool)):
        return True
    owner = next(cls for cls in type(tool).__mro__ if "check_require_confirmation" in vars(cls))
    return not owner.__module__.startswith(("google.adk.", "sluicegate."))


async def requires_approval(call: ToolCall) -> bool:
    """Whether ADK would request an approval of a call."""
    try:
        arguments = copy.deepcopy(call.arguments)
        required = await call.tool.check_require_confirmation(arguments, call.context)
    except Exception:  # noqa: BLE001 - a predicate is the user's and may raise anything;
        # ADK calls it next and takes what it raises for a failure of the tool (T8).
        return False
    return required is True
