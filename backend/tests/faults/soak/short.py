"""Runs the soak test in a process of its own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

BACKEND: Final = Path(__file__).resolve().parents[3]


async def run(*command: str) -> tuple[int | None, str]:
    """Run a command; returns its exit code and its output."""
    process = await asyncio.create_subprocess_exec(
        *command, cwd=BACKEND, stdout=asyncio.subprocess.PIPE
    )
    printed, _ = await process.communicate()
    return process.returncode, printed.decode()


async def soaked(soak: Sequence[str], folder: Path, count: int, *words: str) -> int:
    """Run the cases whose names contain these words; returns the number of runs."""
    results = folder / "results.json"
    code, printed = await run(*soak, *words, "--count", str(count), "--json", str(results))
    assert code == 0, printed
    return sum(tally["runs"] for tally in json.loads(results.read_text()))
