"""Whether a tool requires approval, and why."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from sluicegate.adk_private import confirmation_setting
from sluicegate.engine.agents.code_inspection import find_name
from sluicegate.engine.agents.tool_declarations import is_of_mcp_server
from sluicegate.tools.client_tools import ClientTool, GatedClientTool
from sluicegate.tools.function_tools import TypedTool
from sluicegate.tools.tools_from_declarations import HandledTool

if TYPE_CHECKING:
    from google.adk.tools.base_tool import BaseTool
    from google.adk.tools.base_toolset import BaseToolset

    from sluicegate.core.tool_facts import ToolKind

REQUEST: Final = "request_confirmation"
"""The method of ADK's ToolContext by which running code requests an approval."""

Condition: TypeAlias = Literal["never", "sometimes", "always"]
"""When ADK requests an approval of a tool's calls."""

_GENERIC_CLASSES: Final = frozenset({"BaseTool", "FunctionTool", "McpTool", "object", "ABC"})
"""Classes whose own code requests an approval only if ``require_confirmation`` is set."""


@dataclass(frozen=True, slots=True)
class ToolNames:
    """The settings that name tools, as the model calls them.

    ``gate_mcp``: tools of MCP servers require approval, except ``ungated_mcp_tools``.
    """

    dynamic_gates: Collection[str] = ()
    never_gates: Collection[str] = ()
    client_tools: Collection[str] = ()
    rememberable_tools: Collection[str] = ()
    gate_mcp: bool = False
    ungated_mcp_tools: Collection[str] = ()

    def gates(self, tool: BaseTool, name: str) -> bool:
        """Whether a tool of an MCP server, called by a name, requires approval for that reason."""
        exceptions = {*self.ungated_mcp_tools, *self.never_gates}
        return self.gate_mcp and is_of_mcp_server(tool) and name not in exceptions


NO_NAMES: Final = ToolNames()


@dataclass(frozen=True, slots=True)
class ApprovalRequirement:
    """Whether a tool requires approval: ``kind`` for the wire, ``when`` ADK requests it, and why.

    They differ for ``never_gates``: the kind is ``free``, but ADK still requests approvals for a
    tool that declares ``require_confirmation=True``, and the engine handles them as unforeseen.
    """

    kind: ToolKind
    when: Condition
    why: str = ""


def requirement_of(
    tool: BaseTool, names: ToolNames, *, inherited: ApprovalRequirement | None = None
) -> ApprovalRequirement:
    """Return whether a tool requires approval before it runs.

    ``inherited`` comes from the tool's surroundings: the confirmation setting of its toolset, or a
    callback of its agent that names ``request_confirmation``.
    """
    when, why = _own_requirement(tool)
    if when == "never" and inherited is not None:
        when, why = inherited.when, inherited.why
    if when == "never" and names.gates(tool, tool.name):
        when, why = "always", "It belongs to an MCP server, and the setting gate_mcp is on."
    if when == "never" and tool.name in names.dynamic_gates:
        when, why = "sometimes", "The setting dynamic_gates names it."
    if isinstance(tool, ClientTool) or tool.name in names.client_tools:
        return ApprovalRequirement("gated-client" if when != "never" else "client", when, why)
    if when == "never" or tool.name in names.never_gates:
        return ApprovalRequirement("free", when, why)
    return ApprovalRequirement("gated" if when == "always" else "conditional", when, why)


def toolset_requirement(toolset: BaseToolset) -> ApprovalRequirement | None:
    """Return the requirement from a toolset's confirmation setting (``McpToolset``), if any."""
    when, _ = _setting(toolset)
    name = type(toolset).__name__
    if when == "always":
        why = f"Its toolset {name} sets require_confirmation=True."
        return ApprovalRequirement("gated", when, why)
    if when == "sometimes":
        return ApprovalRequirement("conditional", when, f"Its toolset {name} decides per call.")
    return None


def callback_requirement(callbacks: Iterator[object], owner: str) -> ApprovalRequirement | None:
    """Return the requirement from tool callbacks that name ``request_confirmation``, if any."""
    for callback in callbacks:
        where = find_name(callback, REQUEST)
        if where is not None:
            why = f"{owner} names {REQUEST} in {where}."
            return ApprovalRequirement("conditional", "sometimes", why)
    return None


def _own_requirement(tool: BaseTool) -> tuple[Condition, str]:
    if isinstance(tool, ClientTool):
        gated = isinstance(tool, GatedClientTool)
        return ("always", "It declares require_confirmation=True.") if gated else ("never", "")
    when, why = _setting(tool)
    if when != "never":
        return when, why
    if _overrides_check(tool):
        return "sometimes", f"Its class {type(tool).__name__} overrides check_require_confirmation."
    where = next(filter(None, (find_name(code, REQUEST) for code in _code(tool))), None)
    if where is not None:
        return "sometimes", f"Its code names {REQUEST} in {where}."
    return "never", ""


def _setting(owner: BaseTool | BaseToolset) -> tuple[Condition, str]:
    setting = confirmation_setting(owner)
    if callable(setting):
        where = getattr(setting, "__name__", type(setting).__name__)
        return "sometimes", f"Its require_confirmation is decided per call by {where}."
    return ("always", "It declares require_confirmation=True.") if setting else ("never", "")


def _overrides_check(tool: BaseTool) -> bool:
    if "check_require_confirmation" in vars(tool):
        return True
    owner = next(base for base in type(tool).__mro__ if "check_require_confirmation" in vars(base))
    if owner in (TypedTool, HandledTool):
        return False
    return not (owner.__name__ in _GENERIC_CLASSES and owner.__module__.startswith("google.adk."))


def _code(tool: BaseTool) -> Iterator[object]:
    """Yield the code that a call runs: the tool's function, its class, callables it holds."""
    yield getattr(tool, "func", None)
    for base in type(tool).__mro__:
        if base.__name__ not in _GENERIC_CLASSES:
            for member in list(vars(base).values()):
                yield getattr(member, "__func__", member)
    for name, value in list(vars(tool).items()):
        if name != "func" and isinstance(value, Callable | functools.partial):  # type: ignore[arg-type]
            yield value
