"""Plays conformance stories against servers with other versions: ``make matrix``, ``make canary``.

Each row is an environment of its own below ``build/matrix``, with the wheel of ``dist`` in it: the
lowest versions that ``pyproject.toml`` allows, the newest, and each Python that is present. The
stories are played with the lowest and the newest client of AI SDK 6 and 7. ``--canary`` has one row
instead, with the newest version of everything, whatever the project allows.

``--write`` writes the result to ``docs/reference/compatibility.json``, from which
``docs/reference/compatibility.md`` is generated; the exit code is 1 if a promise is broken.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tomllib
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
BUILD: Final = ROOT / "build" / "matrix"
UV: Final = Path(sys.executable).with_name("uv")
RESULT: Final = ROOT / "docs" / "reference" / "compatibility.json"
PAGE: Final = ROOT / "docs" / "reference" / "compatibility.md"

PYTHONS: Final = ("3.11", "3.12", "3.13")
SHOWN: Final = ("google-adk", "starlette", "uvicorn", "sse-starlette", "websockets", "pydantic")
"""The packages whose versions are named in the table."""

CLIENTS: Final = {
    "ai 6, lowest": "6-floor",
    "ai 6, newest": "6",
    "ai 7, lowest": "7-floor",
    "ai 7, newest": "7",
}
STORIES: Final = ("plain", "approvals")
PATTERN: Final = "plain|one gated call, approved|one gated call, denied"
PAUSE: Final = 900
"""Seconds for the stories of one row."""


@dataclass(frozen=True)
class Row:
    """An environment: its name, its Python, and how versions are chosen."""

    name: str
    python: str
    resolution: str = "highest"
    ignores_ranges: bool = False


@dataclass
class Result:
    """What a row has shown: the versions, and the stories of each client."""

    name: str
    python: str
    versions: dict[str, str] = field(default_factory=dict)
    passed: dict[str, int] = field(default_factory=dict)
    failed: dict[str, list[str]] = field(default_factory=dict)
    error: str | None = None

    @property
    def is_good(self) -> bool:
        """Whether every client has played stories, and all of them passed."""
        return not self.error and not any(self.failed.values()) and all(self.passed.values())


def rows(*, canary: bool) -> list[Row]:
    """Return the rows of a run; a Python that is not present has none."""
    found = {name: python for name in PYTHONS if (python := find_python(name))}
    if canary:
        newest = max(found, key=lambda name: int(name.partition(".")[2]))
        return [Row("newest of everything", found[newest], ignores_ranges=True)]
    lowest, *others = found
    return [
        Row(f"Python {lowest}, lowest", found[lowest], "lowest-direct"),
        Row(f"Python {lowest}, newest", found[lowest]),
        *(Row(f"Python {name}, newest", found[name]) for name in others),
    ]


def find_python(version: str) -> str | None:
    """Return the path of an interpreter on PATH or of pyenv; None if there is none."""
    homes = [Path(each) for each in os.environ.get("PATH", "").split(os.pathsep)]
    homes += sorted(Path(sys.base_prefix).parent.glob(f"{version}.*/bin"), reverse=True)
    # What is on PATH may be a script that chooses another interpreter.
    question = "import sys; print(*sys.version_info[:2], sep='.'); print(sys.executable)"
    for home in homes:
        python = home / f"python{version}"
        if not python.is_file():
            continue
        done = subprocess.run([python, "-c", question], capture_output=True, text=True, check=False)
        found = done.stdout.split("\n")
        if found[0] == version:
            return found[1]
    return None


def install(row: Row, folder: Path) -> None:
    """Make the environment of a row.

    Raises:
        RuntimeError: No versions fit together, or a package cannot be installed.
    """
    [wheel] = (ROOT / "dist").glob("*.whl")
    options = ["--resolution", row.resolution]
    if row.ignores_ranges:
        overrides = folder.with_suffix(".overrides")
        overrides.write_text("\n".join(direct_names()), "utf-8")
        options += ["--override", str(overrides)]
    python = ["--quiet", "--python", str(folder / "bin" / "python")]
    extras = ["--extra", "postgresql", "--extra", "valkey"]
    for command in (
        ["venv", "--quiet", "--clear", "--python", row.python, str(folder)],
        # The dependencies are named directly, since only those have their lowest versions.
        ["pip", "install", *python, *options, "-r", str(ROOT / "pyproject.toml"), *extras],
        ["pip", "install", *python, "--no-deps", "--no-index", str(wheel)],
    ):
        environment = {**os.environ, "UV_SYSTEM_CERTS": os.environ.get("UV_SYSTEM_CERTS", "1")}
        done = subprocess.run(
            [str(UV), *command], env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(done.stderr.strip().splitlines()[-1])


def direct_names() -> list[str]:
    """Return the direct dependencies without their ranges."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return [re.split(r"[<>=!~; ]", each)[0] for each in project["dependencies"]]


def installed(python: Path) -> dict[str, str]:
    """Return the versions of the packages that the table names."""
    listed = subprocess.run(
        [str(UV), "pip", "list", "--format", "json", "--python", str(python)],
        capture_output=True,
        text=True,
        check=True,
    )
    found = {each["name"]: each["version"] for each in json.loads(listed.stdout)}
    return {name: found[name] for name in SHOWN if name in found}


def play(folder: Path) -> list[dict[str, Any]]:
    """Play the stories against a server of an environment; returns the results of vitest.

    Raises:
        RuntimeError: The server does not start.
    """
    report = folder.with_suffix(".json")
    report.unlink(missing_ok=True)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    command = ["npm", "run", "--silent", "conformance", "--", "--project", "stories", *STORIES]
    command += ["-t", PATTERN, "--reporter=json", f"--outputFile={report}"]
    environment = {
        **os.environ,
        "PATH": path,
        "SLUICEGATE_BIN": str(folder / "bin" / "sluicegate"),
        "SLUICEGATE_PYTHON": str(folder / "bin" / "python"),
    }
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=PAUSE,
    )
    files = json.loads(report.read_text("utf-8"))["testResults"] if report.is_file() else []
    tests = [test for file in files for test in file["assertionResults"]]
    tests = [test for test in tests if test["status"] in ("passed", "failed")]
    if not tests:
        lines = re.findall(r"Error.*?: (.+)", done.stdout + done.stderr)
        raise RuntimeError(lines[0] if lines else "no story was played")
    return tests


def counted(result: Result, tests: list[dict[str, Any]]) -> None:
    """Add the stories of each client to a result."""
    for label, version in CLIENTS.items():
        own = [test for test in tests if f", ai {version}, " in f"{test['fullName']}, "]
        result.passed[label] = sum(test["status"] == "passed" for test in own)
        result.failed[label] = [test["fullName"] for test in own if test["status"] == "failed"]


def run(row: Row) -> Result:
    """Install and play one row."""
    folder = BUILD / re.sub(r"[^a-z0-9.]+", "-", row.name.lower())
    folder.parent.mkdir(parents=True, exist_ok=True)
    result = Result(row.name, row.python.rpartition("python")[2])
    try:
        install(row, folder)
        result.versions = installed(folder / "bin" / "python")
        counted(result, play(folder))
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        result.error = str(error)
    return result


def table(results: list[Result]) -> str:
    """Return the table of some results in Markdown."""
    head = ["environment", *SHOWN, *CLIENTS]
    lines = [head, ["---"] * len(head)]
    for result in results:
        cells = [result.versions.get(name, "") for name in SHOWN]
        stories = [result.error or _stories(result, client) for client in CLIENTS]
        lines.append([result.name, *cells, *stories])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _stories(result: Result, client: str) -> str:
    passed, failed = result.passed.get(client, 0), len(result.failed.get(client, []))
    return f"{passed} passed" if not failed else f"**{failed} failed**, {passed} passed"


def page(document: dict[str, Any]) -> str:
    """Return the page of the documentation about some results."""
    sections = [
        "# Compatibility",
        "Generated from `compatibility.json`, which `make matrix` and `make canary` write. The "
        "same stories of the conformance suite, a plain answer and a gated call that is approved "
        "and denied, over each transport, are played with the lowest and the newest supported "
        "client of AI SDK 6 and 7. The whole suite runs with the versions of the lock files.",
    ]
    for title, key, said in (
        (
            "Supported versions",
            "matrix",
            "The lowest versions are those that `pyproject.toml` "
            "allows, the newest those that it allows on the day of the run.",
        ),
        (
            "Canary",
            "canary",
            "The newest version of everything, whatever the project allows: what "
            "fails here is not promised, and shows what the next range has to solve.",
        ),
    ):
        if key in document:
            results = [Result(**each) for each in document[key]["results"]]
            sections += [f"## {title}", f"{said} Run on {document[key]['date']}.", table(results)]
    return "\n\n".join([*sections, ""])


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Play stories against other versions.")
    parser.add_argument("--canary", action="store_true", help="the newest of everything")
    parser.add_argument("--write", action="store_true", help="write the page of the documentation")
    options = parser.parse_args(arguments)
    results = []
    for row in rows(canary=options.canary):
        print(f"{row.name} …", file=sys.stderr, flush=True)
        results.append(run(row))
    print(table(results))
    for result in results:
        for client, failed in result.failed.items():
            for story in failed:
                print(f"broken with {result.name}, {client}: {story}")
    if options.write:
        document = json.loads(RESULT.read_text("utf-8")) if RESULT.is_file() else {}
        document["canary" if options.canary else "matrix"] = {
            "date": f"{datetime.now(UTC):%Y-%m-%d}",
            "results": [asdict(result) for result in results],
        }
        RESULT.write_text(json.dumps(document, indent=1) + "\n", "utf-8")
        PAGE.write_text(page(document), "utf-8")
    return 0 if all(result.is_good for result in results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
