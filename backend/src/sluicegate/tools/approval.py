"""What a tool may know of the approval it runs under, and who may forbid it after all (A9)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from weakref import WeakKeyDictionary

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
