"""A server in its own process, from its first line of output to its exit."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from bench.client import Address, BenchError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

_BACKEND: Final = Path(__file__).parent.parent
PATH: Final = os.pathsep.join((str(_BACKEND), str(_BACKEND / "src")))
"""The import path of the benchmark and of the package in the same checkout."""
_URL: Final = re.compile(r"https?://[\w.\[\]:-]+:[1-9]\d*")
_START_SECONDS: Final = 90.0

_UNHURRIED: Final = {
    "SLUICEGATE_MAX_TURNS_PER_MINUTE": "1000000",
    "SLUICEGATE_MAX_MESSAGES_PER_MINUTE": "1000000",
    "SLUICEGATE_MAX_REQUESTS_PER_MINUTE": "1000000",
    "SLUICEGATE_MAX_UPLOADS_PER_HOUR": "1000000",
    "SLUICEGATE_MAX_UPLOAD_BYTES_PER_HOUR": "1000000000000",
    "SLUICEGATE_MAX_CONNECTIONS": "20000",
    "SLUICEGATE_MAX_CONNECTIONS_PER_USER": "20000",
}
"""The limits are raised, since one user sends many requests over many connections."""


class ServerProcess:
    """A running server; it is stopped at the end of the ``with`` statement."""

    def __init__(
        self, command: Sequence[str], folder: Path, environment: Mapping[str, str]
    ) -> None:
        """Start the command in its own folder; it prints its URL once it listens."""
        folder.mkdir(exist_ok=True)
        self._command = command
        self._address: Address | None = None
        self._log = folder / "log"
        # A file, not a pipe: later output of the server is not read.
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command,
                cwd=folder,
                env={**os.environ, "PYTHONPATH": PATH, **_UNHURRIED, **environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def address(self) -> Address:
        """Wait for the server and return its address.

        Raises:
            BenchError: It ended, or does not say its URL in time.
        """
        if self._address is not None:
            return self._address
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline:
            ended = self._process.poll() is not None
            found = _URL.search(self.said())
            if ended:
                break
            if found:
                parts = urlsplit(found[0])
                self._address = Address(parts.hostname or "", parts.port or 0)
                return self._address
            time.sleep(0.01)
        raise BenchError(f"{' '.join(self._command)} did not start:\n{self.said()}")

    def said(self) -> str:
        """Return the output of the server so far."""
        return self._log.read_text("utf-8", errors="replace")

    def resident_kib(self) -> int:
        """Return the resident memory of the process in KiB."""
        if Path(f"/proc/{self.pid}/status").exists():
            return self._status("VmRSS")
        listed = ["ps", "-o", "rss=", "-p", str(self.pid)]
        return int(subprocess.run(listed, capture_output=True, text=True, check=True).stdout)

    def peak_kib(self) -> int:
        """Return the peak resident memory in KiB since the last reset, on Linux."""
        return self._status("VmHWM")

    def _status(self, name: str) -> int:
        text = Path(f"/proc/{self.pid}/status").read_text()
        found = re.search(rf"{name}:\s+(\d+)", text)
        return int(found[1]) if found else 0

    def loop_seconds(self) -> float | None:
        """Return the CPU seconds of the main thread, which runs the event loop."""
        try:
            nanoseconds = Path(f"/proc/{self.pid}/schedstat").read_text().split()[0]
        except OSError:
            return None
        return int(nanoseconds) / 1e9

    def tree_seconds(self) -> float:
        """Return the CPU seconds of the process and of all that it has started, on Linux."""
        return tree_seconds(self.pid)

    def __enter__(self) -> ServerProcess:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def tree_seconds(pid: int) -> float:
    """Return the CPU seconds of a process and of its descendants, also those that ended, on Linux.

    Raises:
        OSError: there is no such process.
    """
    process = Path(f"/proc/{pid}")
    # The name, in parentheses, may contain spaces.
    fields = (process / "stat").read_text().rpartition(")")[2].split()
    own = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return own + sum(map(_seconds_or_none, children(pid)))


def children(pid: int) -> list[int]:
    """Return the processes that a process has started and that run, on Linux."""
    threads = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for found in threads for child in found.read_text().split()]


def _seconds_or_none(pid: int) -> float:
    try:
        return tree_seconds(pid)
    except OSError:
        # It has ended since it was listed; its parent has its seconds.
        return 0.0


def own_server(kind: str) -> list[str]:
    """Return the command that starts one of the servers of `bench.serve`."""
    return module("bench.serve", kind)


def module(name: str, *arguments: str) -> list[str]:
    """Return the command that runs a module of the benchmark."""
    return [sys.executable, "-m", name, *arguments]


def sluicegate(agent: str, *options: str) -> list[str]:
    """Return the command that serves an agent of the benchmark as a user would.

    An option ``env:NAME=VALUE`` sets a variable of its environment.
    """
    target = _BACKEND / "bench" / "agents" / agent / "agent.py"
    binary = Path(sys.executable).with_name("sluicegate")
    variables = [option.removeprefix("env:") for option in options if option.startswith("env:")]
    before = ["env", *variables] if variables else []
    rest = [option for option in options if not option.startswith("env:")]
    return [*before, str(binary), "serve", f"{target}:root_agent", "--port", "0", *rest]
