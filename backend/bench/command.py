"""``python backend/bench``: start the servers, measure, print."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from bench.client import BenchError
from bench.peers import PEERS
from bench.pending import measure_pending
from bench.report import Report
from bench.rounds import measure
from bench.script import write_script
from bench.server_process import ServerProcess, own_server

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from bench.pending import Pending

PENDING: Final = "pending"
NAMES: Final = (*(peer.name for peer in PEERS), PENDING)


class Size(NamedTuple):
    """How much is measured."""

    rounds: int
    deltas: int
    approvals: int


FULL: Final = Size(rounds=7, deltas=2_000, approvals=1_000)
SHORT: Final = Size(rounds=1, deltas=50, approvals=5)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; returns 1 when something could not be measured."""
    chosen = _options(arguments)
    size = SHORT if chosen.short else FULL
    try:
        with tempfile.TemporaryDirectory() as folder:
            report = _run(Path(folder), size, set(chosen.only.split(",")))
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
    parser.add_argument(
        "--only", default=",".join(NAMES), metavar="NAME,...", help=f"of {', '.join(NAMES)}"
    )
    chosen = parser.parse_args(arguments)
    unknown = set(chosen.only.split(",")) - set(NAMES)
    if unknown:
        parser.error(f"there is nothing to measure that is called {min(unknown)}")
    return chosen


def _run(folder: Path, size: Size, names: Container[str]) -> Report:
    script = folder / "script.json"
    write_script(script, deltas=size.deltas)
    environment = {"BENCH_SCRIPT": str(script), "BENCH_DELTAS": str(size.deltas)}
    peers = [peer for peer in PEERS if peer.name in names]
    commands = dict.fromkeys(peer.command for peer in peers)
    pending: Pending | None = None
    _say("starting the servers")
    with contextlib.ExitStack() as running:

        def started(command: Sequence[str], name: str) -> ServerProcess:
            return running.enter_context(ServerProcess(command, folder / name, environment))

        waiting = started(own_server("approvals"), PENDING) if PENDING in names else None
        servers = {
            command: started(command, f"server-{number}") for number, command in enumerate(commands)
        }
        for server in servers.values():
            server.address()
        samples = measure(peers, servers, rounds=size.rounds, deltas=size.deltas, progress=_say)
        if waiting is not None:
            _say(f"opening {2 * size.approvals} approvals")
            pending = measure_pending(waiting, count=size.approvals)
    titles = {peer.name: peer.title for peer in peers}
    return Report(titles, samples, pending, size.rounds, size.deltas)


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)
