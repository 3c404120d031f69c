"""Starts commands of ``sluicegate`` by forking a process that has imported everything.

``python -m tests.fork_server SOCKET`` forks until its standard input ends; a name of a module after
it has the commands of that module in place of those of ``sluicegate``. A client connects to
the socket and sends one line of JSON: ``argv``, ``folder``, ``environment`` and ``log``, the file
of the standard error or null. The connection is the output of the new process: a line with its
id, and what it writes. Its end is that of the process.

With the line, a client may send its own standard input, output and error. The new process gets
them, and the connection has its id and, at its end, its exit code (`tests.forked_command`).
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sluicegate.server import cli, serve_commands, worker_command

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

LIMIT: Final = 30.0
"""Seconds for the end of a process; only a defect takes so long."""
START_LIMIT: Final = 90.0
"""Seconds for its first line."""
_BACKEND: Final = Path(__file__).resolve().parents[1]
_IMPORTED: Final = (serve_commands, worker_command)


class ForkedProcess:
    """A running command of ``sluicegate``."""

    def __init__(self, connection: socket.socket, log: Path) -> None:
        connection.settimeout(START_LIMIT)
        self._connection = connection
        self._lines = connection.makefile("r")
        self.log = log
        """What it writes to its standard error."""
        # Its id may soon be that of another process or thread; a descriptor is not used again.
        self._process = _open_process(int(self._lines.readline()))

    def line(self) -> str:
        """Wait for the next line of its output.

        Raises:
            RuntimeError: It has ended, or says nothing.
        """
        with contextlib.suppress(TimeoutError):
            if line := self._lines.readline():
                return line
        raise RuntimeError(f"the process says nothing; its log:\n{self.log.read_text()}")

    def send(self, number: signal.Signals) -> None:
        """Send a signal; a process that has ended gets none."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._process, number)

    def end(self, number: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal and wait until the process is gone."""
        self.send(number)
        if self._process is None:
            return
        if not select.select([self._process], [], [], LIMIT)[0]:
            raise RuntimeError(f"the process does not end; its log:\n{self.log.read_text()}")
        os.close(self._process)
        self._process = None
        self._lines.close()
        self._connection.close()


def _open_process(pid: int) -> int | None:
    """A descriptor of a process, readable once it has ended; None if that is so already."""
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        return None


class ForkServer:
    """A process that forks commands; it ends at the end of the ``with`` statement, they do not.

    ``module`` has a ``main`` that reads ``sys.argv``.
    """

    def __init__(self, module: str = cli.__name__) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="sluicegate-fork-")
        self._socket = f"{self._folder.name}/socket"
        path = os.environ.get("PYTHONPATH", str(_BACKEND / "src"))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.fork_server", self._socket, module],
            cwd=_BACKEND,
            env={**os.environ, "PYTHONPATH": path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        # It closes its output when it listens.
        self._process.stdout.read()
        self._process.stdout.close()

    @property
    def command(self) -> list[str]:
        """A command that runs the one of its arguments."""
        return [sys.executable, "-IS", str(_BACKEND / "tests/forked_command.py"), self._socket]

    def start(
        self, *argv: str, log: Path, folder: Path, environment: Mapping[str, str] | None = None
    ) -> ForkedProcess:
        """Start a command with the variables of this process and others, in a folder."""
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(self._socket)
        request = {
            "argv": argv,
            "folder": str(folder),
            "environment": {**os.environ, **(environment or {})},
            "log": str(log),
        }
        connection.sendall(json.dumps(request).encode() + b"\n")
        return ForkedProcess(connection, log)

    def __enter__(self) -> ForkServer:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        self._folder.cleanup()


def main() -> int:
    """Fork until the standard input ends; in a new process, run its command."""
    _, path, *module = sys.argv
    entry = importlib.import_module(module[0]) if module else cli
    assert threading.active_count() == 1, "A fork has one thread."
    # The system forgets a process that has ended, so that its id is unknown from then on.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    gc.freeze()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(64)
        os.dup2(2, 1)
        while True:
            ready, _, _ = select.select([listener, sys.stdin], [], [])
            if listener not in ready:
                return 0
            connection, _ = listener.accept()
            with connection:
                request, files = _received(connection)
                if os.fork() == 0:
                    listener.close()
                    return run(entry.main, request, connection, files)
                for file in files:
                    os.close(file)


def _received(connection: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """The request of a client, and its standard files if it has sent them."""
    line, files, _, _ = socket.recv_fds(connection, 1 << 16, 3)
    while not line.endswith(b"\n"):
        line += connection.recv(1 << 16)
    return json.loads(line), files


def run(
    main: Callable[[], int], request: dict[str, Any], connection: socket.socket, files: list[int]
) -> int:
    """Run the command of a request in this process; returns its exit code."""
    if not files:
        become(request, _files(request["log"], connection.fileno()))
        sys.stdout.write(f"{os.getpid()}\n")
        sys.stdout.flush()
        connection.close()
        return main()
    become(request, files)
    connection.sendall(b"%d\n" % os.getpid())
    code = 1
    try:
        code = main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        raise
    finally:
        connection.sendall(b"%d\n" % code)
    return code


def _files(log: str | None, output: int) -> list[int]:
    """The standard files of a process that writes to a connection."""
    error = output if log is None else os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    return [os.open(os.devnull, os.O_RDONLY), output, error]


def become(request: dict[str, Any], files: list[int]) -> None:
    """Make this process look like one that was started for a request."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number, file in enumerate(files):
        os.dup2(file, number)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    sys.path[:0] = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    sys.argv[1:] = request["argv"]


if __name__ == "__main__":
    sys.exit(main())
