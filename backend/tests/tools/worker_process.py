"""Real worker processes."""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.fork_server import ForkedProcess, ForkServer

TOOLS: Final = Path(__file__).parent.parent / "agents" / "worker_tools.py"


@dataclass(frozen=True)
class WorkerProcess:
    """A process of ``sluicegate worker``."""

    process: ForkedProcess
    url: str

    @property
    def log(self) -> Path:
        return self.process.log

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2].partition("/")[0])

    def kill(self, sent: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal and wait until the process has ended."""
        self.process.end(sent)


@dataclass
class WorkerForkServer:
    """Where workers come from, and their files."""

    folder: Path
    fork_server: ForkServer
    workers: list[WorkerProcess] = field(default_factory=list)

    def start(
        self,
        *options: str,
        effects: Path,
        file: Path = TOOLS,
        port: int = 0,
        name: str = "shop",
    ) -> WorkerProcess:
        """Start a worker and wait until it serves."""
        process = self.fork_server.start(
            *("worker", str(file), "--port", str(port), "--name", name, *options),
            log=self.folder / f"{len(self.workers)}.log",
            folder=self.folder,
            environment={"SLUICEGATE_EFFECTS": str(effects)},
        )
        url = re.search(r" at (http://\S+)", process.line())
        assert url is not None, process.log.read_text()
        worker = WorkerProcess(process, url[1])
        self.workers.append(worker)
        return worker

    def close(self) -> None:
        """End all workers."""
        for worker in self.workers:
            worker.kill()
