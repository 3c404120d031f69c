"""Which users and roles may decide an approval request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import and_, exists, insert, select, tuple_

from sluicegate.core.approvers import (
    role_subject,
    user_subject,
)
from sluicegate.errors import StoreError
from sluicegate.stores.approvals.ledger_rows import row_of
from sluicegate.stores.approvals.quorum_decisions import KEY, with_decisions
from sluicegate.stores.sql.schema import APPROVALS, ENTITLEMENTS

if TYPE_CHECKING:
    from collections.abc import Collection

    from sqlalchemy import ColumnElement, Connection

    from sluicegate.core.approvals import ApprovalRow, NewApproval


def entitle(connection: Connection, new: NewApproval, row: ApprovalRow) -> None:
    """Store who may decide a new request.

    Raises:
        StoreError: Another call has the same approval id.
    """
    rule = new.approvers
    if rule is None:
        return
    key = {name: getattr(new.key, name) for name in KEY}
    same_id = and_(ENTITLEMENTS.c.app == new.key.app, ENTITLEMENTS.c.approval_id == new.approval_id)
    if connection.execute(select(ENTITLEMENTS.c.subject).where(same_id).limit(1)).first():
        raise StoreError("two calls have the same approval id")
    for subject in rule.subjects:
        values = {
            **key,
            "subject": subject,
            "approval_id": new.approval_id,
            "requested_at": row.requested_at,
        }
        connection.execute(insert(ENTITLEMENTS).values(values))


def entitled_to(app: str, user: str, roles: Collection[str]) -> ColumnElement[bool]:
    """Select the approvals of which a rule names a user or one of the roles.

    It is looked up for each approval, since a role has many that are closed: a list of all of them
    would be made for each page. Time and id have an index each, so that PostgreSQL looks up one row
    with every plan, also without statistics.
    """
    subjects = [user_subject(user), *map(role_subject, sorted(roles))]
    same = (*KEY, "approval_id", "requested_at")
    return exists().where(
        ENTITLEMENTS.c.app == app,
        ENTITLEMENTS.c.subject.in_(subjects),
        *(ENTITLEMENTS.c[name] == APPROVALS.c[name] for name in same),
    )


def find_entitled(connection: Connection, app: str, approval_id: str) -> ApprovalRow | None:
    """Return the approval with an id that has a rule, of any user."""
    named = (
        select(*(ENTITLEMENTS.c[name] for name in KEY))
        .where(ENTITLEMENTS.c.app == app, ENTITLEMENTS.c.approval_id == approval_id)
        .limit(1)
    )
    statement = select(APPROVALS).where(tuple_(*(APPROVALS.c[name] for name in KEY)).in_(named))
    row = connection.execute(statement).one_or_none()
    return None if row is None else with_decisions(connection, [row_of(row._asdict())])[0]
