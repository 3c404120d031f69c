"""Builds the release twice, in two fresh clones, and compares the bytes: ``make reproducible``.

The clones have paths of different lengths, and one of them another locale and time zone, since
these are what build tools leave in their output most often.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
KEPT: Final = ROOT / "build" / "different"
"""Where files go that are not the same in both builds."""

OTHER: Final = {"TZ": "Pacific/Auckland", "LC_ALL": "C", "PYTHONHASHSEED": "4711"}


def build(clone: Path, commit: str, environment: dict[str, str]) -> dict[str, bytes]:
    """Clone a commit, build its release, and return the files by name."""
    subprocess.run(["git", "clone", "--quiet", "--no-checkout", str(ROOT), str(clone)], check=True)
    subprocess.run(["git", "checkout", "--quiet", commit.strip()], cwd=clone, check=True)
    # Variables of the calling make would name its folder.
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    command = ["make", "--silent", "release", f"PYTHON={sys._base_executable}"]  # type: ignore[attr-defined]
    subprocess.run(command, cwd=clone, env=kept | environment, check=True)
    return contents(clone / "build" / "release")


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def differences(one: dict[str, bytes], other: dict[str, bytes]) -> list[str]:
    """Return the names of the files that are not the same in both builds."""
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        # Another commit may be made meanwhile.
        ask = ["git", "rev-parse", "HEAD"]
        commit = subprocess.run(ask, cwd=ROOT, check=True, capture_output=True, text=True).stdout
        first = build(Path(folder, "a"), commit, {})
        second = build(Path(folder, "a-folder-with-a-longer-name"), commit, OTHER)
    if found := differences(first, second):
        for name in found:
            for each, files in (("first", first), ("second", second)):
                KEPT.mkdir(parents=True, exist_ok=True)
                (KEPT / f"{each}-{name}").write_bytes(files.get(name, b""))
        sys.exit(f"The two builds differ in: {', '.join(found)}. They are in {KEPT}.")
    print(f"Two builds in two clones have the same bytes: {len(first)} files.")


if __name__ == "__main__":
    main()
