"""Checks what no linter looks at: lock files that work anywhere, source files of a readable size.

A lock pins by hash and names no host, so that it installs from whatever index a machine is set up
with. An npm lock written against an incomplete index silently leaves platform packages out, and
``npm ci`` fails elsewhere; so each optional package that is named must be there.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent
LONGEST = 500
SOURCES = ("backend/src/", "frontend/", "e2e/")
SUFFIXES = {".css", ".js", ".mjs", ".py", ".ts", ".tsx"}


def tracked() -> list[str]:
    """Paths of the files git knows, relative to the root, without those deleted on disk."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def python_lock_faults(name: str, text: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines(), 1):
        if "://" in line or line.lstrip().startswith(
            ("-i", "--index", "--extra-index", "--find-links")
        ):
            yield f"{name}:{number} names where packages come from"


def npm_lock_faults(name: str, text: str) -> Iterator[str]:
    packages: dict[str, dict[str, Any]] = json.loads(text)["packages"]
    for path, package in packages.items():
        if "://" in package.get("resolved", ""):
            yield f"{name} names a host for {path}"
        for wanted in package.get("optionalDependencies", {}):
            if not any(place + wanted in packages for place in places(path)):
                yield f"{name} lacks {wanted}, a platform package of {path or 'the root'}"


def places(path: str) -> Iterator[str]:
    """The node_modules folders Node searches from a package's path, nearest first."""
    folder = path
    while folder:
        yield f"{folder}/node_modules/"
        folder = folder.rpartition("/")[0]
    yield "node_modules/"


def length_faults(name: str, text: str) -> Iterator[str]:
    lines = text.count("\n")
    if lines > LONGEST:
        yield f"{name} has {lines} lines; {LONGEST} is the most"


def faults() -> Iterator[str]:
    for name in tracked():
        path = ROOT / name
        if path.name == "package-lock.json":
            yield from npm_lock_faults(name, path.read_text("utf-8"))
        elif path.suffix == ".lock":
            yield from python_lock_faults(name, path.read_text("utf-8"))
        elif name.startswith(SOURCES) and path.suffix in SUFFIXES:
            yield from length_faults(name, path.read_text("utf-8"))


def main() -> int:
    found = list(faults())
    for fault in found:
        print(fault)
    print(f"tree: {len(found)} faults" if found else "tree: clean")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
