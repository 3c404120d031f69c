"""Cost of telemetry per delta, as a ratio of CPU within one run.

Three processes play the same turn in alternation: one without the hook, one with it and without
an SDK, and one that traces and measures. ``python -m bench.telemetry_cost KIND`` is such a process:
it plays a turn for each line of its input and prints the CPU seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from google.adk.agents.llm_agent import LlmAgent

from bench.client import BenchError
from sluicegate.engine.chat_engine import ChatEngine
from sluicegate.engine.client_request_options import RequestingClient
from sluicegate.engine.options import EngineOptions
from sluicegate.engine.telemetry import TurnTelemetry
from sluicegate.replay import ScriptedModel
from sluicegate.replay.scenario import parse_scenarios
from sluicegate.server.settings import Settings
from sluicegate.server.telemetry import exporting
from sluicegate.wire.requests import parse_chat_request

if TYPE_CHECKING:
    from collections.abc import Iterator

BARE, OFF, ON = "bare", "off", "on"
BUDGET: Final = 1.05
"""Maximum ratio of the CPU of a delta that is traced and measured to that of a bare one."""

DELTAS: Final = 2_000
_WARM: Final = 3
_SCRIPT: Final[Any] = {
    "scenarios": [
        {
            "match": ".",
            "responses": [
                {"parts": [{"text": "delta 20 bytes long " * DELTAS}], "delta_chars": 20}
            ],
        }
    ]
}


@dataclass(frozen=True, slots=True)
class TelemetryCost:
    """CPU seconds per delta by round, and the ratios of the least to the least bare ones.

    What else the machine does only adds to a round, so the least is what the code costs.
    """

    bare: tuple[float, ...]
    off: tuple[float, ...]
    on: tuple[float, ...]

    @property
    def budget(self) -> float:
        """The maximum of ``on_ratio``."""
        return BUDGET

    @property
    def off_ratio(self) -> float:
        """Without an SDK."""
        return min(self.off) / min(self.bare)

    @property
    def on_ratio(self) -> float:
        """With traces and metrics."""
        return min(self.on) / min(self.bare)


def measure_telemetry(*, rounds: int) -> TelemetryCost:
    """Play ``rounds`` turns in each process, one process after the other in each round.

    Raises:
        BenchError: a process ended early.
    """
    spent: dict[str, list[float]] = {BARE: [], OFF: [], ON: []}
    with contextlib.ExitStack() as stack:
        collector = stack.enter_context(_collector())
        players = {kind: stack.enter_context(_player(kind, collector)) for kind in spent}
        for number in range(_WARM + rounds):
            # Each kind is first, second and third equally often.
            order = [*spent][number % 3 :] + [*spent][: number % 3]
            for kind in order:
                found = _play(players[kind])
                if number >= _WARM:
                    spent[kind].append(found / DELTAS)
    return TelemetryCost(*(tuple(found) for found in spent.values()))


class _Accepting(BaseHTTPRequestHandler):
    """Accepts what an exporter sends."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Be quiet."""


@contextlib.contextmanager
def _collector() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Accepting) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@contextlib.contextmanager
def _player(kind: str, collector: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "bench.telemetry_cost", kind, collector]
    folder = Path(__file__).parent.parent
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=folder) as process:
        yield process


def _play(process: subprocess.Popen[str]) -> float:
    if process.stdin is None or process.stdout is None:
        raise BenchError("A process of the bench has no pipes.")
    process.stdin.write("\n")
    process.stdin.flush()
    line = process.stdout.readline()
    if not line:
        raise BenchError("A process of the bench ended early.")
    return float(line)


async def _serve(folder: str) -> None:
    model = ScriptedModel(scenarios=parse_scenarios(_SCRIPT))
    options = EngineOptions(
        sessions=f"sqlite+aiosqlite:///{folder}/cost.db",
        artifacts=f"file:{folder}",
        max_turns_per_minute=100_000,
        max_messages_per_minute=100_000,
    )
    engine = await ChatEngine.open(LlmAgent(name="plain", model=model), options)
    number = 0
    while await asyncio.to_thread(sys.stdin.readline):
        question: Any = {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "go"}]}
        request = parse_chat_request({"id": f"chat-{number}", "message": question})
        began = time.process_time()
        reader = await engine.start(request, user="user", client=RequestingClient(7))
        async for _ in reader.texts():
            pass
        await reader.aclose()
        print(time.process_time() - began, flush=True)
        number += 1
    await engine.close()


def _leave_out(_: TurnTelemetry) -> None:
    """Stand in for the hook of a delta."""


def main(kind: str, collector: str) -> None:
    """Play turns until the input ends."""
    if kind == BARE:
        setattr(TurnTelemetry, "delta", _leave_out)  # noqa: B010
    settings = Settings(metrics_port=_free_port() if kind == ON else None)
    if kind == ON:
        os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = collector
    with tempfile.TemporaryDirectory() as folder, exporting(settings, os.environ):
        asyncio.run(_serve(folder))


def _free_port() -> int:
    import socket  # noqa: PLC0415

    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
        return port


if __name__ == "__main__":
    main(*sys.argv[1:])
