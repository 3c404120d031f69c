"""The approval under which a tool runs, as the tool can read it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from google.adk.tools.tool_context import ToolContext


@dataclass(frozen=True, slots=True)
class Approval:
    """The approval under which a tool runs.

    ``key`` is the call's idempotency key: 64 hexadecimal digits, the same each time this call
    runs, another for every other call of any chat. ``decided_at`` is seconds since the epoch.
    ``is_edited``: the approver changed the arguments. ``is_automatic``: a grant approved the call.
    ``is_repeated``: the call may have taken effect before a crash. ``approved_by`` are all who have
    approved it, where others than the user of the chat do. ``preview`` is the version of the
    approved preview: the one that its function returned, else its digest; None without one.
    """

    key: str
    decided_by: str
    decided_at: float
    reason: str | None = None
    is_edited: bool = False
    is_automatic: bool = False
    is_repeated: bool = False
    approved_by: tuple[str, ...] = ()
    preview: str | None = None


_APPROVALS: Final[WeakKeyDictionary[object, Approval]] = WeakKeyDictionary()


def approval_of(tool_context: ToolContext) -> Approval | None:
    """Return the approval under which a tool runs; None for a call that required none."""
    return _APPROVALS.get(tool_context)


def set_approval(tool_context: ToolContext, approval: Approval) -> None:
    """Set the approval under which a tool is about to run."""
    _APPROVALS[tool_context] = approval
