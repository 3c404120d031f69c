"""Opens the stores of an engine: streams, events, database, sessions and leases."""

from __future__ import annotations

import time
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from sluicegate.core.event_reading import is_user_message, notes_of
from sluicegate.engine.current_guard import CURRENT_GUARD
from sluicegate.stores.leases.database_leases import DatabaseLeases
from sluicegate.stores.leases.process_leases import ProcessLeases
from sluicegate.stores.sessions import ChatSessions
from sluicegate.stores.sql.database import Database
from sluicegate.stores.streams.from_url import open_rates, open_stream_store, open_user_events
from sluicegate.wire.user_events import message_stored

if TYPE_CHECKING:
    from collections.abc import Callable

    from google.adk.events.event import Event

    from sluicegate.core.chat_and_turn_keys import ChatKey
    from sluicegate.engine.options import EngineOptions
    from sluicegate.engine.recorder import Recorder
    from sluicegate.engine.timeouts_and_intervals import EngineTimings
    from sluicegate.stores.leases.base import Leases
    from sluicegate.stores.streams.base import StreamStore
    from sluicegate.stores.streams.user_events import UserEvents
    from sluicegate.stores.streams.valkey_shared_rate_limits import ValkeyRates


class OpenStores(NamedTuple):
    """The stores of chats."""

    streams: StreamStore
    events: UserEvents
    rates: ValkeyRates | None
    database: Database
    sessions: ChatSessions
    leases: Leases


async def open_stores(
    options: EngineOptions, recorder: Recorder | None, timings: EngineTimings, *, app: str
) -> OpenStores:
    """Open streams, events, database, sessions and leases, and create their tables.

    Raises:
        ConfigurationError: one of them cannot be used; none stays open.
    """
    async with AsyncExitStack() as opened:
        streams = await open_stream_store(
            options.streams,
            max_chunks=options.max_turn_chunks,
            max_bytes=options.max_turn_bytes,
            timings=timings.streams,
        )
        opened.push_async_callback(streams.aclose)
        events = await open_user_events(
            options.streams, app, lease_ttl=options.lease_ttl, timings=timings.streams
        )
        opened.push_async_callback(events.aclose)
        rates = open_rates(options.streams, app, timings=timings.streams)
        if rates is not None:
            opened.push_async_callback(rates.aclose)
        database = await Database.open(
            options.sessions, clock_offset=timings.clock_offset, timings=timings.database
        )
        opened.push_async_callback(database.close)
        on_stored: list[Callable[[ChatKey, Event], None]] = [partial(_publish_user_message, events)]
        if recorder is not None:
            on_stored.append(recorder.event)
        sessions = ChatSessions(
            database,
            max_bytes=options.session_cache_bytes,
            on_stored=on_stored,
            may_store=_keeps_chat,
        )
        await database.create_session_tables(sessions)
        leases: Leases
        if database.is_exclusive:
            leases = await ProcessLeases.open(
                database, lambda: time.monotonic() + timings.clock_offset()
            )
        else:
            leases = DatabaseLeases(database)
        opened.pop_all()
        return OpenStores(streams, events, rates, database, sessions, leases)


def _keeps_chat() -> bool:
    guard = CURRENT_GUARD.get()
    return guard is None or not guard.is_lost


def _publish_user_message(events: UserEvents, chat: ChatKey, event: Event) -> None:
    message = notes_of(event).get("userMessage")
    if message and is_user_message(event):
        events.publish(chat.user, message_stored(chat.chat, message))
