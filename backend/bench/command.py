"""``python backend/bench``: start the servers, measure, print."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from bench.approval_cost import measure_costs
from bench.capacity import AI_SDK, SQLITE, Crowding, measure_capacity
from bench.client import BenchError
from bench.crowd import MANY, measure_crowd, measure_lag, measure_memory
from bench.files import SMALL_CACHES, measure_files
from bench.google_live_chats import measure_voice
from bench.idle_sockets import measure_idle
from bench.inbox import measure_inbox
from bench.large_request_flood import LARGEST, measure_flood
from bench.live_audio_latency import measure_spoken
from bench.multiple_processes import measure_killed, measure_scaling
from bench.peers import FLOOR, PEERS, SOCKET, SSE
from bench.pending import measure_pending
from bench.report import Report
from bench.rounds import measure
from bench.server_process import ServerProcess, own_server, sluicegate
from bench.svg_chart import picture
from bench.telemetry_cost import measure_telemetry
from bench.trees import measure_trees
from bench.turn_and_start_times import (
    measure_approvals,
    measure_import,
    measure_start,
    measure_turns,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Sequence

    from bench.peers import Peer

    Start = Callable[[Sequence[str], str], ServerProcess]

CROWD: Final = "crowd"
MEMORY: Final = "memory"
GROWTH: Final = "growth"
PENDING: Final = "pending"
START: Final = "start"
LEDGER: Final = "ledger"
TELEMETRY: Final = "telemetry"
TREES: Final = "trees"
SPOKEN: Final = "spoken"
FILES: Final = "files"
IDLE: Final = "idle"
FLOOD: Final = "flood"
VOICE: Final = "voice"
INBOX: Final = "inbox"
CAPACITY: Final = "capacity"
WORKERS: Final = "workers"
NAMES: Final = (
    *(peer.name for peer in PEERS),
    *(CROWD, MEMORY, GROWTH, PENDING, START, LEDGER, TREES, TELEMETRY, SPOKEN, FILES, IDLE),
    *(FLOOD, VOICE, INBOX, CAPACITY, WORKERS),
)


class Size(NamedTuple):
    """The amount of measurements."""

    rounds: int
    deltas: int
    approvals: int
    streams: tuple[int, ...]
    seconds: int
    lengths: tuple[int, ...]
    repeats: int
    pictured: int
    sockets: int
    flood: tuple[float, int]
    """Seconds, and the bytes of a body."""
    talks: tuple[int, ...]
    """Numbers of conversations at once."""
    inbox: int
    """Approvals that wait."""
    people: Crowding
    """Numbers of people who talk to one process."""
    workers: tuple[Crowding, Crowding]
    """The same for each of two processes, and for two of which one is killed."""


_STEPS: Final = (*range(25, 200, 25), *range(200, 500, 50), *range(500, 3_001, 250))

FULL: Final = Size(
    9,
    2_000,
    500,
    (1, 10, 50, 200),
    4,
    (10, 100, 1_000, 5_000),
    5,
    1_000,
    2_000,
    (30, LARGEST),
    (1, 10, 25, 50),
    10_000,
    Crowding(_STEPS, warm=10, seconds=20),
    (Crowding((40,), warm=12, seconds=20), Crowding((100,), warm=20, seconds=40)),
)
_FEW: Final = Crowding((2,), warm=0.5, seconds=2.5, scale=0.1, servers=(SQLITE, AI_SDK))
SHORT: Final = Size(
    *(1, 50, 5, (1, 2), 1, (10,), 1, 10, 20, (0.5, 2**20), (2,), 20, _FEW, (_FEW, _FEW))
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; return 1 if a measurement failed."""
    chosen = _options(arguments)
    size = SHORT if chosen.short else FULL
    try:
        with tempfile.TemporaryDirectory() as folder:
            report = _run(Path(folder), size, _names(chosen))
    except BenchError as error:
        print(error, file=sys.stderr)
        return 1
    print(report.table())
    if chosen.json is not None:
        chosen.json.write_text(json.dumps(report.json(), indent=1) + "\n", "utf-8")
    if chosen.picture is not None:
        chosen.picture.write_text(picture(report), "utf-8")
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description="Measure the server and its peers.")
    parser.add_argument(
        "--short",
        action="store_true",
        help="few deltas, few rows, one round: shows that the benchmark works, measures nothing",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every sample there, too")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="draw the table as SVG")
    parser.add_argument("--only", metavar="NAME,...", help=f"of {', '.join(NAMES)}")
    chosen = parser.parse_args(arguments)
    unknown = set(chosen.only.split(",") if chosen.only else ()) - set(NAMES)
    if unknown:
        parser.error(f"there is nothing to measure that is called {min(unknown)}")
    return chosen


def _names(chosen: argparse.Namespace) -> set[str]:
    if chosen.only:
        return set(chosen.only.split(","))
    return {FLOOR, SSE, SOCKET} if chosen.short else set(NAMES)


def _run(folder: Path, size: Size, names: Container[str]) -> Report:
    report = Report(rounds=size.rounds, deltas=size.deltas)
    variables = {"BENCH_DELTAS": str(size.deltas)}
    with contextlib.ExitStack() as running:

        def started(command: Sequence[str], name: str) -> ServerProcess:
            return running.enter_context(ServerProcess(command, folder / name, variables))

        _measure_peers(report, size, names, started)
    with contextlib.ExitStack() as running:

        def started_again(command: Sequence[str], name: str) -> ServerProcess:
            return running.enter_context(ServerProcess(command, folder / name, variables))

        _measure_rest(report, size, names, started_again)
    if SPOKEN in names:
        _say("speaking to a live chat")
        with ServerProcess(sluicegate("spoken"), folder / SPOKEN, variables) as server:
            report.spoken = measure_spoken(server, count=min(50, size.approvals))
    if IDLE in names:
        _say(f"{size.sockets} idle sockets")
        with ServerProcess(sluicegate("free"), folder / IDLE, variables) as server:
            report.idle = measure_idle(server, sockets=size.sockets, rounds=size.repeats)
    if FLOOD in names:
        seconds, largest = size.flood
        _say(f"small requests beside the largest ones, for {seconds} s")
        report.flood = measure_flood(folder / FLOOD, seconds=seconds, size=largest)
    if VOICE in names:
        _say("speaking through Google's client")
        report.voice = measure_voice(
            folder / VOICE,
            count=min(50, size.approvals),
            crowds=size.talks,
            seconds=2 * size.seconds,
            rounds=min(2, size.rounds),
        )
    _measure_people(report, size, names, folder)
    if FILES in names:
        _say(f"{size.pictured} turns with pictures, and a large one")
        with ServerProcess(
            sluicegate("pictured", *SMALL_CACHES), folder / FILES, variables
        ) as server:
            report.files = measure_files(server, turns=size.pictured)
    if START in names:
        _say("starting again and again")
        report.start["import"] = measure_import(rounds=size.repeats)
        report.start["first answer"] = measure_start(folder, rounds=size.repeats)
    if INBOX in names:
        _say(f"an inbox of {size.inbox:,} waiting approvals")
        report.inboxes = measure_inbox(
            folder / INBOX,
            waiting=size.inbox,
            rounds=20 * size.repeats,
            changes=max(2, size.approvals // 5),
        )
    _measure_costs(report, size, names, folder)
    return report


def _measure_people(report: Report, size: Size, names: Container[str], folder: Path) -> None:
    if CAPACITY in names:
        report.capacity = measure_capacity(folder / CAPACITY, size.people, _say)
    if WORKERS in names:
        scaling, killed = size.workers
        rounds = min(3, size.rounds)
        place = folder / WORKERS
        report.scaling = measure_scaling(place, scaling, rounds=rounds, progress=_say)
        _say("killing one of two processes")
        report.killed = measure_killed(folder / "killed", killed)


def _measure_costs(report: Report, size: Size, names: Container[str], folder: Path) -> None:
    count = max(2, size.approvals // 5)
    if LEDGER in names:
        _say("approvals on either database")
        report.costs = measure_costs(folder, count=count)
    if TREES in names:
        _say("approvals in trees of agents")
        report.trees = measure_trees(folder, count=count)
    if TELEMETRY in names:
        _say("telemetry of each delta")
        report.telemetry = measure_telemetry(rounds=max(2, 3 * size.repeats))


def _measure_peers(report: Report, size: Size, names: Container[str], started: Start) -> None:
    _say("starting the servers")
    commands: dict[tuple[str, ...], ServerProcess] = {}
    servers: dict[str, ServerProcess] = {}
    peers: list[Peer] = []
    for peer in PEERS:
        command = peer.start() if peer.name in names else None
        if command is None:
            if peer.name in names:
                report.missing.append(peer.title)
            continue
        if command not in commands:
            commands[command] = started(command, f"server-{len(commands)}")
        servers[peer.name] = commands[command]
        peers.append(peer)
    for server in commands.values():
        server.address()
    report.titles = {peer.name: peer.title for peer in peers}
    report.samples = measure(peers, servers, rounds=size.rounds, deltas=size.deltas, progress=_say)


def _measure_rest(report: Report, size: Size, names: Container[str], started: Start) -> None:
    if CROWD in names:
        server = started(sluicegate("free", *MANY), CROWD)
        report.lag = measure_lag(server, times=4 * size.repeats + 1)
        for streams in size.streams:
            _say(f"{streams} streams at once")
            report.crowds.append(measure_crowd(server, streams=streams, seconds=size.seconds))
    if MEMORY in names:
        # After many streams, a server reuses their memory for new ones.
        server = started(sluicegate("free", *MANY), MEMORY)
        report.memory = measure_memory(server, streams=max(size.streams))
    if GROWTH in names or PENDING in names:
        server = started(own_server("approvals"), GROWTH)
        if GROWTH in names:
            _say("long conversations, and approvals one after the other")
            report.turns = measure_turns(server, lengths=list(size.lengths), rounds=size.repeats)
            for people in (1, 8):
                count = max(2, size.approvals // 10)
                report.approvals[people] = measure_approvals(server, count=count, people=people)
        if PENDING in names:
            _say(f"opening {2 * size.approvals} approvals")
            report.pending = measure_pending(server, count=size.approvals)


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)
