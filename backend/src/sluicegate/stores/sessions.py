"""ADK's session service on our database, with a cache of the events of long chats."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from weakref import WeakValueDictionary

from google.adk.errors import StaleSessionError
from google.adk.events.event import Event
from google.adk.sessions.base_session_service import GetSessionConfig
from google.adk.sessions.database_session_service import DatabaseSessionService
from google.adk.sessions.state import State
from sqlalchemy import bindparam, func, insert, select, update

from sluicegate.adk_private import (
    continue_from,
    read_transaction,
    revision_of,
    session_tables,
    set_revision,
)
from sluicegate.core.chat_and_turn_keys import ChatKey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from google.adk.sessions.session import Session
    from sqlalchemy import Insert, Select, Update

    from sluicegate.stores.sql.database import Database

_EVENT_BYTES: Final = 6 * 1024
"""Memory of an event besides its texts and data."""

_OF_EVENT: Final = ("id", "invocation_id", "timestamp", "event_data")
"""The columns of an event besides the key of its session."""


@dataclass(frozen=True, slots=True)
class _CachedChat:
    """The events of one chat at a revision of its session."""

    revision: str | None
    events: Sequence[Event]
    size: int


class _Statements(NamedTuple):
    """Statements on ADK's tables; the parameters ``app``, ``user`` and ``chat`` name a session."""

    head: Select[Any]
    """The states and the revision of a session."""
    advance: Update
    """Moves a session from the revision ``read_at`` to ``updated_at``."""
    insert: Insert
    """Inserts an event."""

    @classmethod
    def of(cls, tables: Any) -> _Statements:
        """Return the statements on the ORM classes of ADK."""
        session, app, user = tables.StorageSession, tables.StorageAppState, tables.StorageUserState
        of_user = (user.app_name == session.app_name) & (user.user_id == session.user_id)
        is_named = (
            (session.app_name == bindparam("app"))
            & (session.user_id == bindparam("user"))
            & (session.id == bindparam("chat"))
        )
        table, events = session.__table__, tables.StorageEvent.__table__
        return cls(
            select(session.state, session.update_time, app.state, user.state)
            .outerjoin(app, app.app_name == session.app_name)
            .outerjoin(user, of_user)
            .where(is_named),
            update(table)
            .where(is_named, table.c.update_time == bindparam("read_at"))
            .values(update_time=bindparam("updated_at")),
            insert(events).values(
                app_name=bindparam("app"),
                user_id=bindparam("user"),
                session_id=bindparam("chat"),
                **{name: bindparam(name) for name in _OF_EVENT},
            ),
        )


class ChatSessions(DatabaseSessionService):
    """ADK's session service for long chats and for several processes.

    Loading thousands of events costs more than the rest of a turn, so events that were read
    before are cached and only newer ones are loaded. Several callers share the cached events and
    must not change them, as ADK's own requests do not.

    Every error of the database is a `StoreError`; ADK's own (stale or unknown sessions) stay.

    Args:
        database: The database with ADK's tables.
        max_bytes: About how many bytes of events are cached; 0 caches none.
        on_stored: Callbacks for each event that is stored.
        may_store: Whether the caller may still store events: its chat is not lost to another
            process.
    """

    def __init__(
        self,
        database: Database,
        *,
        max_bytes: int,
        on_stored: Sequence[Callable[[ChatKey, Event], None]] = (),
        may_store: Callable[[], bool] = lambda: True,
    ) -> None:
        super().__init__(db_engine=database.sessions)
        self._database = database
        self._max_bytes = max_bytes
        self._cache: OrderedDict[ChatKey, _CachedChat] = OrderedDict()
        self._size = 0
        self._on_stored = on_stored
        self._may_store = may_store
        self._appending: WeakValueDictionary[ChatKey, asyncio.Lock] = WeakValueDictionary()
        """The locks of the chats to which something is appended."""

    @property
    def size(self) -> int:
        """About how many bytes are cached."""
        return self._size

    async def get_session(
        self,
        *,
        app_name: str,
        user_id: str,
        session_id: str,
        config: GetSessionConfig | None = None,
    ) -> Session | None:
        """Load a session; of a cached one only the new events.

        Raises:
            StoreError: the database failed.
        """
        chat = ChatKey(app_name, user_id, session_id)
        with self._store_errors():
            if config is not None:
                return await self._load(chat, config)
            cached = self._cache.get(chat)
            session = None if cached is None else await self._extend(chat, cached)
            if session is None:
                session = await self._load(chat, None)
            if session is None:
                self._evict(chat)
            else:
                self._store(chat, session)
            return session

    async def append_event(self, session: Session, event: Event) -> Event:
        """Append an event with a later timestamp than every other one, even if clocks differ.

        Raises:
            StoreError: the database failed.
            StaleSessionError: another writer has appended to the session, or owns it.
        """
        if event.partial:
            return await super().append_event(session=session, event=event)
        if not self._may_store():
            raise StaleSessionError("Another process owns this chat.")
        chat = ChatKey(session.app_name, session.user_id, session.id)
        # Calls that run at once append to one session, whose revision is that of its last event.
        async with self._appending.setdefault(chat, asyncio.Lock()):
            stored = await self._append_latest(chat, session, event)
        for callback in self._on_stored:
            callback(chat, stored)
        return stored

    async def _append_latest(self, chat: ChatKey, session: Session, event: Event) -> Event:
        """Append an event; a message also to a session that has gone on since it was read."""
        with self._store_errors():
            try:
                return await self._append(session, event)
            except StaleSessionError:
                newer = await self._load(chat, None) if _begins_invocation(event, session) else None
                if newer is None:
                    raise
                # A message depends on nothing that its run has read: what came between is the last
                # event of a process that has lost the chat.
                continue_from(session, newer)
                return await self._append(session, event)

    async def create_session(self, **given: Any) -> Session:
        """Create a session; raises StoreError when the database fails."""
        with self._store_errors():
            return await super().create_session(**given)

    async def delete_session(self, app_name: str, user_id: str, session_id: str) -> None:
        """Delete a session; raises StoreError when the database fails."""
        self._evict(ChatKey(app_name, user_id, session_id))
        with self._store_errors():
            await super().delete_session(app_name=app_name, user_id=user_id, session_id=session_id)

    @contextmanager
    def _store_errors(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            failure = self._database.store_error(error)
            if failure is None:
                raise
            raise failure from error

    async def _append(self, session: Session, event: Event) -> Event:
        # ADK: events are read in the order of their timestamps, and the newest timestamp is the
        # revision that reveals a second writer. Clocks differ, and jump. Whole microseconds are
        # stored as they are, any other time may be rounded otherwise than here.
        last = round(session.events[-1].timestamp * 1e6) if session.events else 0
        event.timestamp = max(round(event.timestamp * 1e6), last + 1) / 1e6
        _answer_in_scope(event, session)
        chat = ChatKey(session.app_name, session.user_id, session.id)
        read_at = revision_of(session)
        if not event.actions.state_delta and await self._insert(chat, session, event, read_at):
            stored = event
        else:
            stored = await super().append_event(session=session, event=event)
        self._add(chat, stored, read_at, revision_of(session))
        return stored

    async def _insert(
        self, chat: ChatKey, session: Session, event: Event, read_at: str | None
    ) -> bool:
        """Store an event that changes no state by two statements; ADK's way takes five.

        Returns whether it was stored: the session is still at the revision ``read_at``.
        """
        await self.prepare_tables()
        tables = session_tables(self)
        if read_at is None or not hasattr(tables.StorageEvent, "event_data"):
            return False
        updated_at = datetime.fromtimestamp(event.timestamp, UTC).replace(tzinfo=None)
        row = {
            "id": event.id,
            "invocation_id": event.invocation_id,
            "timestamp": updated_at,
            "event_data": event.model_dump(exclude_none=True, mode="json"),
        }
        revisions = {"updated_at": updated_at, "read_at": datetime.fromisoformat(read_at)}
        keys = _names(chat)
        async with self._database.sessions.connect() as connection:
            advanced = await connection.execute(self._statements.advance, {**keys, **revisions})
            if advanced.rowcount != 1:
                return False
            await connection.execute(self._statements.insert, {**keys, **row})
            await connection.commit()
            # Before the connection is released: a caller that is cancelled meanwhile goes on with
            # a session that is at the stored revision.
            updated = tables.StorageSession(update_time=updated_at)
            session.last_update_time = updated.get_update_timestamp()
            set_revision(session, updated.get_update_marker())
            session.events.append(event)
        return True

    def _add(self, chat: ChatKey, event: Event, read_at: str | None, revision: str | None) -> None:
        """Cache an event that follows the cached ones, as a reading would return it."""
        cached = self._cache.get(chat)
        if cached is None or cached.revision != read_at:
            return
        # The caller's own may change later.
        event = Event.model_validate(event.model_dump(exclude_none=True, mode="json"))
        size = _size_of(event)
        # A reader may hold what is cached so far.
        self._cache[chat] = _CachedChat(revision, [*cached.events, event], cached.size + size)
        self._grow(size)

    def _grow(self, size: int) -> None:
        self._size += size
        while self._size > self._max_bytes:
            self._evict(next(iter(self._cache)))

    async def _load(self, chat: ChatKey, config: GetSessionConfig | None) -> Session | None:
        return await super().get_session(
            app_name=chat.app, user_id=chat.user, session_id=chat.chat, config=config
        )

    async def _extend(self, chat: ChatKey, cached: _CachedChat) -> Session | None:
        """Return the session with cached and new events; None if events would be missing."""
        head = await self._head(chat)
        if head is None or revision_of(head) == cached.revision:
            if head is not None:
                head.events = list(cached.events)
            return head
        last = cached.events[-1]
        session = await self._load(chat, GetSessionConfig(after_timestamp=last.timestamp))
        if session is None:
            return None
        # Several events may share a timestamp, and the cached one must be among them.
        ids = [event.id for event in session.events]
        if last.id not in ids:
            return None
        seen = {event.id for event in cached.events[-len(ids) :]}
        events = [*cached.events, *(e for e in session.events if e.id not in seen)]
        if await self._count(chat) != len(events):
            return None
        session.events = events
        return session

    async def _head(self, chat: ChatKey) -> Session | None:
        """Return a session without its events, by one statement; ADK's reading takes three."""
        await self.prepare_tables()
        # Over the connections that events are stored by: on SQLite a reading follows the storing
        # that was begun before it.
        async with self._database.sessions.connect() as connection:
            found = await connection.execute(self._statements.head, _names(chat))
            row = found.one_or_none()
        if row is None:
            return None
        state, updated_at, of_app, of_user = row
        state |= {State.APP_PREFIX + key: value for key, value in (of_app or {}).items()}
        state |= {State.USER_PREFIX + key: value for key, value in (of_user or {}).items()}
        stored = session_tables(self).StorageSession(
            app_name=chat.app, user_id=chat.user, id=chat.chat, update_time=updated_at
        )
        session: Session = stored.to_session(state=state)
        return session

    @cached_property
    def _statements(self) -> _Statements:
        return _Statements.of(session_tables(self))

    async def _count(self, chat: ChatKey) -> int:
        stored = session_tables(self).StorageEvent
        statement = select(func.count()).where(
            stored.app_name == chat.app,
            stored.user_id == chat.user,
            stored.session_id == chat.chat,
        )
        async with read_transaction(self) as transaction:
            return await transaction.scalar(statement) or 0

    def _store(self, chat: ChatKey, session: Session) -> None:
        cached, events = self._cache.get(chat), session.events
        self._evict(chat)
        size, read = 0, 0
        if cached is not None and cached.events[-1] in events[len(cached.events) - 1 :][:1]:
            size, read = cached.size, len(cached.events)
        size += sum(map(_size_of, events[read:]))
        if not events or size > self._max_bytes:
            return
        self._cache[chat] = _CachedChat(revision_of(session), list(events), size)
        self._grow(size)

    def _evict(self, chat: ChatKey) -> None:
        cached = self._cache.pop(chat, None)
        if cached is not None:
            self._size -= cached.size


def _names(chat: ChatKey) -> dict[str, str]:
    """Return the parameters of `_Statements` that name a session."""
    return {"app": chat.app, "user": chat.user, "chat": chat.chat}


def _answer_in_scope(event: Event, session: Session) -> None:
    """Give an answer of the user the scope of its call.

    ADK: it gets that of the last task that has written something, and an agent in another scope
    does not see it.
    """
    answered = {each.id for each in event.get_function_responses()}
    if event.author != "user" or not answered:
        return
    for earlier in reversed(session.events):
        if any(call.id in answered for call in earlier.get_function_calls()):
            event.isolation_scope = earlier.isolation_scope
            return


def _begins_invocation(event: Event, session: Session) -> bool:
    invocation = event.invocation_id
    return event.author == "user" and all(e.invocation_id != invocation for e in session.events)


def _size_of(event: Event) -> int:
    size = _EVENT_BYTES
    for part in (event.content.parts if event.content else None) or ():
        size += len(part.text or "")
        if part.inline_data is not None:
            size += len(part.inline_data.data or b"")
        if part.function_call is not None:
            size += len(repr(part.function_call.args))
        if part.function_response is not None:
            size += len(repr(part.function_response.response))
    return size
