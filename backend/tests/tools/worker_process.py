"""Real worker processes, forked from a server process that has imported everything."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

TOOLS: Final = Path(__file__).parent.parent / "agents" / "worker_tools.py"
_FORK_SERVER: Final = """
import json, os, signal, sys
from sluicegate.server import cli, worker
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for line in sys.stdin:
    request = json.loads(line)
    pid = os.fork()
    if pid == 0:
        for number, name in ((0, os.devnull), (1, request["out"]), (2, request["err"])):
            os.dup2(os.open(name, os.O_RDWR | os.O_CREAT, 0o600), number)
        sys.stdin = open(os.devnull)
        os.environ.update(request["environment"])
        os._exit(cli.main(request["argv"]))
    print(pid, flush=True)
"""


@dataclass
class WorkerProcess:
    """A process of ``sluicegate worker``."""

    pid: int
    out: Path
    log: Path
    url: str = ""

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2].partition("/")[0])

    def kill(self, sent: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal and wait until the process has ended."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, sent)
            until = time.monotonic() + 30
            while time.monotonic() < until:
                os.kill(self.pid, 0)
                time.sleep(0.005)
            raise AssertionError(self.log.read_text())

    def wait(self) -> None:
        """Wait for the first line of output, which holds the URL."""
        until = time.monotonic() + 30
        while (url := re.search(r" at (http://\S+) *\n", self.out.read_text())) is None:
            assert time.monotonic() < until, self.log.read_text()
            time.sleep(0.005)
        self.url = url[1]


@dataclass
class WorkerForkServer:
    """A process that has imported everything and forks workers."""

    folder: Path
    workers: list[WorkerProcess] = field(default_factory=list)

    def __post_init__(self) -> None:
        source = Path(__file__).parents[2] / "src"
        environment = {**os.environ, "PYTHONPATH": str(source)}
        self._process = subprocess.Popen(
            [sys.executable, "-c", _FORK_SERVER],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def start(
        self,
        *options: str,
        effects: Path,
        file: Path = TOOLS,
        port: int = 0,
        name: str = "shop",
    ) -> WorkerProcess:
        """Start a worker and wait until it serves."""
        number = len(self.workers)
        out, log = self.folder / f"{number}.out", self.folder / f"{number}.log"
        request: dict[str, Any] = {
            "argv": ["worker", str(file), "--port", str(port), "--name", name, *options],
            "out": str(out),
            "err": str(log),
            "environment": {"SLUICEGATE_EFFECTS": str(effects)},
        }
        out.touch()
        pipe_in, pipe_out = self._process.stdin, self._process.stdout
        assert pipe_in is not None
        assert pipe_out is not None
        pipe_in.write(json.dumps(request) + "\n")
        pipe_in.flush()
        worker = WorkerProcess(int(pipe_out.readline()), out, log)
        self.workers.append(worker)
        worker.wait()
        return worker

    def close(self) -> None:
        """End all workers and the server."""
        for worker in self.workers:
            worker.kill()
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
