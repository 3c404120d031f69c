"""What a tool may know of the approval it runs under, and who may forbid it after all (A9)."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypedDict, Unpack
from weakref import WeakKeyDictionary

from google.adk.tools.base_tool import BaseTool
from google.adk.tools.function_tool import FunctionTool

from sluicegate.adk_private import (
    confirmation_setting,
    keeps_confirmation_setting,
    set_confirmation,
)
from sluicegate.errors import ConfigurationError
from sluicegate.tools.client_tools import ClientTool

if TYPE_CHECKING:
    from collections.abc import Mapping

    from google.adk.tools.tool_context import ToolContext


@dataclass(frozen=True, slots=True)
class Approval:
    """The approval under which a tool runs.

    ``key`` is the call's idempotency key: 64 hexadecimal digits, the same each time this call
    runs, another for every other call of any chat. ``decided_at`` is seconds since the epoch.
    ``is_edited``: the person changed the arguments. ``is_automatic``: an earlier approval was
    remembered. ``is_repeated``: the call may have taken effect before a crash.
    """

    key: str
    decided_by: str
    decided_at: float
    reason: str | None = None
    is_edited: bool = False
    is_automatic: bool = False
    is_repeated: bool = False


@dataclass(frozen=True, slots=True)
class GatedCall:
    """A call that a policy is asked about.

    ``arguments`` are those it would run with. ``approval`` is None while the person has not been
    asked yet.
    """

    app: str
    user: str
    chat: str
    tool: str
    arguments: Mapping[str, Any]
    approval: Approval | None


Policy: TypeAlias = Callable[[GatedCall, str], Awaitable[bool | str]]
"""Whether a call may run under a user: True, or False, or one public sentence that says why not.

It is asked before a person is, with the chat's user, and again right before the call begins, with
whoever approved it. Anything but True refuses, and so does an exception.
"""

_APPROVALS: Final[WeakKeyDictionary[object, Approval]] = WeakKeyDictionary()


def approval_of(tool_context: ToolContext) -> Approval | None:
    """Return the approval under which a tool runs; None for a call that asked nobody."""
    return _APPROVALS.get(tool_context)


def set_approval(tool_context: ToolContext, approval: Approval) -> None:
    """Let a tool see the approval under which it is about to run."""
    _APPROVALS[tool_context] = approval


OutcomeLookup: TypeAlias = Callable[[str], Awaitable[Any] | Any]
"""Looks up what became of a call by its idempotency key; None where nothing is known of it."""

TERMS_KEY: Final = "sluicegate"
"""Where a tool's ``custom_metadata`` holds its `ApprovalTerms`."""


@dataclass(frozen=True, slots=True)
class ApprovalTerms:
    """What may be done with the approvals of a tool, and with a call that a crash cut off.

    ``expires`` is the seconds an approval waits, None for the setting ``approval_ttl``.
    """

    editable: bool = True
    rememberable: bool = True
    idempotent: bool = False
    find: OutcomeLookup | None = None
    expires: float | None = None


class ApprovalTermOptions(TypedDict, total=False):
    """The fields of `ApprovalTerms` as keywords."""

    editable: bool
    rememberable: bool
    idempotent: bool
    find: OutcomeLookup | None
    expires: float | None


DEFAULT_TERMS: Final = ApprovalTerms()
"""What holds for a tool whose author said nothing."""


def gated(
    tool: BaseTool | Callable[..., Any],
    *,
    require_confirmation: bool | Callable[..., bool] = True,
    **terms: Unpack[ApprovalTermOptions],
) -> BaseTool:
    """Make a tool that asks a person, and say what may be done with its approvals.

    A tool is copied and stays as it was; a function becomes a function tool. A tool that decides
    for itself whether it asks goes on to do so.

    Args:
        tool: A tool, or a function as ADK takes it.
        require_confirmation: As in ADK: always, or a function of the arguments. False leaves it to
            the tool, which asks in its own code.
        **terms: ``editable``: a person may change the arguments (A7). ``rememberable``: a person
            may have later calls in the chat approved (A8). ``idempotent``: the tool may run again
            with the same key after a crash. ``find``: what became of a call, by its key (A9).
            ``expires``: seconds an approval waits (A5).

    Raises:
        ConfigurationError: The tool runs in the browser, or the terms cannot be used.
    """
    said = _checked(ApprovalTerms(**terms))
    if isinstance(tool, ClientTool):
        raise ConfigurationError(
            f"The tool {tool.name!r} runs in the browser; "
            "declare its approval with client_tool(..., require_confirmation=True)."
        )
    if isinstance(tool, BaseTool):
        fresh = copy.copy(tool)
        if require_confirmation:
            _ask(fresh, when=require_confirmation)
    else:
        fresh = FunctionTool(tool, require_confirmation=require_confirmation)
    fresh.custom_metadata = {**(fresh.custom_metadata or {}), TERMS_KEY: said}
    return fresh


def terms_of(tool: BaseTool) -> ApprovalTerms:
    """Return what a tool's author said, by `gated` or in ``custom_metadata``.

    A tool of a toolset can say ``editable`` and ``rememberable`` in its ``custom_metadata``.
    """
    said = tool.custom_metadata or {}
    terms = said.get(TERMS_KEY)
    if isinstance(terms, ApprovalTerms):
        return terms
    editable = said.get("editable", True) is not False
    rememberable = said.get("rememberable", True) is not False
    return DEFAULT_TERMS if editable and rememberable else ApprovalTerms(editable, rememberable)


def _checked(terms: ApprovalTerms) -> ApprovalTerms:
    if terms.find is not None and not callable(terms.find):
        raise ConfigurationError("The look-up find of a gated tool must be a function of its key.")
    if terms.expires is not None and not (isfinite(terms.expires) and terms.expires > 0):
        raise ConfigurationError("The time expires of a gated tool must be seconds above 0.")
    return terms


def _ask(tool: BaseTool, *, when: bool | Callable[..., bool]) -> None:
    """Let a tool ask by ADK's gate, unless its author has said already when it asks."""
    if keeps_confirmation_setting(tool):
        set_confirmation(tool, when=confirmation_setting(tool) or when)
        return
    if type(tool).check_require_confirmation is not BaseTool.check_require_confirmation:
        return

    async def check(args: dict[str, Any], tool_context: ToolContext) -> bool:
        return when(**args) if callable(when) else when

    vars(tool)["check_require_confirmation"] = check
    set_confirmation(tool, when=when)
