"""The process of `bench.people`, and the stores of a server that they talk to."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import asyncpg
import redis

from bench.client import BenchError
from bench.server_process import PATH, module, tree_seconds
from tests.real_stores.postgres import Postgres
from tests.real_stores.valkey import Valkey

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from bench.client import Address


class PeopleProcess:
    """People in a process of their own; it is stopped at the end of the ``with`` statement.

    ``kind`` is that of the server. ``scale`` shortens answers and pauses.
    """

    def __init__(self, address: Address, kind: str, *, scale: float) -> None:
        command = module("bench.people", address.host, str(address.port), kind, str(scale))
        self._process = subprocess.Popen(
            command,
            env={**os.environ, "PYTHONPATH": PATH},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def let_in(self, people: int) -> None:
        """Let further people in until there are so many."""
        self._command(people=people)

    def measure(self, seconds: float) -> dict[str, Any]:
        """Return what they see in the next seconds, as `bench.people.shortened` does.

        Raises:
            BenchError: one of them cannot go on.
        """
        sample: dict[str, Any] = self._command(measure=seconds)
        return sample

    def leave(self) -> dict[str, Any]:
        """Let all read to the end and leave; returns the same since the last measurement began.

        Raises:
            BenchError: one of them cannot go on.
        """
        sample: dict[str, Any] = self._command(leave=1)
        return sample

    def _command(self, **command: float) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise BenchError("The people have left early.")
        return json.loads(line)

    def __enter__(self) -> PeopleProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.communicate()


@dataclass(frozen=True, slots=True)
class Used:
    """What PostgreSQL and Valkey have used up to now.

    ``commits`` are transactions that have written, ``log_bytes`` their write-ahead log,
    ``stream_bytes`` what Valkey has received and sent.
    """

    database_seconds: float = 0.0
    streams_seconds: float = 0.0
    commits: int = 0
    log_bytes: int = 0
    stream_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Stores:
    """A PostgreSQL server that syncs its commits to disk, and a Valkey server."""

    postgres: Postgres
    valkey: Valkey

    def options(self) -> tuple[str, ...]:
        """Return the options of a server that uses them."""
        return ("--sessions", self.postgres.url(), "--streams", self.valkey.url())

    def used(self) -> Used:
        """Return what they have used up to now."""
        commits, log_bytes = self.rows(
            "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint,"
            " pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint"
        )[0]
        with redis.Redis(host="127.0.0.1", port=self.valkey.port) as client:
            said: Any = client.info()
        return Used(
            tree_seconds(self.postgres.pid),
            tree_seconds(self.valkey.pid),
            commits,
            log_bytes,
            said["total_net_input_bytes"] + said["total_net_output_bytes"],
        )

    def rows(self, query: str) -> list[Any]:
        """Return the rows of a query."""

        async def fetched() -> list[Any]:
            connection = await asyncpg.connect(self.postgres.url().replace("+asyncpg", ""))
            try:
                return list(await connection.fetch(query))
            finally:
                await connection.close()

        return asyncio.run(fetched())


@contextlib.contextmanager
def running_stores(folder: Path) -> Iterator[Stores]:
    """Start both servers in a folder."""
    folder.mkdir(exist_ok=True)
    stores = Stores(Postgres(folder / "postgres", is_durable=True), Valkey(folder / "valkey"))
    stores.postgres.create()
    stores.postgres.start()
    try:
        stores.valkey.start()
        yield stores
    finally:
        stores.valkey.kill()
        stores.postgres.stop()
