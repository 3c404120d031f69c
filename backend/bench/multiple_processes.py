"""Several server processes: the CPU of a delta with two of them, and what the death of one breaks.

The people of `bench.people` talk to one port; PostgreSQL and Valkey are shared.
"""

from __future__ import annotations

import contextlib
import os
import signal
import statistics
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bench.capacity import PEOPLE
from bench.client import BenchError
from bench.people import OURS
from bench.people_process import PeopleProcess, running_stores
from bench.script import EFFECTS
from bench.server_process import ServerProcess, children, sluicegate, tree_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bench.capacity import Crowding
    from bench.people_process import Stores

RATIO: Final = 1.1
"""Maximum CPU of a delta with two processes, as a ratio to that with one."""
_ESTABLISHED: Final = "01"
_OPEN: Final = ("requested", "approved", "executing", "asked_again")
"""States of an approval in which something is still to be done."""


@dataclass(frozen=True, slots=True)
class Scaling:
    """CPU seconds of the server processes per delta, one value per round.

    ``one`` process with a number of people, ``two`` with twice as many, and ``spread``: two with
    the same number, so that each delta is more often alone.
    """

    people: int
    one: tuple[float, ...]
    two: tuple[float, ...]
    spread: tuple[float, ...]

    @property
    def ratio(self) -> float:
        """Of two processes to one, each process with the same number of people."""
        return statistics.median(self.two) / statistics.median(self.one)

    @property
    def spread_ratio(self) -> float:
        """Of two processes to one, with the same number of people in all."""
        return statistics.median(self.spread) / statistics.median(self.one)


@dataclass(frozen=True, slots=True)
class Killed:
    """What the death of one of two processes has broken.

    ``open`` connections to the killed one and to the other; ``lost``: answers that broke off, and
    ``foreign`` those of them on connections to the other process. ``restored``: 50th, 99th and
    last percentile of the seconds to the end of such an answer; ``repeated``: requests that were
    sent again. ``states`` counts all approvals in the database when everybody has read to the end,
    ``twice`` the calls that ran more than once, and ``forgotten`` those that are still open, or
    closed without having run.
    """

    people: int
    open: tuple[int, int]
    lost: int
    foreign: int
    restored: Sequence[float | None]
    repeated: int
    failures: Sequence[str]
    states: dict[str, int]
    twice: int
    forgotten: int


def measure_scaling(
    folder: Path, crowding: Crowding, *, rounds: int, progress: Callable[[str], None]
) -> Scaling:
    """Start one or two processes anew for each value, in turn.

    Raises:
        BenchError: a server does not start, or a person cannot go on.
    """
    folder.mkdir(exist_ok=True)
    people = crowding.steps[0]
    ways = {"one": (1, people), "two": (2, 2 * people), "spread": (2, people)}
    spent: dict[str, list[float]] = {way: [] for way in ways}
    with running_stores(folder / "stores") as stores:
        for number in range(rounds):
            for way, (processes, count) in ways.items():
                with _serving(folder / f"{way}-{number}", stores, processes) as server:
                    work = _per_delta(server, crowding, count)
                progress(f"{processes} processes, {count} people: {work * 1e6:.0f} µs per delta")
                spent[way].append(work)
    return Scaling(people, tuple(spent["one"]), tuple(spent["two"]), tuple(spent["spread"]))


def measure_killed(folder: Path, crowding: Crowding) -> Killed:
    """Kill the busier of two processes while people talk to both, and let them all read on.

    Raises:
        BenchError: a server does not start, or a person cannot go on.
    """
    folder.mkdir(exist_ok=True)
    people = crowding.steps[0]
    effects = folder / "effects"
    with (
        running_stores(folder / "stores") as stores,
        _serving(folder / "killed", stores, 2, effects) as server,
        PeopleProcess(server.address(), OURS, scale=crowding.scale) as crowd,
    ):
        port = server.address().port
        crowd.let_in(people)
        # One measurement from the start: a second one that begins late misses what breaks off.
        seconds = crowding.warm + crowding.seconds
        measuring = threading.Thread(target=crowd.measure, args=[seconds], daemon=True)
        measuring.start()
        time.sleep(crowding.warm + crowding.seconds / 4)
        # One process may have more connections than the other.
        other, victim = sorted(workers_of(server), key=lambda pid: len(peers_of(pid, port)))
        # Stopped first, so that it cannot accept a connection that is not listed.
        os.kill(victim, signal.SIGSTOP)
        theirs, others = peers_of(victim, port), peers_of(other, port)
        os.kill(victim, signal.SIGKILL)
        measuring.join()
        sample = crowd.leave()
        rows = stores.rows("SELECT call, state FROM sluicegate_approvals")
    ran = Counter(line.split()[1] for line in effects.read_text().splitlines())
    states = {row["call"]: row["state"] for row in rows}
    return killed_of(people, (theirs, others), sample, ran, states)


def killed_of(
    people: int,
    peers: tuple[set[int], set[int]],
    sample: dict[str, Any],
    ran: Counter[str],
    states: dict[str, str],
) -> Killed:
    """Return what was broken.

    ``peers`` are the ports of connections to the killed process and to the other, ``sample`` what
    people have seen, ``ran`` how often each call ran, ``states`` the state of each approval.
    """
    theirs, others = peers
    without_effect = {call for call, state in states.items() if state == "executed"} - ran.keys()
    return Killed(
        people=people,
        open=(len(theirs), len(others)),
        lost=len(sample["lost"]),
        foreign=len(set(sample["lost"]) & others),
        restored=sample["restored"],
        repeated=sample["repeated"],
        failures=sample["failures"],
        states=dict(Counter(states.values())),
        twice=sum(times > 1 for times in ran.values()),
        forgotten=len(without_effect) + sum(state in _OPEN for state in states.values()),
    )


def workers_of(server: ServerProcess) -> list[int]:
    """The processes that answer requests."""
    return children(server.pid) or [server.pid]


def peers_of(pid: int, port: int) -> set[int]:
    """The ports of the peers that are connected to a port of a process."""
    inodes = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        # A running process may have closed it meanwhile.
        with contextlib.suppress(FileNotFoundError):
            inodes.add(os.readlink(descriptor))
    connected = set()
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, remote, state, *rest = line.split()
        is_ours = int(local.partition(":")[2], 16) == port and state == _ESTABLISHED
        if is_ours and f"socket:[{rest[5]}]" in inodes:
            connected.add(int(remote.partition(":")[2], 16))
    return connected


def _serving(
    folder: Path, stores: Stores, processes: int, effects: Path | None = None
) -> ServerProcess:
    options = (*PEOPLE, *stores.options(), "--processes", str(processes))
    variables = {} if effects is None else {EFFECTS: str(effects)}
    return ServerProcess(sluicegate("paying", *options), folder, variables)


def _per_delta(server: ServerProcess, crowding: Crowding, people: int) -> float:
    """CPU seconds of the processes that answer requests, per delta."""
    with PeopleProcess(server.address(), OURS, scale=crowding.scale) as crowd:
        crowd.let_in(people)
        crowd.measure(crowding.warm)
        before = sum(map(tree_seconds, workers_of(server)))
        sample = crowd.measure(crowding.seconds)
        spent = sum(map(tree_seconds, workers_of(server))) - before
    if not sample["deltas"] or sample["failures"]:
        raise BenchError(f"People were not answered: {sample['failures'][:3]}.")
    return spent / float(sample["deltas"])


def scaling_line(found: Scaling) -> str:
    """Return the ratios in one line."""
    one = statistics.median(found.one) * 1e6
    return (
        f"Two processes, {found.people:,} people each: {found.ratio:.2f} x the CPU of a delta "
        f"with one and as many ({one:.0f} µs; at most {RATIO}); {found.people:,} people in all: "
        f"{found.spread_ratio:.2f} x"
    )


def killed_line(found: Killed) -> str:
    """Return what was broken in one line."""
    killed, other = found.open
    longest = found.restored[2]
    restored = "" if longest is None else f", the last one after {longest:.1f} s"
    states = ", ".join(f"{count} {state}" for state, count in sorted(found.states.items()))
    return (
        f"One of two processes killed under {found.people:,} people, with {killed} connections "
        f"({other} to the other): {found.lost} answers broke off, {found.foreign} of them of the "
        f"other, {len(found.failures)} were not restored{restored}; approvals: {states}; "
        f"{found.forgotten} forgotten, {found.twice} ran twice"
    )
