"""Whether the stores of an engine answer."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from sluicegate.errors import StoreError, Unavailable

if TYPE_CHECKING:
    from sluicegate.stores.sql.database import Database
    from sluicegate.stores.streams.base import StreamStore

NOT_SHARED: Final = (
    "streams are kept in memory: with several replicas a turn is read live only at the one that "
    "runs it (--streams)"
)
STREAMS_AWAY: Final = "the stream server does not answer: turns are read live only where they run"


async def readiness(database: Database, streams: StreamStore, *, within: float) -> list[str]:
    """Return notes for the operator; without any, all is well.

    The stream server decides nothing: every approval works without it, so its failure is a note.

    Raises:
        Unavailable: the database does not answer ``within`` so many seconds.
    """
    try:
        async with asyncio.timeout(within):
            shared, _ = await asyncio.gather(streams.check(), database.check())
    except (StoreError, TimeoutError) as error:
        raise Unavailable("The database does not answer; try again.", retry_after=5) from error
    if database.is_exclusive:
        return []
    if not streams.is_shared:
        return [NOT_SHARED]
    return [] if shared else [STREAMS_AWAY]
