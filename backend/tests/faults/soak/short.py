"""Runs the soak test in a process of its own."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Final

BACKEND: Final = Path(__file__).resolve().parents[3]


async def run(*args: str) -> tuple[int | None, str]:
    """Run Python; returns its exit code and its output."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, *args, cwd=BACKEND, stdout=asyncio.subprocess.PIPE
    )
    printed, _ = await process.communicate()
    return process.returncode, printed.decode()


async def soaked(folder: Path, count: int, *words: str) -> int:
    """Run the cases whose names contain these words; returns the number of runs."""
    results = folder / "results.json"
    options = ("--count", str(count), "--json", str(results))
    code, printed = await run("-m", "tests.faults.soak", *words, *options)
    assert code == 0, printed
    return sum(tally["runs"] for tally in json.loads(results.read_text()))
