"""Measures the first hour of a new user: an empty home, cold caches, a fresh clone.

``python scripts/first_hour.py`` clones the last commit, and prints a row of docs/performance.md for
each figure. Packages come from the registries, so that the numbers contain the network.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).parents[1]
LIMIT: Final = 600.0
"""Seconds after which a server or page is given up."""

COMMANDS: Final = (
    *("--help", "--version", "serve --help", "completion bash", "token ada", "new DIR"),
    *("serve none.py:agent", "replay none.jsonl", "audit --verify"),
)
QUESTION: Final = {
    "id": "question",
    "role": "user",
    "parts": [{"type": "text", "text": "Pay Ada 5 euros"}],
}


def free_port() -> int:
    """Return a port of 127.0.0.1 that no process uses."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def serving(command: list[str], folder: Path, environment: dict[str, str]) -> Iterator[None]:
    """Run a command that serves; ends it with the processes that it started."""
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()


def report_cpu(what: str) -> None:
    """Print the CPU time of the processes that have ended, and the load of the machine."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    load = os.getloadavg()[0]
    sys.stdout.write(
        f"{what}: {used.ru_utime:.0f} s user, {used.ru_stime:.0f} s system; load {load:.1f}\n"
    )
    sys.stdout.flush()


def fetch(url: str, body: object = None) -> str:
    """Return a response, once the server is there.

    Raises:
        TimeoutError: It is not there within `LIMIT`.
    """
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json"})
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                return str(response.read().decode())
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.1)
    raise TimeoutError(url)


def ask(server: str) -> list[dict[str, Any]]:
    """Return the chunks of the first answer."""
    return chunks(fetch(f"{server}/api/chat", {"id": "first", "messages": [QUESTION]}))


def approve(server: str, asked: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Approve the only request of an answer; return the chunks that follow."""
    request = next(chunk for chunk in asked if chunk["type"] == "tool-approval-request")
    part = {
        "type": "tool-pay",
        "toolCallId": request["toolCallId"],
        "state": "approval-responded",
        "input": {},
        "approval": {"id": request["approvalId"], "approved": True},
    }
    answer = {"id": asked[0]["messageId"], "role": "assistant", "parts": [part]}
    return chunks(fetch(f"{server}/api/chat", {"id": "first", "messages": [QUESTION, answer]}))


def chunks(text: str) -> list[dict[str, Any]]:
    """Return the chunks of a stream of server-sent events."""
    return [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]


def report(what: str, limit: float, measured: float, unit: str = "s") -> bool:
    """Print a row; return whether the limit is met."""
    is_met = measured <= limit
    verdict = "yes" if is_met else "no"
    row = f"| {what} | ≤ {limit:g} {unit} | {measured:.1f} {unit} | {verdict} |"
    sys.stdout.write(row + "\n")
    sys.stdout.flush()
    return is_met


def measure_clone(home: Path, environment: dict[str, str]) -> bool:
    """From a clone to the first answer, and to the page."""
    port = free_port()
    server = f"http://127.0.0.1:{port}"
    began = time.monotonic()
    clone = ["git", "clone", "--quiet", str(ROOT), str(home / "sluicegate")]
    subprocess.run(clone, env=environment, check=True)
    with serving(
        ["make", "demo"], home / "sluicegate", environment | {"SLUICEGATE_PORT": str(port)}
    ):
        ask(server)
        is_met = report("clone, `make demo`, first answer", 60, time.monotonic() - began)
        fetch(f"{server}/")
        return report("the same, until the page is there", 90, time.monotonic() - began) and is_met


def measure_project(home: Path, environment: dict[str, str]) -> bool:
    """From an empty folder to the first approved tool; then its size and its commands."""
    subprocess.run(
        ["make", "--silent", "wheel"],
        cwd=home / "sluicegate",
        env=environment,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    (wheel,) = (home / "sluicegate/dist").glob("*.whl")
    port = free_port()
    server, command = f"http://127.0.0.1:{port}", str(home / ".venv/bin/sluicegate")
    began = time.monotonic()
    for step in (
        ["python3", "-m", "venv", ".venv"],
        [".venv/bin/pip", "install", "--quiet", str(wheel)],
        [command, "new", "cashier"],
    ):
        subprocess.run(step, cwd=home, env=environment, check=True, stdout=subprocess.DEVNULL)
    with serving([command, "dev", "--port", str(port)], home / "cashier", environment):
        paid = approve(server, ask(server))
    if not any(chunk["type"] == "tool-output-available" for chunk in paid):
        raise RuntimeError(f"The approved tool has no result: {paid}")
    is_met = report("`pip install`, `sluicegate new`, approved tool", 300, time.monotonic() - began)
    size = subprocess.run(
        ["du", "-sk", str(home / ".venv")], capture_output=True, text=True, check=True
    )
    is_met &= report("the environment of a user", 200, int(size.stdout.split()[0]) / 1024, "MB")
    for arguments in COMMANDS:
        began = time.monotonic()
        with subprocess.Popen(
            [command, *arguments.replace("DIR", "other").split()],
            cwd=home,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        ) as process:
            if process.stdout is None or not process.stdout.readline():
                raise RuntimeError(f"sluicegate {arguments} prints nothing.")
            took = time.monotonic() - began
            process.stdout.read()
        is_met &= report(f"first output of `sluicegate {arguments}`", 1, took)
    return is_met


def main() -> int:
    """Measure; return 1 if a limit is not met."""
    with tempfile.TemporaryDirectory(prefix="sluicegate-home-") as folder:
        home = Path(folder)
        kept = ("PATH", "LANG", "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS")
        environment = {name: os.environ[name] for name in kept if name in os.environ}
        environment["HOME"] = folder
        report_cpu("before")
        clone_is_met = measure_clone(home, environment)
        report_cpu("after the clone")
        return 0 if measure_project(home, environment) and clone_is_met else 1


if __name__ == "__main__":
    sys.exit(main())
