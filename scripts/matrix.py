"""Plays conformance stories against servers with other versions: ``make matrix``, ``make canary``.

Each row is an environment of its own below ``build/matrix``, with the wheel of ``dist`` in it: the
lowest versions that ``pyproject.toml`` allows, the newest, and each Python that is present. The
stories of `PROMISES` are played with the lowest and the newest client of AI SDK 6 and 7, over each
transport. ``--canary`` has one row instead, with the newest version of everything, whatever the
project allows, also of the clients.

The result is written to ``docs/reference/compatibility.json`` if every row was played, and the page
``docs/reference/compatibility.md`` is generated from it; ``--page`` only does the latter. The exit
code is 1 if a promise is broken.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
BUILD: Final = ROOT / "build" / "matrix"
UV: Final = Path(sys.executable).with_name("uv")
STORIES: Final = ROOT / "e2e" / "conformance" / "stories"
CLIENT_FOLDERS: Final = ROOT / "e2e" / "conformance" / "clients"
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
NEWEST: Final = {
    "ai-6": ("ai@6", "@ai-sdk/react@3"),
    "ai-7": ("ai@latest", "@ai-sdk/react@latest"),
}
"""What a canary installs from npm, by the folder of the client that it replaces."""

PROMISES: Final = {
    "An answer streams, is stored, and can be read again.": ("plain text",),
    "A tool without a gate runs at once.": ("an ungated tool",),
    "An approved call runs once.": ("one gated call, approved",),
    "A denied call does not run.": ("one gated call, denied",),
    "Calls of one step wait together.": ("two gated calls in one step, approved and denied",),
    "Text keeps its place around approvals.": ("text before, between and after two approvals",),
    "A tool may ask while it runs.": ("a tool that asks again after its first approval",),
    "The first decision wins.": ("a denial after an approval",),
    "An approval after its deadline runs nothing.": ("an approval after the deadline",),
    "A decision can be given after a reload.": ("a decision after a reload",),
    "What runs are the edited arguments.": ("an approval with edited arguments",),
    "Client-side tools work beside approvals.": (
        "a client-side tool beside an approval that is decided first",
    ),
    "A turn can be stopped.": ("stop after an approved call",),
    "A model that fails ends the turn with an error.": (
        "a model that fails after an approved call",
    ),
    "A reader can resume a turn.": ("a reader that resumes after an approval learns who approved",),
    "A gate works in each kind of agent.": (
        "a coordinator that hands over to a sequence, approved",
        "an agent that is a tool, with a gated tool of its own",
        "a loop that asks in each round until its reviewer ends it",
        "a Workflow that asks for input, by an agent and by a node",
    ),
}
"""What each row has to show, and the stories that show it."""

PAUSE: Final = 3600
"""Seconds for the stories of one row; only a defect reaches it, not a busy machine."""


@dataclass(frozen=True)
class Row:
    """An environment: its name, its Python (None if it is missing), and how versions are chosen."""

    name: str
    python: str | None
    resolution: str = "highest"
    is_canary: bool = False

    @property
    def folder(self) -> Path:
        """The environment of the row; its lock, report and log are beside it."""
        return BUILD / re.sub(r"[^a-z0-9.]+", "-", self.name.lower())


@dataclass
class Result:
    """What a row has shown: the versions, and the stories of each client."""

    name: str
    versions: dict[str, str] = field(default_factory=dict)
    passed: dict[str, int] = field(default_factory=dict)
    failed: dict[str, list[str]] = field(default_factory=dict)
    not_shown: list[str] = field(default_factory=list)
    """Promises of which no story was played."""
    error: str | None = None
    is_played: bool = True

    @property
    def is_good(self) -> bool:
        """Whether every promise was shown with every client, or the row cannot be played here."""
        if not self.is_played:
            return True
        shown = self.passed and all(self.passed.values()) and not self.not_shown
        return bool(shown) and not self.error and not any(self.failed.values())


def rows(*, canary: bool) -> list[Row]:
    """Return the rows of a run; a Python that is missing has no interpreter."""
    found = {name: find_python(name) for name in PYTHONS}
    present = [name for name in PYTHONS if found[name]]
    if canary:
        return [Row("newest of everything", found[present[-1]], is_canary=True)]
    lowest = Row(f"Python {present[0]}, lowest", found[present[0]], "lowest-direct")
    return [lowest, *(Row(f"Python {name}, newest", found[name]) for name in PYTHONS)]


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


def install(row: Row) -> None:
    """Make the environment of a row, or bring it up to date.

    Raises:
        RuntimeError: No versions fit together, or a package cannot be installed.
    """
    [wheel] = (ROOT / "dist").glob("*.whl")
    folder, settings = row.folder, row.folder / "pyvenv.cfg"
    folder.parent.mkdir(parents=True, exist_ok=True)
    home = f"home = {Path(row.python or '').parent}\n"
    if not settings.is_file() or home not in settings.read_text("utf-8"):
        _run(str(UV), "venv", "--quiet", "--clear", "--python", str(row.python), str(folder))
    lock, python = f"{folder}.lock", ("--quiet", "--python", str(folder / "bin" / "python"))
    options = ["--resolution", row.resolution, "--extra", "postgresql", "--extra", "valkey"]
    if row.is_canary:
        overrides = Path(f"{folder}.overrides")
        overrides.write_text("\n".join(direct_names()), "utf-8")
        options += ["--override", str(overrides)]
    # Of the dependencies that are named directly the lowest versions are chosen, not of others.
    project = str(ROOT / "pyproject.toml")
    _run(str(UV), "pip", "compile", "--upgrade", *python, *options, project, "-o", lock)
    # Several servers start at once; where Python may not write its bytecode each would compile all.
    compiled = ("--compile-bytecode", *python)
    _run(str(UV), "pip", "sync", *compiled, lock)
    _run(str(UV), "pip", "install", *compiled, "--no-deps", "--no-index", str(wheel))


def install_clients() -> Path:
    """Install the newest clients of both majors; returns their folder.

    Raises:
        RuntimeError: A package cannot be installed.
    """
    clients = BUILD / "clients"
    shutil.rmtree(clients, ignore_errors=True)
    for name, packages in NEWEST.items():
        folder = clients / name
        folder.mkdir(parents=True)
        shutil.copyfile(CLIENT_FOLDERS / name / "client.ts", folder / "client.ts")
        manifest = {"name": name, "private": True, "type": "module"}
        (folder / "package.json").write_text(json.dumps(manifest), "utf-8")
        more = ("react@latest", "zod@latest", "--no-audit", "--no-fund", "--loglevel=error")
        _run("npm", "install", *packages, *more, cwd=folder)
    return clients


def direct_names() -> list[str]:
    """Return the direct dependencies without their ranges."""
    return [re.split(r"[<>=!~; ]", each)[0] for each in _project()["dependencies"]]


def installed(python: Path) -> dict[str, str]:
    """Return the versions of Python and of the packages that the table names."""
    listed = json.loads(_run(str(UV), "pip", "list", "--format", "json", "--python", str(python)))
    found = {each["name"]: each["version"] for each in listed}
    version = _run(str(python), "-c", "import platform; print(platform.python_version())")
    return {"Python": version.strip(), **{name: found[name] for name in SHOWN if name in found}}


def client_versions(newest: Path | None = None) -> dict[str, str]:
    """Return the versions of ``ai`` that the stories are played with, by client."""
    found = {}
    for label, version in CLIENTS.items():
        name = f"ai-{version}"
        if newest is not None and name in NEWEST:
            manifest = newest / name / "node_modules" / "ai" / "package.json"
            found[label] = json.loads(manifest.read_text("utf-8"))["version"]
        else:
            manifest = CLIENT_FOLDERS / name / "package.json"
            found[label] = json.loads(manifest.read_text("utf-8"))["dependencies"]["ai"]
    return found


def play(folder: Path, clients: Path | None = None) -> list[dict[str, Any]]:
    """Play the stories against servers of an environment; returns the results of vitest.

    Raises:
        RuntimeError: A server does not start.
    """
    report = Path(f"{folder}.json")
    report.unlink(missing_ok=True)
    titles = [title for stories in PROMISES.values() for title in stories]
    files = [
        path.name.partition(".")[0]
        for path in sorted(STORIES.glob("*.test.ts"))
        if any(f'"{title}"' in path.read_text("utf-8") for title in titles)
    ]
    # Behind the title comes the combination, which begins with the transport or the release.
    kinds = "websocket|bidi|live|deferred|preview|progressive"
    pattern = f"^ *({'|'.join(map(re.escape, titles))}) ({kinds}),"
    command = ["npm", "run", "--silent", "conformance", "--", "--project", "stories", *files]
    command += ["-t", pattern.replace("\\ ", " "), "--reporter=json", f"--outputFile={report}"]
    environment = {
        **os.environ,
        "PATH": _path(),
        "PART": "clients",
        "SLUICEGATE_BIN": str(folder / "bin" / "sluicegate"),
        "SLUICEGATE_PYTHON": str(folder / "bin" / "python"),
        **({"SLUICEGATE_CLIENTS": str(clients)} if clients else {}),
    }
    with Path(f"{folder}.log").open("w+", encoding="utf-8") as log:
        subprocess.run(
            command,
            cwd=ROOT,
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
            check=False,
            timeout=PAUSE,
        )
        log.seek(0)
        output = log.read()
    suites = json.loads(report.read_text("utf-8"))["testResults"] if report.is_file() else []
    tests = [test for suite in suites for test in suite["assertionResults"]]
    tests = [test for test in tests if test["status"] in ("passed", "failed")]
    if not tests:
        raise RuntimeError(f"{_reason(output)} (all of it is in {log.name})")
    return tests


def _reason(output: str) -> str:
    """Return the line of an output that says most about a failure."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    telling = [line for line in lines if re.match(r"\w*Error: |sluicegate does not ", line)]
    return next((found[-1] for found in (telling, lines) if found), "no story was played")


def counted(result: Result, tests: list[dict[str, Any]]) -> None:
    """Add the stories of each client to a result."""
    for label, version in CLIENTS.items():
        own = [test for test in tests if f", ai {version}, " in f"{test['fullName']}, "]
        result.passed[label] = sum(test["status"] == "passed" for test in own)
        result.failed[label] = [test["fullName"] for test in own if test["status"] == "failed"]
    shown = {promise_of(test["fullName"]) for test in tests}
    result.not_shown = [promise for promise in PROMISES if promise not in shown]


def promise_of(test: str) -> str:
    """Return the promise that a story shows, by its title and combination."""
    found = [
        (len(title), promise)
        for promise, titles in PROMISES.items()
        for title in titles
        if test.startswith(f"{title} ")
    ]
    return max(found)[1] if found else test


def run(row: Row) -> Result:
    """Install and play one row."""
    result = Result(row.name)
    if row.python is None:
        result.is_played = False
        return result
    try:
        install(row)
        clients = install_clients() if row.is_canary else None
        result.versions = {**installed(row.folder / "bin" / "python"), **client_versions(clients)}
        counted(result, play(row.folder, clients))
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        result.error = str(error)
    return result


def broken(results: list[Result]) -> list[str]:
    """Return a line for each promise that is broken, with the client and the stories."""
    lines = []
    for result in results:
        where = f"with {result.name}"
        if result.error:
            lines.append(f"Not played {where}: {result.error}")
        lines += [f"Not shown {where}: {promise}" for promise in result.not_shown]
        for client, failed in result.failed.items():
            for promise in sorted({promise_of(story) for story in failed}):
                stories = "; ".join(each for each in failed if promise_of(each) == promise)
                lines.append(f"Broken {where}, {client}: {promise} ({stories})")
    return lines


def table(results: list[Result]) -> str:
    """Return the table of some results in Markdown."""
    head = ["environment", "Python", *SHOWN, *CLIENTS]
    lines = [head, ["---"] * len(head)]
    for result in results:
        cells = [result.versions.get(name, "") for name in ("Python", *SHOWN)]
        lines.append([result.name, *cells, *(_stories(result, client) for client in CLIENTS)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _stories(result: Result, client: str) -> str:
    if not result.is_played or result.error:
        return "not played"
    passed, failed = result.passed.get(client, 0), len(result.failed.get(client, []))
    said = f"{passed} passed" if not failed else f"**{failed} failed**, {passed} passed"
    return f"{result.versions.get(client, '')}: {said}"


def ranges() -> list[tuple[str, str]]:
    """Return the packages that the tables name with the ranges that the project allows."""
    required = dict(re.findall(r"^([\w-]+)\S*?([<>=].*)$", each)[0] for each in _required())
    peers = json.loads((ROOT / "frontend" / "client" / "package.json").read_text("utf-8"))
    found = [("Python", str(_project()["requires-python"]))]
    found += [(name, required[name]) for name in SHOWN]
    found += [(name, peers["peerDependencies"][name]) for name in ("ai", "@ai-sdk/react", "react")]
    return [*found, ("Node.js, for the npm package", peers["engines"]["node"])]


def page(document: dict[str, Any]) -> str:
    """Return the page of the documentation about some results."""
    supported = [
        f"| {name} | `{allowed.replace('|', chr(92) + '|')}` |" for name, allowed in ranges()
    ]
    sections = [
        "# Compatibility",
        "`make matrix` and `make canary` play stories of the conformance suite against servers "
        "with other versions than those of the lock files, which all tests use. "
        "This page is generated from what they wrote to `compatibility.json`.",
        "## Supported versions",
        "\n".join(["| package | range |", "| --- | --- |", *supported]),
        "With another version of `google-adk`, uvicorn, Starlette or websockets than one that has "
        "what the server uses of it, the server does not start, and says so in one sentence.",
        "## Promises that are played",
        "Over Server-Sent Events and each socket that a client has, with different release "
        "policies and approval styles. The newest clients play all of them, the lowest most. "
        "`make conformance` plays all stories.",
        "\n".join(f"- {promise}" for promise in PROMISES),
    ]
    for title, key, said in (
        (
            "Lowest and newest",
            "matrix",
            "The lowest versions are the lowest that can be installed within the ranges, the "
            "newest those of the day. A Python that the machine did not have is not played.",
        ),
        (
            "Canary",
            "canary",
            "The newest version of everything, whatever the project allows, also of the packages "
            "of the AI SDK: what fails here is not promised, and shows what the next range has to "
            "solve.",
        ),
    ):
        if key in document:
            results = [Result(**each) for each in document[key]["results"]]
            said += f" Played on {document[key]['date']} with the stories of version "
            said += f"{document[key]['version']}."
            sections += [f"## {title}", said, table(results)]
            sections += ["\n".join(f"- {line}" for line in broken(results))] * bool(broken(results))
    return "\n\n".join([*sections, ""])


def write(results: list[Result], key: str) -> None:
    """Write the result of a run and the page about it."""
    document = json.loads(RESULT.read_text("utf-8")) if RESULT.is_file() else {}
    document[key] = {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "version": _project()["version"],
        "results": [asdict(result) for result in results],
    }
    RESULT.write_text(json.dumps(document, indent=1) + "\n", "utf-8")
    PAGE.write_text(page(document), "utf-8")


def _project() -> dict[str, Any]:
    return dict(tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"])


def _required() -> list[str]:
    return [each.partition(";")[0].strip() for each in _project()["dependencies"]]


def _path() -> str:
    return os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])


def _run(*command: str, cwd: Path = ROOT) -> str:
    """Run a command; returns what it prints.

    Raises:
        RuntimeError: The command has failed; the message is the last line of its output.
    """
    environment = {"UV_SYSTEM_CERTS": "1", "NODE_USE_SYSTEM_CA": "1", **os.environ, "PATH": _path()}
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        said = [line for line in f"{done.stdout}\n{done.stderr}".splitlines() if line.strip()]
        raise RuntimeError(f"{Path(command[0]).name}: {said[-1].strip() if said else 'failed'}")
    return done.stdout


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Play stories against other versions.")
    parser.add_argument("--canary", action="store_true", help="the newest of everything")
    parser.add_argument("--page", action="store_true", help="only write the page again")
    options = parser.parse_args(arguments)
    if options.page:
        PAGE.write_text(page(json.loads(RESULT.read_text("utf-8"))), "utf-8")
        return 0
    results = []
    for row in rows(canary=options.canary):
        print(f"{row.name} …", file=sys.stderr, end=" ", flush=True)
        started = time.monotonic()
        results.append(run(row))
        print(f"{time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    print(table(results))
    print("\n".join(broken(results)) or "No promise is broken.")
    if not any(result.error for result in results):
        write(results, "canary" if options.canary else "matrix")
    return 0 if all(result.is_good for result in results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
