"""Real workers, each in a process of its own, without the seconds that imports take."""

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
_NURSERY: Final = """
import json, os, signal, sys
from sluicegate.server import cli, worker
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for line in sys.stdin:
    asked = json.loads(line)
    pid = os.fork()
    if pid == 0:
        for number, name in ((0, os.devnull), (1, asked["out"]), (2, asked["err"])):
            os.dup2(os.open(name, os.O_RDWR | os.O_CREAT, 0o600), number)
        sys.stdin = open(os.devnull)
        os.environ.update(asked["environment"])
        os._exit(cli.main(asked["argv"]))
    print(pid, flush=True)
"""


@dataclass
class WorkerProcess:
    """``sluicegate worker``, from its first line to its end."""

    pid: int
    out: Path
    log: Path
    url: str = ""

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2].partition("/")[0])

    def kill(self, how: signal.Signals = signal.SIGKILL) -> None:
        """End it, by itself in the middle of whatever it does."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, how)
            until = time.monotonic() + 15
            while time.monotonic() < until:
                os.kill(self.pid, 0)
                time.sleep(0.005)

    def wait(self) -> None:
        """Wait for its first line, which says where it is."""
        until = time.monotonic() + 30
        while (found := re.search(r" at (http://\S+) *\n", self.out.read_text())) is None:
            assert time.monotonic() < until, self.log.read_text()
            time.sleep(0.005)
        self.url = found[1]


@dataclass
class Nursery:
    """A process that has imported everything, and forks into workers."""

    folder: Path
    workers: list[WorkerProcess] = field(default_factory=list)

    def __post_init__(self) -> None:
        source = Path(__file__).parents[2] / "src"
        environment = {**os.environ, "PYTHONPATH": str(source)}
        self._process = subprocess.Popen(
            [sys.executable, "-c", _NURSERY],
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
        asked: dict[str, Any] = {
            "argv": ["worker", str(file), "--port", str(port), "--name", name, *options],
            "out": str(out),
            "err": str(log),
            "environment": {"SLUICEGATE_EFFECTS": str(effects)},
        }
        out.touch()
        pipe_in, pipe_out = self._process.stdin, self._process.stdout
        assert pipe_in is not None
        assert pipe_out is not None
        pipe_in.write(json.dumps(asked) + "\n")
        pipe_in.flush()
        worker = WorkerProcess(int(pipe_out.readline()), out, log)
        self.workers.append(worker)
        worker.wait()
        return worker

    def close(self) -> None:
        """End all of them."""
        for worker in self.workers:
            worker.kill()
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
