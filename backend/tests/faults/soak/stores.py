"""The stores of the soak test, each for several processes."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, Literal
from unittest.mock import patch

from google.adk.agents.llm_agent import LlmAgent

from sluicegate.engine.chat_engine import ChatEngine
from sluicegate.engine.options import EngineOptions
from sluicegate.engine.timeouts_and_intervals import EngineTimings
from sluicegate.errors import HeldByAnotherOwner
from sluicegate.stores.sql.database import Database
from tests.engine.talk import Turn
from tests.faults.soak.child import Child
from tests.faults.soak.paying import Effects, payer
from tests.patience import LEASE
from tests.real_stores.postgres import Postgres
from tests.stores.builders import LIMIT, PATIENT

Kind = Literal["sqlite", "postgresql"]
KINDS: Final[tuple[Kind, ...]] = ("sqlite", "postgresql")

LEFT: Final = 6.0
"""Seconds that the leases of a killed process last from when another one continues."""


async def when_released(send: Callable[[], Awaitable[Turn]]) -> Turn:
    """Send as a client does: again until the dead process has lost the chat."""
    deadline = asyncio.get_running_loop().time() + LEFT + LIMIT
    while True:
        try:
            return await send()
        except HeldByAnotherOwner:
            if asyncio.get_running_loop().time() > deadline:
                raise
            await asyncio.sleep(0.25)


@contextlib.asynccontextmanager
async def opened(
    url: str, agent: LlmAgent, folder: Path, *, shared: bool = False
) -> AsyncIterator[ChatEngine]:
    """An engine on a database.

    ``shared``: other processes are on its file too. The lock that keeps them off is left out then,
    so that ledger and leases are all that stands between them.
    """
    options = EngineOptions(
        sessions=url,
        artifacts=f"file:{folder}/artifacts",
        lease_ttl=LEASE,
        max_turns_per_user=1000,
        max_turns_per_minute=100_000,
        max_messages_per_minute=100_000,
        max_previews_per_minute=100_000,
    )
    unlocked = partial(Database.open, exclusive=False)
    with patch.object(Database, "open", unlocked) if shared else contextlib.nullcontext():
        engine = await ChatEngine.open(agent, options, timings=EngineTimings(database=PATIENT))
    try:
        yield engine
    finally:
        await engine.close()


@dataclass
class Databases:
    """Databases of one kind in a folder."""

    kind: Kind
    folder: Path
    server: Postgres | None

    @property
    def is_alone(self) -> bool:
        """Whether each process that is killed has a database of its own."""
        return self.server is None

    def url(self, name: str) -> str:
        """A database with all tables; of PostgreSQL it is always the same one."""
        if self.server is not None:
            return self.server.url()
        shutil.copy(self._template, self.folder / f"{name}.db")
        return f"sqlite+aiosqlite:///{self.folder / name}.db"

    def drop(self, name: str) -> None:
        """Remove the file of a database."""
        for file in self.folder.glob(f"{name}.db*"):
            file.unlink()

    @property
    def _template(self) -> Path:
        return self.folder / "template.sqlite"

    async def make_tables(self) -> None:
        """Create the tables."""
        url = self.server.url() if self.server else f"sqlite+aiosqlite:///{self._template}"
        async with opened(url, payer(Effects(self.folder / "none")), self.folder):
            pass


@contextlib.contextmanager
def databases(kind: Kind, folder: Path) -> Iterator[Databases]:
    """Databases of a kind; a server runs as long as they are used."""
    server = Postgres(folder / "postgres") if kind == "postgresql" else None
    if server is not None:
        server.create()
        server.start()
    try:
        made = Databases(kind, folder, server)
        Child(made.make_tables).result(60)
        yield made
    finally:
        if server is not None:
            server.stop()
