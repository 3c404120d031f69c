"""Writes the databases of earlier versions: ``python -m tests.upgrades.write_fixtures`` in backend.

Each version of the schema is served once from the commit that had it last, on SQLite and on
PostgreSQL. Versions as arguments write these alone; add a row to `COMMITS` with each new version.
"""

from __future__ import annotations

import asyncio
import gzip
import os
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Final

from tests.real_stores.databases import fresh_database
from tests.real_stores.postgres import Postgres

COMMITS: Final = {
    1: "8f46aa9",
    2: "6c4e4b8",
    3: "0f5a2d7",
    4: "19921a3",
    5: "0a2306b",
    6: "f460389",
    7: "a293049",
    8: "7788de3",
    9: "aef4a3a",
    10: "c4a8910",
    11: "5840fc1",
    12: "3e7cd84",
    13: "7bc183c",
    14: "41fd019",
    15: "8580d54",
    16: "f9bfae9",
    17: "8a19bf2",
}
"""The last commit of each version of the schema."""

FIRST_ON_POSTGRESQL: Final = 2
ROOT: Final = Path(__file__).resolve().parents[3]
FIXTURES: Final = Path(__file__).parent / "fixtures"
OLD_SERVER: Final = Path(__file__).with_name("old_server.py")


def leave(source: Path, sessions: str, folder: Path) -> None:
    """Let a server of a source tree leave its calls in a database."""
    environment = {**os.environ, "PYTHONPATH": str(source / "backend" / "src")}
    command = [sys.executable, "-W", "ignore", str(OLD_SERVER), sessions, str(folder / "files")]
    subprocess.run(command, env=environment, check=True)


def packed(text: bytes, path: Path) -> None:
    path.write_bytes(gzip.compress(text, mtime=0))


def write_sqlite(version: int, source: Path, folder: Path) -> None:
    leave(source, f"sqlite+aiosqlite:///{folder}/chats.db", folder)
    with closing(sqlite3.connect(folder / "chats.db")) as connection:
        connection.execute("VACUUM INTO ?", (str(folder / "copy.db"),))
    packed((folder / "copy.db").read_bytes(), FIXTURES / f"schema-{version}.db.gz")


async def write_postgresql(version: int, source: Path, folder: Path, server: Postgres) -> None:
    async with fresh_database(server) as url:
        await asyncio.to_thread(leave, source, url, folder)
        dump = folder / "dump.sql"
        options = ("--inserts", "--no-owner", "--no-privileges", "-f", str(dump))
        await asyncio.to_thread(server.run, "pg_dump", *options, url.rpartition("/")[2])
    packed(statements(dump.read_text("utf-8")).encode(), FIXTURES / f"schema-{version}.sql.gz")


def statements(dump: str) -> str:
    """Return a dump without what only psql understands, and without settings of the session."""
    kept = [
        line
        for line in dump.splitlines()
        if line and not line.startswith(("--", "\\", "SET ", "SELECT pg_catalog.set_config"))
    ]
    return "\n".join([*kept, ""])


def write(version: int, server: Postgres) -> None:
    """Write both fixtures of a version."""
    with tempfile.TemporaryDirectory() as name:
        source = Path(name, "source")
        source.mkdir()
        archive = ["git", "-C", str(ROOT), "archive", COMMITS[version], "backend/src"]
        data = subprocess.run(archive, check=True, capture_output=True).stdout
        subprocess.run(["tar", "-x", "-C", str(source)], input=data, check=True)
        for kind in ("sqlite", "postgresql"):
            Path(name, kind).mkdir()
        write_sqlite(version, source, Path(name, "sqlite"))
        if version >= FIRST_ON_POSTGRESQL:
            asyncio.run(write_postgresql(version, source, Path(name, "postgresql"), server))


def main(arguments: list[str]) -> None:
    FIXTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        server = Postgres(Path(name, "cluster"))
        server.create()
        server.start()
        try:
            for version in [int(each) for each in arguments] or COMMITS:
                write(version, server)
        finally:
            server.stop()


if __name__ == "__main__":
    main(sys.argv[1:])
