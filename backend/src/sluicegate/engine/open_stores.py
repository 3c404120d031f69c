"""The stores that the settings name, opened together or not at all."""

from __future__ import annotations

import time
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, NamedTuple

from sluicegate.engine.tape import TapedSessions
from sluicegate.stores.leases.database_leases import DatabaseLeases
from sluicegate.stores.leases.process_leases import ProcessLeases
from sluicegate.stores.sessions import ChatSessions
from sluicegate.stores.sql.database import Database
from sluicegate.stores.streams.open_streams import open_streams

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluicegate.engine.options import EngineOptions
    from sluicegate.engine.tape import Tape
    from sluicegate.stores.base import StreamStore
    from sluicegate.stores.leases.lease_port import Leases


class OpenStores(NamedTuple):
    """What chats are kept in."""

    streams: StreamStore
    database: Database
    sessions: ChatSessions


async def open_stores(
    options: EngineOptions, tape: Tape | None, clock_offset: Callable[[], float]
) -> OpenStores:
    """Open streams, database and sessions, with the tables of all.

    Raises:
        ConfigurationError: one of them cannot be used; none stays open.
    """
    async with AsyncExitStack() as opened:
        streams = await open_streams(
            options.streams,
            max_chunks=options.max_turn_chunks,
            max_bytes=options.max_turn_bytes,
        )
        opened.push_async_callback(streams.aclose)
        database = await Database.open(options.sessions, clock_offset=clock_offset)
        opened.push_async_callback(database.close)
        kept = options.session_cache_bytes
        sessions = (
            ChatSessions(database, max_bytes=kept)
            if tape is None
            else TapedSessions(tape, database, max_bytes=kept)
        )
        await database.make_tables_of(sessions)
        opened.pop_all()
        return OpenStores(streams, database, sessions)


async def open_leases(database: Database, clock_offset: Callable[[], float]) -> Leases:
    """Return the leases of the chats, which lie in the database where others may be on it.

    Raises:
        StoreError: the database cannot be written.
    """
    if not database.is_exclusive:
        return DatabaseLeases(database)
    return await ProcessLeases.open(database, lambda: time.monotonic() + clock_offset())
