"""Checks what no linter checks: portable lock files and the length of source files.

A lock file pins by hash and names no host, so that it installs from any configured index. An npm
lock file written against an incomplete index silently lacks platform packages, and ``npm ci`` then
fails on other machines; so each optional package that is named must be there.
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
MAX_LINES = 500
SOURCES = ("backend/src/", "frontend/", "e2e/")
SUFFIXES = {".css", ".js", ".mjs", ".py", ".ts", ".tsx"}


def tracked() -> list[str]:
    """Return the paths of the tracked files, relative to the root, without deleted ones."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def python_lock_errors(name: str, text: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines(), 1):
        if "://" in line or line.lstrip().startswith(
            ("-i", "--index", "--extra-index", "--find-links")
        ):
            yield f"{name}:{number} names a source of packages"


def npm_lock_errors(name: str, text: str) -> Iterator[str]:
    packages: dict[str, dict[str, Any]] = json.loads(text)["packages"]
    for path, package in packages.items():
        if "://" in package.get("resolved", ""):
            yield f"{name} names a host for {path}"
        for wanted in package.get("optionalDependencies", {}):
            if not any(folder + wanted in packages for folder in search_path(path)):
                yield f"{name} lacks {wanted}, a platform package of {path or 'the root'}"


def search_path(path: str) -> Iterator[str]:
    """Return the node_modules folders that Node searches from a package, nearest first."""
    folder = path
    while folder:
        yield f"{folder}/node_modules/"
        folder = folder.rpartition("/")[0]
    yield "node_modules/"


def length_errors(name: str, text: str) -> Iterator[str]:
    lines = text.count("\n")
    if lines > MAX_LINES:
        yield f"{name} has {lines} lines; at most {MAX_LINES} are allowed"


def errors() -> Iterator[str]:
    for name in tracked():
        path = ROOT / name
        if path.name == "package-lock.json":
            yield from npm_lock_errors(name, path.read_text("utf-8"))
        elif path.suffix == ".lock":
            yield from python_lock_errors(name, path.read_text("utf-8"))
        elif name.startswith(SOURCES) and path.suffix in SUFFIXES:
            yield from length_errors(name, path.read_text("utf-8"))


def main() -> int:
    found = list(errors())
    for error in found:
        print(error)
    print(f"tree: {len(found)} errors" if found else "tree: clean")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
