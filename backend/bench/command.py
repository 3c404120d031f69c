"""``python backend/bench``: start the servers, measure, print."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from bench.client import BenchError
from bench.peers import PEERS
from bench.pending import measure_pending
from bench.report import Report
from bench.rounds import measure
from bench.script import write_script
from bench.server_process import ServerProcess, own_server

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.client import Address


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; returns 1 when something could not be measured."""
    chosen = _options(arguments)
    rounds, deltas, approvals = (1, 50, 5) if chosen.short else (7, 2_000, 1_000)
    try:
        with tempfile.TemporaryDirectory() as folder:
            report = _run(Path(folder), rounds=rounds, deltas=deltas, approvals=approvals)
    except BenchError as error:
        print(error, file=sys.stderr)
        return 1
    print(report.table())
    if chosen.json is not None:
        chosen.json.write_text(json.dumps(report.json(), indent=2) + "\n", "utf-8")
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description="Measure the server and its peers.")
    parser.add_argument(
        "--short",
        action="store_true",
        help="few deltas, one round: shows that the benchmark works, measures nothing",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every sample there, too")
    return parser.parse_args(arguments)


def _run(folder: Path, *, rounds: int, deltas: int, approvals: int) -> Report:
    script = folder / "script.json"
    write_script(script, deltas=deltas)
    environment = {"BENCH_SCRIPT": str(script), "BENCH_DELTAS": str(deltas)}
    with contextlib.ExitStack() as running:
        waiting = running.enter_context(
            ServerProcess(own_server("approvals"), folder / "approvals", environment)
        )
        commands = dict.fromkeys(peer.command for peer in PEERS)
        servers = {
            command: running.enter_context(
                ServerProcess(command, folder / f"server-{number}", environment)
            )
            for number, command in enumerate(commands)
        }
        _say("starting the servers")
        addresses: dict[tuple[str, ...], Address] = {
            command: server.address() for command, server in servers.items()
        }
        samples = measure(PEERS, addresses, rounds=rounds, deltas=deltas, progress=_say)
        _say(f"opening {2 * approvals} approvals")
        pending = measure_pending(waiting, count=approvals)
    return Report({peer.name: peer.title for peer in PEERS}, samples, pending, rounds, deltas)


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)
