"""The time limits of a database."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DatabaseTimings:
    """Time limits in seconds; a request learns within 5 seconds that the database is down."""

    busy: float = 4.0
    """How long a statement on a SQLite file waits for another writer."""

    connect: float = 3.0
    """How long connecting to a PostgreSQL server may take."""

    pool: float = 3.0
    """How long a transaction waits for a free connection."""

    command: float = 4.0
    """How long one statement may take on a PostgreSQL server."""

    response: float = 4.0
    """How long one of our transactions may take in all on a PostgreSQL server."""

    retry_pause: float = 0.5
    """The pause between two attempts of a statement that is retried."""
