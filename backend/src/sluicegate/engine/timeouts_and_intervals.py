"""The timeouts and intervals of the engine."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from sluicegate.stores.sql.time_limits import DatabaseTimings
from sluicegate.stores.streams.time_limits import ValkeyTimings

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class EngineTimings:
    """Waits and intervals in seconds that are no settings, and the database's clock."""

    clock_offset: Callable[[], float] = lambda: 0.0
    """Added to the database's clock; deadlines go by it."""
    decision: float = 2.0
    """For which a decision from outside the chat page waits for the turn that runs."""
    lease: float = 2.0
    """For which a user's message waits for a chat that another process holds."""
    stream: float = 1.0
    """From a lease to the first chunk of its turn, for a reader in another process."""
    lease_poll: float = 1.0
    """Between two polls of the leases."""
    sweep: float = 30.0
    """Between two looks for approvals whose deadline has passed or whose process has died."""
    webhook_poll: float = 0.25
    """Between two looks for events of webhooks that another process has written."""
    readiness: float = 4.5
    """In which the stores must answer to be ready."""
    database: DatabaseTimings = field(default_factory=DatabaseTimings)
    """The time limits of the database."""
    streams: ValkeyTimings = field(default_factory=ValkeyTimings)
    """The time limits of the server of the streams."""
    worker_listing: float = 5.0
    """In which a remote tool worker lists its tools."""


DEFAULT_TIMINGS: Final = EngineTimings()
