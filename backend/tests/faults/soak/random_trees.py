"""Random agent trees, each compared with plain ADK without its gates."""

from __future__ import annotations

import asyncio
import gc
import tempfile
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

from sluicegate.engine.chat_engine import ChatEngine
from sluicegate.engine.options import EngineOptions
from sluicegate.engine.timeouts_and_intervals import EngineTimings
from tests.engine import tree_oracle
from tests.faults.soak.portions import play_portions
from tests.faults.soak.stores import Databases
from tests.faults.soak.tally import Tally, failure
from tests.stores.builders import LIMIT, PATIENT

PORTION: Final = 100
"""Seeds that one process runs."""


def play(databases: Databases, first: int, count: int, processes: int) -> Tally:
    """Run that many seeds from the first on, in that many processes at a time."""
    url = None if databases.is_alone else databases.url("")
    return play_portions(
        Tally(f"random trees, {databases.kind}"),
        partial(_play, databases.folder, url),
        range(first, first + count),
        portion=PORTION,
        processes=processes,
    )


def _play(folder: Path, url: str | None, seeds: range) -> list[tuple[str, str]]:
    # Imported modules stay; scanning them after each run would take most of the time.
    gc.freeze()
    warnings.simplefilter("ignore")
    failures = []
    for seed in seeds:
        with tempfile.TemporaryDirectory(dir=folder) as place:
            try:
                asyncio.run(_play_one(Path(place), url, seed))
            except BaseException as error:  # noqa: BLE001 - whatever it is, it is counted
                failures.append(failure(error, f"seed {seed}"))
    return failures


async def _play_one(folder: Path, url: str | None, seed: int) -> None:
    stores: dict[str, Any] = {
        "sessions": url or f"sqlite+aiosqlite:///{folder}/chats.db",
        "artifacts": f"file:{folder}/artifacts",
    }

    @asynccontextmanager
    async def opened(target: Any, **settings: Any) -> AsyncIterator[ChatEngine]:
        options = EngineOptions(**{**stores, **settings})
        # A decision does not return before its turn has started, however busy the machine is.
        timings = EngineTimings(decision=LIMIT, database=PATIENT)
        engine = await ChatEngine.open(target, options, timings=timings)
        try:
            yield engine
        finally:
            await engine.close()

    await tree_oracle.play(opened, seed)
