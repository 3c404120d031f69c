"""Sets the version of a release and cuts the changelog: ``python scripts/cut_release.py 0.2.0``.

``pyproject.toml`` is the place of the version. The files below repeat it, because npm and Compose
read no other file; a test compares them. The entries of ``Unreleased`` become the section of the
version, with the date of today in UTC. Nothing is committed and nothing is tagged.
"""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent

PLACES: Final = {
    "pyproject.toml": r'^version = "([^"]+)"',
    "deploy/compose.yaml": r"^  image: sluicegate:(\S+)",
    "deploy/kubernetes.yaml": r"^ +image: [\w./-]*sluicegate:(\S+)",
    "docs/how-to/scale-out.md": r"/sluicegate:(\d+\.\d+\.\d+)",
    "frontend/client/package.json": r'^  "version": "([^"]+)"',
    "frontend/client/README.md": r"sluicegate-(\d+\.\d+\.\d+)\.tgz",
    "frontend/app/package.json": r'^(?:  "version"|    "sluicegate"): "([^"]+)"',
    "package-lock.json": (
        r'^    "frontend/(?:app|client)": \{\n(?:      .*\n)*?      "version": "([^"]+)"'
        r'|^        "sluicegate": "(\d[^"]*)"'
    ),
}
"""Where the version stands: a file, and the pattern around each of its places."""

UNRELEASED: Final = "## [Unreleased]\n"
_VERSION: Final = re.compile(r"\d+\.\d+\.\d+")


def versions(name: str, text: str) -> list[str]:
    """Return the versions that a file of `PLACES` names."""
    return [
        next(each for each in match.groups() if each)
        for match in re.finditer(PLACES[name], text, re.MULTILINE)
    ]


def with_version(name: str, text: str, version: str) -> str:
    """Return the text of a file of `PLACES` with another version.

    Raises:
        SystemExit: The file has no place for it.
    """
    found = 0

    def replace(match: re.Match[str]) -> str:
        nonlocal found
        found += 1
        old = next(each for each in match.groups() if each)
        head, _, tail = match.group().rpartition(old)
        return f"{head}{version}{tail}"

    changed = re.sub(PLACES[name], replace, text, flags=re.MULTILINE)
    if not found:
        raise SystemExit(f"{name} does not name the version where it is expected.")
    return changed


def cut(changelog: str, version: str, date: str) -> str:
    """Return the changelog with its unreleased entries as the section of a version.

    Raises:
        SystemExit: The version has a section already, or nothing was changed.
    """
    if f"\n## [{version}]" in changelog:
        raise SystemExit(f"CHANGELOG.md already has a section {version}; choose the next version.")
    before, found, after = changelog.partition(UNRELEASED)
    entries, rest_heading, rest = after.partition("\n## [")
    if not found or not re.search(r"^- ", entries, re.MULTILINE):
        raise SystemExit(
            "CHANGELOG.md has no entries under Unreleased; there is nothing to release."
        )
    section = f"## [{version}] - {date}\n{entries}"
    return f"{before}{UNRELEASED}\n{section}{rest_heading}{rest}"


def main(arguments: list[str]) -> None:
    if len(arguments) != 1 or not _VERSION.fullmatch(arguments[0]):
        raise SystemExit("Give the version, such as: python scripts/cut_release.py 0.2.0")
    [version] = arguments
    changelog = ROOT / "CHANGELOG.md"
    texts = {changelog: cut(changelog.read_text("utf-8"), version, f"{datetime.now(UTC):%Y-%m-%d}")}
    for name in PLACES:
        path = ROOT / name
        texts[path] = with_version(name, path.read_text("utf-8"), version)
    # Nothing is written unless everything can be.
    for path, text in texts.items():
        path.write_text(text, "utf-8")
    print(f"The version is {version} in {len(PLACES)} files, and CHANGELOG.md has its section.")
    print("Run 'make setup', read the changes, commit them, then run 'make release'.")


if __name__ == "__main__":
    main(sys.argv[1:])
