"""The functions of an application that the engine calls."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from google.adk.tools.base_tool import BaseTool
from google.adk.tools.base_toolset import BaseToolset

if TYPE_CHECKING:
    from sluicegate.tools.approval_terms import Policy

_ToolsOfAgent: TypeAlias = Sequence[Callable[..., Any] | BaseTool | BaseToolset]
_ToolsOfChat: TypeAlias = _ToolsOfAgent | Mapping[str, _ToolsOfAgent]
ToolsFor: TypeAlias = Callable[[str, str], _ToolsOfChat | Awaitable[_ToolsOfChat]]
"""A function of the user's id and the chat's id; returns tools and toolsets of the root agent, or
of agents by their names."""


class EngineHooks(NamedTuple):
    """Functions of the application: ``policy`` is asked about every gated call (A9)."""

    policy: Policy | None = None
    tools_for: ToolsFor | None = None


NO_HOOKS: Final = EngineHooks()
