"""The statements of the ledger that stand in the way of every approval, made once.

To put a statement together and to find it among the compiled ones takes longer than to run it.
What changes is bound: a call's key, the time by which the clock is ahead, and the new values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import bindparam, case, or_, select, update
from sqlalchemy.sql.elements import Null
from sqlalchemy.types import Double, Text

from sluicegate.core.ledger import sources
from sluicegate.stores.approvals.approval_rows import IS_ROW, KEY, OF_CHAT
from sluicegate.stores.sql.schema import APPROVALS, NOW

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Select
    from sqlalchemy.sql.dml import ReturningUpdate

    from sluicegate.core.ledger import ApprovalState

_C = APPROVALS.c
_IS_OWNERS = _C.owner == bindparam("its_owner")
_IS_LATE = _C.deadline <= NOW
_HAS_ARGUMENTS = _C.args_hash == bindparam("its_args_hash")


def _move(target: ApprovalState, *where: Any, **values: Any) -> ReturningUpdate[Any]:
    """The compare-and-set to ``target`` of one call: from the states that may be before it."""
    changed = update(APPROVALS).where(IS_ROW, *where, _from(target))
    return changed.values(state=target, **values).returning(APPROVALS)


def _from(target: ApprovalState) -> ColumnElement[bool]:
    # An IN would be put together anew each time.
    return or_(*(_C.state == source for source in sources(target)))


ROW: Final[Select[Any]] = select(APPROVALS).where(IS_ROW)
ROW_LOCKED: Final = ROW.with_for_update()
ROWS: Final[Select[Any]] = select(APPROVALS).where(OF_CHAT).order_by(_C.requested_at, *KEY)

ANSWER: Final[ReturningUpdate[Any]] = (
    update(APPROVALS)
    .where(IS_ROW, _HAS_ARGUMENTS, _from("approved"))
    .values(
        # A late answer is kept and does nothing; the database's clock judges.
        state=case((_IS_LATE, "expired"), else_=bindparam("new_state", type_=Text)),
        answer=bindparam("new_answer"),
        reason=bindparam("new_reason"),
        decided_by=bindparam("new_decided_by"),
        via=bindparam("new_via"),
        edits=bindparam("new_edits"),
        edits_hash=bindparam("new_edits_hash"),
        decided_at=NOW,
        finished_at=case(
            (or_(_IS_LATE, bindparam("new_state", type_=Text) == "denied"), NOW), else_=Null()
        ),
    )
    .returning(APPROVALS)
)
"""The states after a request are reached from it alone, so one list of sources serves for all."""

_CLAIMED: Final[dict[str, Any]] = {"owner": bindparam("new_owner"), "claimed_at": NOW}
CLAIM: Final = _move("executing", _HAS_ARGUMENTS, _C.state == "approved", **_CLAIMED)
CLAIM_AGAIN: Final = _move("executing", _HAS_ARGUMENTS, _C.state == "unknown", **_CLAIMED)

_ENDED: Final[dict[str, Any]] = {"outcome": bindparam("new_outcome"), "finished_at": NOW}
EXECUTED: Final = _move("executed", or_(_IS_OWNERS, _C.state == "unknown"), **_ENDED)
FAILED: Final = _move("failed", _IS_OWNERS, **_ENDED)

NEW: Final[dict[str, Any]] = {
    "requested_at": NOW,
    "deadline": NOW + bindparam("new_ttl", type_=Double),
    "state": "requested",
    **{name: bindparam(f"its_{name}") for name in (*(column.name for column in KEY), "args_hash")},
    **{name: bindparam(f"new_{name}") for name in ("approval_id", "tool", "arguments", "hint")},
}
"""The values of a request; each database has an INSERT of its own."""
