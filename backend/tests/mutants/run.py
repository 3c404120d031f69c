"""Break each promise once and see that a test notices; ``python backend/tests/mutants/run.py``.

Words of a mutant's name choose some of them, and each is met by the tests that should notice it;
``--all`` has every test meet it. The exit code is 1 if one survives.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import yaml

ROOT: Final = Path(__file__).resolve().parents[3]
SOURCE: Final = ROOT / "backend" / "src"
TESTS: Final = ROOT / "backend" / "tests"
SECONDS: Final = 240
"""For the tests of one mutant."""


@dataclass(frozen=True)
class Mutant:
    """A change of one file that breaks a promise, and the tests that should notice.

    ``also`` are further changes of that file, ``{old, new}`` each.
    """

    name: str
    tests: list[str]
    file: str
    old: str
    new: str
    also: list[dict[str, str]] = field(default_factory=list)

    def broken(self, source: Path) -> str:
        """The text of the file with the change.

        Raises:
            ValueError: what is changed is not there exactly once.
        """
        text = (source / "sluicegate" / self.file).read_text()
        for change in ({"old": self.old, "new": self.new}, *self.also):
            if (times := text.count(change["old"])) != 1:
                raise ValueError(f"{self.name}: {self.file} holds its text {times} times")
            text = text.replace(change["old"], change["new"])
        return text


def mutants() -> list[Mutant]:
    """All of them, as the table beside this file names them."""
    table = Path(__file__).with_name("mutants.yaml").read_text()
    return [Mutant(**row) for row in yaml.safe_load(table)]


def survives(mutant: Mutant, *, workers: str, every: bool) -> bool:
    """Whether no test notices: of those that should, or of every one there is."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "src")
        shutil.copytree(SOURCE, source, ignore=shutil.ignore_patterns("__pycache__"))
        (source / "sluicegate" / mutant.file).write_text(mutant.broken(SOURCE))
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", workers, "--no-header"]
        tests = [str(TESTS)] if every else [str(TESTS / name) for name in mutant.tests]
        testing = subprocess.Popen(
            [*command, *tests],
            cwd=ROOT,
            # All rows of long tables, of which a run of the suite plays a part each day.
            env=os.environ | {"PYTHONPATH": str(source), "PART": "all"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            printed, _ = testing.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            # What never ends has been noticed; the servers that it started end with it.
            os.killpg(testing.pid, signal.SIGKILL)
            testing.communicate()
            return False
    if testing.returncode not in (0, 1):
        raise RuntimeError(f"{mutant.name}: the tests could not be run\n{printed.decode()}")
    return testing.returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description="Break each promise once.")
    parser.add_argument("words", nargs="*", help="words of the names of some mutants")
    parser.add_argument("-n", default="0", dest="workers", help="processes for tests (0: none)")
    parser.add_argument("--all", action="store_true", help="meet each with every test")
    given = parser.parse_args()
    chosen = [one for one in mutants() if all(word in one.name for word in given.words)]
    alive = 0
    for mutant in chosen:
        begun = time.monotonic()
        lives = survives(mutant, workers=given.workers, every=given.all)
        alive += lives
        word = "SURVIVED" if lives else "killed"
        print(f"{word:9} {time.monotonic() - begun:5.0f} s  {mutant.name}", flush=True)
    print(f"{len(chosen) - alive} of {len(chosen)} mutants were killed.")
    return int(alive > 0 or not chosen)


if __name__ == "__main__":
    sys.exit(main())
