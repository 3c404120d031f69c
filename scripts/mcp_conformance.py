"""Runs the conformance suite of MCP against ``sluicegate worker``, and as a worker of the server.

The scenarios for clients run against conversations with the server, each with a server of its own.
``--clients`` and ``--worker`` run one side.

The files beside the worker list the scenarios that fail: a scenario that fails and is not listed
ends the run with an error, and so does a listed one that passes.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
FOLDER: Final = ROOT / "e2e" / "mcp"
SUITE: Final = ROOT / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
BIN: Final = Path(sys.executable).parent
# Seconds that only a defect reaches: loading ADK takes a client minutes on a busy machine.
CLIENT_TIMEOUT: Final = 540
SUITE_TIMEOUT: Final = 600
REVISIONS: Final = ("2025-11-25", "2026-07-28")
CLIENT_SCENARIOS: Final = (
    ("tools_call", "2025-11-25"),
    ("sse-retry", "2025-11-25"),
    ("elicitation-sep1034-client-defaults", "2025-11-25"),
    ("tools_call", "2026-07-28"),
    ("request-metadata", "2026-07-28"),
    ("http-standard-headers", "2026-07-28"),
    ("http-custom-headers", "2026-07-28"),
    ("http-invalid-tool-headers", "2026-07-28"),
    ("sep-2322-client-request-state", "2026-07-28"),
)


def run_suite(side: str, name: str, expected: Path, *options: str) -> bool:
    """Run one side of the suite; whether all went as listed."""
    command = ["node", str(SUITE), side, "--expected-failures", str(expected), *options]
    environment = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    folder = ROOT / "build" / "mcp"
    folder.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=SUITE_TIMEOUT,
        check=False,
    )
    is_expected = done.returncode == 0
    if not is_expected:
        print(done.stdout[-8000:], done.stderr[-2000:])
    summary = re.search(r"^(?:Total|Passed): .*$", done.stdout + done.stderr, re.MULTILINE)
    counts = summary[0] if summary else "no result"
    print(f"mcp {side} {name}: {counts}; {'as listed' if is_expected else 'NOT as listed'}")
    return is_expected


def run_worker() -> list[bool]:
    """Run what each revision requires of a server against a worker."""
    worker = subprocess.Popen(
        [BIN / "sluicegate", "worker", FOLDER / "tools.py", "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        line = "" if worker.stdout is None else worker.stdout.readline()
        address = re.search(r" at (http://\S+)", line)
        if address is None:
            print("The worker did not start.")
            return [False]
        return [
            run_suite(
                "server",
                revision,
                FOLDER / f"server-{revision}.yaml",
                *("--requirements", revision, "--url", address[1]),
            )
            for revision in REVISIONS
        ]
    finally:
        worker.terminate()
        worker.wait()


def run_client(scenario: tuple[str, str]) -> bool:
    """Run one scenario of a client against a conversation with the server."""
    name, revision = scenario
    return run_suite(
        "client",
        f"{revision} {name}",
        FOLDER / "client.yaml",
        *("--scenario", name, "--spec-version", revision, "--timeout", f"{CLIENT_TIMEOUT * 1000}"),
        *("--command", f"{sys.executable} {FOLDER / 'client.py'}"),
    )


def main() -> int:
    """Run both sides, two scenarios at a time."""
    sides = sys.argv[1:] or ["--worker", "--clients"]
    with ThreadPoolExecutor(2) as pool:
        of_worker = pool.submit(run_worker) if "--worker" in sides else None
        went = [*pool.map(run_client, CLIENT_SCENARIOS if "--clients" in sides else ())]
        went += of_worker.result() if of_worker is not None else []
    return 0 if all(went) else 1


if __name__ == "__main__":
    sys.exit(main())
