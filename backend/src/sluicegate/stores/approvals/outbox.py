"""The outbox: events of approvals that wait for their delivery to the endpoints of webhooks.

The triggers of the database write them (`stores.sql.approval_event_triggers`). An event is in the
table, once for each endpoint, until that has accepted it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import and_, bindparam, delete, exists, func, select, update
from sqlalchemy.types import BigInteger, Double, Integer, Text

from sluicegate.stores.approvals.ledger_rows import row_of
from sluicegate.stores.sql.approval_event_triggers import creation_statements, removal_statements
from sluicegate.stores.sql.database_clock import NOW, DatabaseSeconds
from sluicegate.stores.sql.open_existing import open_existing
from sluicegate.stores.sql.schema import APPROVALS, CHATS, LOCK, OUTBOX, WEBHOOKS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from sqlalchemy import ColumnElement, Connection, FromClause, Select

    from sluicegate.core.approvals import ApprovalRow
    from sluicegate.stores.sql.database import Database

DEAD_KEPT: Final = 30 * 86_400.0
"""Seconds for which a dead letter is kept."""

_MISSING: Final = "The database has no outbox; name the one that a server uses."

NOT_CONFIGURED: Final = "This endpoint is no longer in the setting webhooks."

_C = OUTBOX.c
_KEY: Final = ("app", "user", "chat", "invocation", "call")
_PREFIX: Final = "queued_"
_OWN: Final = ("id", "endpoint", "state", "at", "attempts")


@dataclass(frozen=True, slots=True)
class QueuedEvent:
    """An event for one endpoint.

    ``state`` is the state that the approval had got, at the time ``at`` in seconds since the epoch.
    ``attempts`` have failed, and ``age`` is in seconds since the first one was due. ``approval`` is
    the row as it is now, ``title`` that of its chat.
    """

    id: int
    endpoint: str
    state: str
    at: float
    attempts: int
    age: float
    approval: ApprovalRow
    title: str | None


@dataclass(frozen=True, slots=True)
class OutboxEntry:
    """An event that waits, or a dead letter, as a person reads it. Times are epoch seconds.

    ``next_at`` is None for a dead letter; ``error`` is why the last attempt failed.
    """

    id: int
    at: float
    app: str
    endpoint: str
    state: str
    approval_id: str
    chat: str
    attempts: int
    next_at: float | None
    error: str | None


def _is_same_call(one: FromClause, other: FromClause) -> ColumnElement[bool]:
    return and_(*(one.c[name] == other.c[name] for name in _KEY))


_EARLIER: Final = OUTBOX.alias("earlier")
_IS_FIRST: Final = ~exists().where(
    _is_same_call(_EARLIER, OUTBOX),
    _EARLIER.c.endpoint == _C.endpoint,
    _EARLIER.c.next_at.is_not(None),
    _EARLIER.c.id < _C.id,
)
_OF_ENDPOINT: Final = and_(
    _C.app == bindparam("its_app", type_=Text), _C.endpoint == bindparam("its_endpoint", type_=Text)
)
_DUE: Final[Select[Any]] = (
    select(
        *(_C[name].label(_PREFIX + name) for name in _OWN),
        (NOW - _C.since).label(f"{_PREFIX}age"),
        CHATS.c.title.label(f"{_PREFIX}title"),
        APPROVALS,
    )
    .select_from(
        OUTBOX.join(APPROVALS, _is_same_call(APPROVALS, OUTBOX)).outerjoin(
            CHATS, and_(*(CHATS.c[name] == _C[name] for name in _KEY[:3]))
        )
    )
    .where(_OF_ENDPOINT, _C.next_at <= select(NOW).scalar_subquery(), _IS_FIRST)
    # What has not failed yet goes first, so that new events do not wait for old ones.
    .order_by(_C.next_at, _C.id)
    .limit(bindparam("its_limit", type_=Integer))
)
_IS_EVENT: Final = _C.id == bindparam("its_id", type_=BigInteger)
_DELIVERED: Final = delete(OUTBOX).where(_IS_EVENT).returning(_C.id)
_FAILED: Final = (
    update(OUTBOX)
    .where(_IS_EVENT, _C.next_at.is_not(None))
    .values(
        attempts=_C.attempts + 1,
        error=bindparam("new_error", type_=Text),
        # Without a pause the sum is NULL: a dead letter.
        next_at=NOW + bindparam("new_pause", type_=Double),
    )
)
_HOLD_FOLLOWING: Final = (
    update(OUTBOX)
    .where(
        *(_C[name] == bindparam(f"its_{name}", type_=Text) for name in (*_KEY, "endpoint")),
        _C.id > bindparam("its_id", type_=BigInteger),
        _C.next_at.is_not(None),
    )
    .values(next_at=NOW + bindparam("new_pause", type_=Double))
)


def _endpoints(app: str) -> Select[Any]:
    return select(WEBHOOKS.c.name).where(WEBHOOKS.c.app == app)


def _set_triggers(connection: Connection) -> None:
    """Let events be written as long as any app has an endpoint."""
    dialect = connection.dialect
    for statement in removal_statements(dialect.name):
        connection.exec_driver_sql(statement)
    if connection.scalar(select(exists().select_from(WEBHOOKS))):
        now = str(DatabaseSeconds().compile(dialect=dialect))
        for statement in creation_statements(dialect.name, now):
            connection.exec_driver_sql(statement)


class Outbox:
    """The events of the approvals of one app.

    Every method raises StoreError when the database fails.
    """

    def __init__(self, database: Database, app: str) -> None:
        self._database = database
        self._app = app
        self._due = database.prepare(_DUE)
        self._delivered = database.prepare(_DELIVERED)

    async def set_endpoints(self, names: Collection[str]) -> None:
        """Set the endpoints for which events are written from now on, in every process.

        Events for an endpoint that is not among them become dead letters.
        """

        def change(connection: Connection) -> None:
            if connection.dialect.name == "postgresql":
                # Servers that start at the same time would both create the triggers.
                connection.execute(select(func.pg_advisory_xact_lock(LOCK)))
            for name in sorted(wanted - set(connection.scalars(_endpoints(self._app)))):
                added = self._database.insert(WEBHOOKS).values(app=self._app, name=name)
                connection.execute(added.on_conflict_do_nothing())
            is_other = and_(WEBHOOKS.c.app == self._app, WEBHOOKS.c.name.not_in(wanted))
            connection.execute(delete(WEBHOOKS).where(is_other))
            connection.execute(
                update(OUTBOX)
                .where(_C.app == self._app, _C.endpoint.not_in(wanted), _C.next_at.is_not(None))
                .values(next_at=None, error=NOT_CONFIGURED)
            )
            _set_triggers(connection)

        wanted = set(names)
        if wanted != await self._database.read(
            lambda connection: set(connection.scalars(_endpoints(self._app)))
        ):
            await self._database.write(change)

    async def due(self, endpoint: str, *, limit: int) -> list[QueuedEvent]:
        """Return events to deliver now: of each approval the first that is not delivered."""
        values = {"its_app": self._app, "its_endpoint": endpoint, "its_limit": limit}
        return [_queued(row) for row in await self._database.fetch(self._due, values)]

    async def delivered(self, event: QueuedEvent) -> None:
        """Remove an event that its endpoint has accepted."""
        await self._database.execute(self._delivered, {"its_id": event.id}, shielded=True)

    async def postpone(self, event: QueuedEvent, *, pause: float, error: str) -> None:
        """Record a failed attempt; the next one follows after ``pause`` seconds.

        The later events of the approval wait as long, so that its order is kept.
        """
        await self._fail(event, pause, error)

    async def give_up(self, event: QueuedEvent, *, error: str) -> None:
        """Make an event a dead letter; the later events of the approval are delivered."""
        await self._fail(event, None, error)

    async def remove_old_dead_letters(self) -> int:
        """Delete dead letters older than `DEAD_KEPT`; returns how many."""
        old = delete(OUTBOX).where(
            _C.app == self._app, _C.next_at.is_(None), _C.since < self._database.now() - DEAD_KEPT
        )
        return await self._database.write(lambda connection: connection.execute(old).rowcount)

    async def _fail(self, event: QueuedEvent, pause: float | None, error: str) -> None:
        values = {
            **{f"its_{name}": value for name, value in event.approval.key._asdict().items()},
            **self._database.clock_values(),
            "its_id": event.id,
            "its_endpoint": event.endpoint,
            "new_error": error,
            "new_pause": pause,
        }

        def fail(connection: Connection) -> None:
            connection.execute(_FAILED, values)
            if pause is not None:
                connection.execute(_HOLD_FOLLOWING, values)

        await self._database.write(fail, shielded=True)


async def list_entries(url: str) -> list[OutboxEntry]:
    """Return what waits in the outbox of a database and its dead letters, the oldest first.

    Raises:
        ConfigurationError: the database cannot be read or has no outbox.
    """
    columns = (_C[field.name] for field in fields(OutboxEntry))
    async with open_existing(url, OUTBOX.name, missing=_MISSING) as connection:
        rows = await connection.execute(select(*columns).order_by(_C.id))
        return [OutboxEntry(**row._mapping) for row in rows]


async def retry_entries(url: str, ids: Collection[int] | None) -> list[int]:
    """Let events be delivered now, dead letters too, for their whole time again.

    Args:
        url: The database, which servers may use.
        ids: The events; None for all.

    Returns:
        The ids of those that will be delivered; an endpoint that is no longer configured gets none.

    Raises:
        ConfigurationError: the database cannot be used or has no outbox.
    """
    is_configured = exists().where(WEBHOOKS.c.app == _C.app, WEBHOOKS.c.name == _C.endpoint)
    again = update(OUTBOX).where(is_configured)
    if ids is not None:
        again = again.where(_C.id.in_(ids))
    values = {_C.next_at: 0.0, _C.attempts: 0, _C.since: DatabaseSeconds()}
    async with open_existing(url, OUTBOX.name, missing=_MISSING, may_write=True) as connection:
        return sorted(await connection.scalars(again.values(values).returning(_C.id)))


def _queued(row: Mapping[str, Any]) -> QueuedEvent:
    values = dict(row)
    own = {name: values.pop(_PREFIX + name) for name in (*_OWN, "age", "title")}
    return QueuedEvent(**own, approval=row_of(values))
