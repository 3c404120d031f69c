"""Whether an engine can answer chats, and what its users will miss."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from sluicegate.errors import StoreError, Unavailable

if TYPE_CHECKING:
    from sluicegate.stores.base import StreamStore
    from sluicegate.stores.sql.database import Database

SECONDS: Final = 4.5
"""How long the stores may take to answer."""

NOT_SHARED: Final = (
    "streams are kept in memory: with several replicas a turn is read live only at the one that "
    "runs it (--streams)"
)
STREAMS_AWAY: Final = "the stream server does not answer: turns are read live only where they run"


async def readiness(database: Database, streams: StreamStore) -> list[str]:
    """Return notes for whoever runs the server; without any, all is well.

    The stream server decides nothing: without it every approval works, so it is only noted.

    Raises:
        Unavailable: the database does not answer.
    """
    try:
        async with asyncio.timeout(SECONDS):
            shared, _ = await asyncio.gather(streams.check(), database.check())
    except (StoreError, TimeoutError) as error:
        raise Unavailable("The database does not answer; try again.", retry_after=5) from error
    if database.is_exclusive:
        return []
    if not streams.is_shared:
        return [NOT_SHARED]
    return [] if shared else [STREAMS_AWAY]
