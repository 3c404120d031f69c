"""The statements of the ledger that stand in the way of every approval, made once.

To put a statement together and to find it among the compiled ones takes longer than to run it.
What changes is bound: a call's key, the time by which the clock is ahead, and the new values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import and_, bindparam, case, or_, select, update
from sqlalchemy.sql.elements import Null
from sqlalchemy.types import Double, Text

from sluicegate.core.ledger import sources
from sluicegate.stores.approval_rows import KEY
from sluicegate.stores.schema import APPROVALS, NOW

if TYPE_CHECKING:
    from sqlalchemy import Select, Update

    from sluicegate.core.keys import CallKey, ChatKey
    from sluicegate.core.ledger import ApprovalState

_C = APPROVALS.c
_IS_ROW = and_(*(column == bindparam(f"its_{column.name}") for column in KEY))
_OF_CHAT = and_(*(column == bindparam(f"its_{column.name}") for column in KEY[:3]))
_IS_OWNERS = _C.owner == bindparam("its_owner")
_IS_LATE = _C.deadline <= NOW


def key_values(key: CallKey | ChatKey) -> dict[str, Any]:
    """What binds a call's or a chat's key."""
    return {f"its_{name}": value for name, value in key._asdict().items()}


def _move(target: ApprovalState, *where: Any) -> Update:
    """The compare-and-set to ``target`` of one call: from the states that may be before it."""
    changed = update(APPROVALS).where(_IS_ROW, *where, _C.state.in_(sources(target)))
    return changed.values(state=target).returning(APPROVALS)


ROW: Final[Select[Any]] = select(APPROVALS).where(_IS_ROW)
ROW_LOCKED: Final = ROW.with_for_update()
ROWS: Final[Select[Any]] = select(APPROVALS).where(_OF_CHAT).order_by(_C.requested_at, *KEY)

ANSWER: Final[Update] = (
    update(APPROVALS)
    .where(_IS_ROW, _C.state.in_(sources("approved")))
    .values(
        # A late answer is kept and does nothing; the database's clock judges.
        state=case((_IS_LATE, "expired"), else_=bindparam("new_state", type_=Text)),
        answer=bindparam("new_answer"),
        reason=bindparam("new_reason"),
        decided_by=bindparam("new_decided_by"),
        via=bindparam("new_via"),
        edits=bindparam("new_edits"),
        decided_at=NOW,
        finished_at=case(
            (or_(_IS_LATE, bindparam("new_state", type_=Text) == "denied"), NOW), else_=Null()
        ),
    )
    .returning(APPROVALS)
)
"""The states after a request are reached from it alone, so one list of sources serves for all."""

_CLAIMED: Final[dict[str, Any]] = {"owner": bindparam("new_owner"), "claimed_at": NOW}
_HAS_ARGUMENTS = _C.args_hash == bindparam("its_args_hash")
CLAIM: Final = _move("executing", _HAS_ARGUMENTS, _C.state == "approved").values(_CLAIMED)
CLAIM_AGAIN: Final = _move("executing", _HAS_ARGUMENTS, _C.state == "unknown").values(_CLAIMED)

_ENDED: Final[dict[str, Any]] = {"outcome": bindparam("new_outcome"), "finished_at": NOW}
EXECUTED: Final = _move("executed", or_(_IS_OWNERS, _C.state == "unknown")).values(_ENDED)
FAILED: Final = _move("failed", _IS_OWNERS).values(_ENDED)

NEW: Final[dict[str, Any]] = {
    "requested_at": NOW,
    "deadline": NOW + bindparam("new_ttl", type_=Double),
    "state": "requested",
    **{name: bindparam(f"its_{name}") for name in (*(column.name for column in KEY), "args_hash")},
    **{name: bindparam(f"new_{name}") for name in ("approval_id", "tool", "arguments", "hint")},
}
"""The values of a request; each database has an INSERT of its own."""
