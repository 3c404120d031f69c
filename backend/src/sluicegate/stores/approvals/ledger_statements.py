"""The statements of the ledger, built once.

Values are bound by name: ``its_…`` select rows and ``new_…`` are stored.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal

from sqlalchemy import and_, bindparam, case, func, insert, or_, select, tuple_, update
from sqlalchemy.sql.elements import Null
from sqlalchemy.types import Double, Integer, Text

from sluicegate.core.approvals import sources
from sluicegate.stores.approvals.ledger_rows import KEY
from sluicegate.stores.sql.database import INSERTS
from sluicegate.stores.sql.database_clock import NOW
from sluicegate.stores.sql.schema import APPROVALS, AUDIT, DECISIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import ColumnElement, Executable, FromClause, Insert, Select
    from sqlalchemy.sql.dml import ReturningInsert, ReturningUpdate

    from sluicegate.core.approvals import ApprovalState

    _Transition = ReturningInsert[Any] | ReturningUpdate[Any]


_C = APPROVALS.c

_IS_ROW: Final = and_(*(column == bindparam(f"its_{column.name}") for column in KEY))
_OF_CHAT: Final = and_(*(column == bindparam(f"its_{column.name}") for column in KEY[:3]))
_IS_OWNERS = _C.owner == bindparam("its_owner")
_IS_LATE = _C.deadline <= NOW
_IS_UNREPORTED = and_(_C.state == "expired", _C.answer.is_(None), _C.finished_at.is_(None))
_IS_UNKNOWN = and_(_IS_ROW, _C.state == "unknown")
_HAS_ARGUMENTS = _C.args_hash == bindparam("its_args_hash")
# Rows that other people decide change within a transaction that has counted their decisions.
_IN_TRANSACTION = bindparam("its_quorum", type_=Integer, value=0, required=False) == 1
_IS_COUNTED = or_(_C.approvers.is_(None), _IN_TRANSACTION)
# The decision on a row with a preview keeps the edits that the preview shows.
_IS_READ = or_(_C.preview_hash.is_(None), _IN_TRANSACTION)


ROW: Final[Select[Any]] = select(APPROVALS).where(_IS_ROW)
ROW_LOCKED: Final = ROW.with_for_update()
ROWS: Final[Select[Any]] = select(APPROVALS).where(_OF_CHAT).order_by(_C.requested_at, *KEY)
PENDING_COUNTS: Final[Select[Any]] = (
    select(_C.chat, func.count().label("pending"))
    .where(_C.app == bindparam("its_app"), _C.user == bindparam("its_user"))
    .where(_C.state == "requested", _C.deadline > NOW)
    .group_by(_C.chat)
)
_WAITING: Final[tuple[ColumnElement[Any], ...]] = (
    func.count().label("waiting"),
    (NOW - func.min(_C.requested_at)).label("age"),
)
WAITING: Final[Select[Any]] = select(*_WAITING).where(
    _C.app == bindparam("its_app"), _C.state == "requested", _C.deadline > NOW
)
DUE: Final[Select[Any]] = (
    select(_C.user, _C.chat)
    .where(_C.app == bindparam("its_app"), _C.state == "requested", _C.deadline <= NOW)
    .order_by(_C.deadline)
    .limit(bindparam("its_limit", type_=Integer))
)
CLAIMED_OWNERS: Final[Select[Any]] = (
    select(_C.owner).where(_OF_CHAT, _C.state.in_(sources("unknown"))).distinct()
)
CLOSE_EXPIRED: Final = update(APPROVALS).where(_OF_CHAT, _IS_UNREPORTED).values(finished_at=NOW)
ERASE_DETAILS: Final = (
    update(APPROVALS)
    .where(_OF_CHAT)
    .values(
        dict.fromkeys(
            (
                _C.arguments,
                _C.edits,
                _C.hint,
                _C.outcome,
                _C.actions,
                _C.payload,
                _C.edited_payload,
                _C.response,
                _C.preview,
            )
        )
    )
)
ERASE_DECISIONS: Final = (
    update(DECISIONS)
    .where(*(DECISIONS.c[name] == bindparam(f"its_{name}") for name in ("app", "user", "chat")))
    .values(edits=None, edited_payload=None)
)

TransitionName = Literal[
    "request",
    "answer",
    "grant",
    "claim",
    "claim again",
    "claim asked again",
    "ask again",
    "executed",
    "failed",
    "supersede",
    "withdraw",
    "expire",
    "expire due",
    "refuse",
    "refuse granted",
    "unknown",
    "resolve executed",
    "resolve failed",
]


def _to(target: ApprovalState, where: ColumnElement[bool], **values: Any) -> ReturningUpdate[Any]:
    """Build the compare-and-set to ``target``, from the states that may precede it."""
    changed = update(APPROVALS).where(where, _from(target))
    return changed.values(state=target, **values).returning(APPROVALS)


def _from(target: ApprovalState) -> ColumnElement[bool]:
    # Equalities, since the driver cannot expand the list of an IN.
    return or_(*(_C.state == source for source in sources(target)))


_NEW: Final = (
    "approval_id",
    "tool",
    "arguments",
    "hint",
    "agent",
    "definition_hash",
    "changed",
    "payload",
    "approvers",
    "at_expiry",
    "preview",
    "preview_hash",
)
_NEW_ROW: Final[dict[str, Any]] = {
    "requested_at": NOW,
    "deadline": NOW + bindparam("new_ttl", type_=Double),
    "remind_at": NOW + bindparam("new_remind_after", type_=Double),
    "state": "requested",
    **{name: bindparam(f"its_{name}") for name in (*(column.name for column in KEY), "args_hash")},
    **{name: bindparam(f"new_{name}") for name in _NEW},
}
# What is there to claim is what the person was shown.
_IS_PREVIEWED = or_(
    _C.preview_hash.is_(None),
    _C.preview_hash == bindparam("its_preview", type_=Text),
)
_IS_CLAIMABLE: Final = and_(_IS_ROW, _HAS_ARGUMENTS, _IS_COUNTED, _IS_PREVIEWED)
_CLAIMED: Final[dict[str, Any]] = {"owner": bindparam("new_owner"), "claimed_at": NOW}
_ENDED: Final[dict[str, Any]] = {"outcome": bindparam("new_outcome"), "finished_at": NOW}
_RAN: Final[dict[str, Any]] = {**_ENDED, "actions": bindparam("new_actions")}

# An answer needs a row in the state `requested`, the only source of `approved` and of `denied`.
_ANSWER: Final[ReturningUpdate[Any]] = (
    update(APPROVALS)
    .where(_IS_ROW, _HAS_ARGUMENTS, _IS_COUNTED, _IS_READ)
    .where(or_(_from("approved"), _IS_UNREPORTED))
    .values(
        # A late answer is stored without effect; the database's clock decides.
        state=case((_IS_LATE, "expired"), else_=bindparam("new_state", type_=Text)),
        answer=bindparam("new_answer"),
        reason=bindparam("new_reason"),
        decided_by=bindparam("new_decided_by"),
        via=bindparam("new_via"),
        edits=bindparam("new_edits"),
        edits_hash=bindparam("new_edits_hash"),
        edited_payload=bindparam("new_edited_payload"),
        remember=bindparam("new_remember"),
        response=bindparam("new_response"),
        decided_at=NOW,
        finished_at=case(
            (or_(_IS_LATE, bindparam("new_state", type_=Text) == "denied"), NOW), else_=Null()
        ),
    )
    .returning(APPROVALS)
)

SINGLE_ROW: Final[dict[TransitionName, ReturningUpdate[Any]]] = {
    "answer": _ANSWER,
    "claim": _to("executing", and_(_IS_CLAIMABLE, _C.state == "approved"), **_CLAIMED),
    "claim again": _to("executing", and_(_IS_CLAIMABLE, _C.state == "unknown"), **_CLAIMED),
    "ask again": _to("asked_again", and_(_IS_ROW, _IS_OWNERS)),
    "executed": _to("executed", and_(_IS_ROW, or_(_IS_OWNERS, _C.state == "unknown")), **_RAN),
    "failed": _to("failed", and_(_IS_ROW, _IS_OWNERS), **_RAN),
    # Without an owner it is the word of a person, see `ApprovalRow.resolution`.
    "resolve executed": _to("executed", _IS_UNKNOWN, owner=Null(), **_ENDED),
    "resolve failed": _to("failed", _IS_UNKNOWN, owner=Null(), **_ENDED),
}
"""Transitions of one call, which run alone or within a transaction."""

_WITHIN: Final[dict[TransitionName, _Transition]] = {
    "claim asked again": _to(
        "executing", and_(_IS_CLAIMABLE, _C.state == "asked_again"), **_CLAIMED
    ),
    "grant": _to(
        "approved",
        _IS_ROW,
        answer=True,
        decided_by=bindparam("new_decided_by"),
        decided_at=NOW,
        grant_id=bindparam("new_grant_id"),
        via=bindparam("new_via"),
    ),
    "supersede": _to(
        "superseded", tuple_(*KEY).in_(bindparam("its_keys", expanding=True)), finished_at=NOW
    ),
    "withdraw": _to(
        "superseded",
        and_(tuple_(*KEY).in_(bindparam("its_keys", expanding=True)), _C.state == "requested"),
        finished_at=NOW,
    ),
    "expire": _to("expired", and_(_OF_CHAT, _C.answer.is_(None), _IS_LATE), finished_at=NOW),
    "expire due": _to("expired", and_(_OF_CHAT, _C.answer.is_(None), _IS_LATE)),
    "refuse": _to("refused", _IS_ROW, **_ENDED),
    "refuse granted": _to(
        "refused",
        and_(_OF_CHAT, _C.grant_id == bindparam("its_grant_id")),
        **_ENDED,
    ),
    "unknown": _to(
        "unknown", and_(_OF_CHAT, _C.owner.in_(bindparam("its_owners", expanding=True)))
    ),
}
"""Transitions that run within a transaction alone."""

_COPIED: Final = (*KEY, _C.approval_id, _C.tool)


def _audit_entry(of: FromClause) -> Select[Any]:
    """Select the audit entry of rows that have just changed their state.

    ``audit_reason`` is bound: why a call failed or was refused, instead of the person's reason;
    ``audit_by`` and ``audit_via`` are who resolved an unknown outcome, instead of the approver.
    """
    row = of.c
    at = case(
        (row.state == "requested", row.requested_at),
        (row.state == "approved", row.decided_at),
        (row.state == "denied", row.decided_at),
        (row.state == "executing", row.claimed_at),
        # The loss of an owner has no time of its own, nor has a deadline that was noticed.
        else_=func.coalesce(row.finished_at, NOW),
    )
    reason = func.coalesce(bindparam("audit_reason", type_=Text), row.reason)
    return select(
        *(row[column.name] for column in _COPIED),
        at.label("at"),
        row.state.label("action"),
        func.coalesce(bindparam("audit_by", type_=Text), row.decided_by).label("by"),
        func.coalesce(bindparam("audit_via", type_=Text), row.via).label("via"),
        reason.label("reason"),
        # Rows of schema 5 have no hash of their edits; the entry of their approval has it.
        case(
            (and_(row.edits.is_(None), row.edits_hash.is_(None)), row.args_hash),
            else_=row.edits_hash,
        ).label("args_hash"),
    )


def _audit(entry: Select[Any]) -> Insert:
    return insert(AUDIT).from_select([column.name for column in entry.selected_columns], entry)


AUDIT_ROW: Final = _audit(_audit_entry(APPROVALS).where(_IS_ROW))


def _with_audit(transition: _Transition) -> Executable:
    moved = transition.cte("moved")
    return select(moved).add_cte(_audit(_audit_entry(moved)).cte("noted"))


@cache
def statements_of(dialect: str) -> Mapping[TransitionName, Executable]:
    """The statement of each transition; on PostgreSQL it appends to the audit trail itself."""
    request = INSERTS[dialect](APPROVALS).values(_NEW_ROW).on_conflict_do_nothing()
    transitions = {**SINGLE_ROW, **_WITHIN, "request": request.returning(APPROVALS)}
    if dialect != "postgresql":
        return transitions
    return {name: _with_audit(transition) for name, transition in transitions.items()}


NO_AUTHOR: Final = {"audit_by": None, "audit_via": None}
"""The audit entry names the person who decided on the row."""
