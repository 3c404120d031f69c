"""The long soak test of races, kills and schedules; ``python -m tests.faults.soak``.

Prints a table and exits with 1 on any double effect, lost decision or other failure. Forking is
what makes it quick: this process imports everything once and runs no threads.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from tests.faults.soak.cases import Case, cases
from tests.faults.soak.tally import Tally, head

MEMORY: Final = Path("/dev/shm")


def main() -> int:
    """Run the cases that the command line selects."""
    parser = argparse.ArgumentParser(prog="soak", description="Break what is to hold, often.")
    parser.add_argument("words", nargs="*", help="words of the names of some cases")
    parser.add_argument("--count", type=int, help="runs of each case, in place of its own")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--first-seed", type=int, default=0, help="of the seeded schedules")
    parser.add_argument("--json", type=Path, help="where the tallies are written")
    parser.add_argument("--list", action="store_true", help="name the cases and run none")
    given = parser.parse_args()
    chosen = [case for case in cases() if all(word in case.name for word in given.words)]
    if given.list:
        for case in chosen:
            _say(f"{case.count:6} {case.name}")
        return 0
    gc.freeze()
    tallies: list[Tally] = []
    _say(head())
    for case in chosen:
        tallies.append(_run(case, given))
        _say(tallies[-1].row())
        for note in tallies[-1].notes[:20]:
            _say(f"    {note}")
        if given.json is not None:
            given.json.parent.mkdir(parents=True, exist_ok=True)
            given.json.write_text(json.dumps([tally.as_data() for tally in tallies], indent=1))
    return int(not tallies or not all(tally.holds for tally in tallies))


def _run(case: Case, given: argparse.Namespace) -> Tally:
    begun = time.monotonic()
    place = MEMORY if os.access(MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="soak-", dir=place) as folder:
        # The server of a database does not run as the owner of this folder.
        with contextlib.suppress(PermissionError):
            Path(folder).chmod(0o755)
        tally = case.run(
            Path(folder),
            count=given.count or case.count,
            processes=given.processes,
            first_seed=given.first_seed,
        )
    tally.seconds = round(time.monotonic() - begun, 1)
    return tally


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
