"""ADK's sessions in our database, which keep what they have read of long chats."""

from __future__ import annotations

from collections import OrderedDict
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from google.adk.sessions.base_session_service import GetSessionConfig
from google.adk.sessions.database_session_service import DatabaseSessionService
from sqlalchemy import func, select

from sluicegate.adk_private import event_table, read_transaction, revision_of
from sluicegate.core.keys import ChatKey

if TYPE_CHECKING:
    from collections.abc import Iterator

    from google.adk.events.event import Event
    from google.adk.sessions.session import Session

    from sluicegate.stores.sql.database import Database

_EVENT_BYTES: Final = 6 * 1024
"""What an event takes in memory besides its texts."""

_HEAD: Final = GetSessionConfig(num_recent_events=0)


@dataclass(slots=True)
class _Kept:
    """The events of one chat as they were at a revision of its session."""

    revision: str | None
    events: list[Event]
    size: int


class ChatSessions(DatabaseSessionService):
    """ADK's service, for long chats and for several processes.

    Loading thousands of events costs more than everything else of a turn, and all but the newest
    have been seen before: they are kept, and only what is new is read. Events are handed out to
    several users at once, who do not change them, as ADK's own requests do not.

    Every error of the database is a `StoreError`; ADK's own (stale or unknown sessions) stay.
    """

    def __init__(self, database: Database, *, max_bytes: int) -> None:
        """Take the database and how much of it may be kept in memory; 0 keeps nothing."""
        super().__init__(db_engine=database.sessions)
        self._database = database
        self._max_bytes = max_bytes
        self._kept: OrderedDict[ChatKey, _Kept] = OrderedDict()
        self._size = 0

    @property
    def size(self) -> int:
        """About how many bytes are kept."""
        return self._size

    async def get_session(
        self,
        *,
        app_name: str,
        user_id: str,
        session_id: str,
        config: GetSessionConfig | None = None,
    ) -> Session | None:
        """Load a session, as far as it is not here already.

        Raises:
            StoreError: the database could not do it.
        """
        chat = ChatKey(app_name, user_id, session_id)
        with self._judged():
            if config is not None:
                return await self._load(chat, config)
            known = self._kept.get(chat)
            session = None if known is None else await self._go_on(chat, known)
            if session is None:
                session = await self._load(chat, None)
            if session is None:
                self._forget(chat)
            else:
                self._keep(chat, session)
            return session

    async def append_event(self, session: Session, event: Event) -> Event:
        """Store an event; it comes after every other one, whatever the clocks say.

        Raises:
            StoreError: the database could not do it.
            StaleSessionError: somebody else has written to the session.
        """
        if not event.partial and session.events:
            # ADK: events are read in the order of their times, and the time of the last one is
            # the revision by which a second writer is noticed. Clocks differ, and jump.
            last = round(session.events[-1].timestamp * 1e6)
            event.timestamp = max(round(event.timestamp * 1e6), last + 1) / 1e6
        with self._judged():
            return await super().append_event(session=session, event=event)

    async def create_session(self, **given: Any) -> Session:
        """Create a session; raises StoreError when the database could not do it."""
        with self._judged():
            return await super().create_session(**given)

    async def delete_session(self, app_name: str, user_id: str, session_id: str) -> None:
        """Delete a session; raises StoreError when the database could not do it."""
        self._forget(ChatKey(app_name, user_id, session_id))
        with self._judged():
            await super().delete_session(app_name=app_name, user_id=user_id, session_id=session_id)

    @contextmanager
    def _judged(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            failure = self._database.store_error(error)
            if failure is None:
                raise
            raise failure from error

    async def _load(self, chat: ChatKey, config: GetSessionConfig | None) -> Session | None:
        return await super().get_session(
            app_name=chat.app, user_id=chat.user, session_id=chat.chat, config=config
        )

    async def _go_on(self, chat: ChatKey, known: _Kept) -> Session | None:
        """The session with what is kept and what is new; None where that is not all of it."""
        head = await self._load(chat, _HEAD)
        if head is None or revision_of(head) == known.revision:
            if head is not None:
                head.events = list(known.events)
            return head
        last = known.events[-1]
        session = await self._load(chat, GetSessionConfig(after_timestamp=last.timestamp))
        if session is None:
            return None
        # Of one moment there may be several, and the kept one must be among them.
        names = [event.id for event in session.events]
        if last.id not in names:
            return None
        seen = {event.id for event in known.events[-len(names) :]}
        events = [*known.events, *(e for e in session.events if e.id not in seen)]
        if await self._count(chat) != len(events):
            return None
        session.events = events
        return session

    async def _count(self, chat: ChatKey) -> int:
        stored = event_table(self)
        statement = select(func.count()).where(
            stored.app_name == chat.app,
            stored.user_id == chat.user,
            stored.session_id == chat.chat,
        )
        async with read_transaction(self) as transaction:
            return await transaction.scalar(statement) or 0

    def _keep(self, chat: ChatKey, session: Session) -> None:
        known, events = self._kept.get(chat), session.events
        self._forget(chat)
        size, read = 0, 0
        if known is not None and known.events[-1] in events[len(known.events) - 1 :][:1]:
            size, read = known.size, len(known.events)
        size += sum(map(_size_of, events[read:]))
        if not events or size > self._max_bytes:
            return
        self._kept[chat] = _Kept(revision_of(session), list(events), size)
        self._size += size
        while self._size > self._max_bytes:
            self._forget(next(iter(self._kept)))

    def _forget(self, chat: ChatKey) -> None:
        known = self._kept.pop(chat, None)
        if known is not None:
            self._size -= known.size


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
