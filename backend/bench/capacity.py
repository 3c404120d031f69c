"""Capacity: how many people one server process answers in time, and what many of them need.

`bench.people` plays the people. Their number grows step by step, until the 99th percentile of the
first delta or of the gap between two deltas is over its limit.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from bench import peer_environments
from bench.people import OURS
from bench.people_process import PeopleProcess, Used, running_stores
from bench.script import BEFORE_CALL, DELTA, PACE
from bench.server_process import ServerProcess, sluicegate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from bench.people_process import Stores

FIRST: Final = 0.100
"""Maximum 99th percentile of the seconds from a request to the first delta of its answer."""
GAP: Final = 0.050
"""Maximum 99th percentile of the seconds between two deltas, which are made every 33 ms."""
SILENCE: Final = 60.0
"""Seconds for which steps without a delta are repeated."""
PLANNED: Final = (1_000, 10_000)
"""Numbers of people for which a plan is computed."""

PEOPLE: Final = ("env:SLUICEGATE_MAX_TURNS=10000", "--auth", "header:x-user", "--no-page")
"""Options of a server to which many people talk, each as a user of their own."""
SQLITE: Final = "sluicegate, SQLite"
SHARED: Final = "sluicegate, PostgreSQL and Valkey"
AI_SDK: Final = "AI SDK 7 on Node"


@dataclass(frozen=True, slots=True)
class Crowding:
    """Numbers of people, and the seconds before and of each measurement.

    ``scale`` shortens answers and pauses; 1 for a measurement. ``servers`` are the titles of those
    that are measured.
    """

    steps: tuple[int, ...]
    warm: float
    seconds: float
    scale: float = 1.0
    servers: tuple[str, ...] = (SQLITE, SHARED, AI_SDK)


@dataclass(frozen=True, slots=True)
class Step:
    """What so many people see of one server, and what it uses; times in seconds.

    ``first``, ``gaps``, ``resumes`` and ``lag`` are 50th, 99th and last percentile; ``lag`` is by
    how much the people themselves were late. ``server``, ``database``, ``streams`` and ``client``
    are CPU seconds of each second. ``grown_kib`` is the memory of the server beyond that without
    people. ``commits``, ``log_bytes`` and ``stream_bytes`` are those of PostgreSQL and Valkey.
    """

    people: int
    seconds: float
    first: Sequence[float | None]
    gaps: Sequence[float | None]
    resumes: Sequence[float | None]
    lag: Sequence[float | None]
    deltas: int
    turns: int
    approvals: int
    failures: Sequence[str]
    server: float
    client: float
    grown_kib: int
    database: float = 0.0
    streams: float = 0.0
    commits: int = 0
    log_bytes: int = 0
    stream_bytes: int = 0

    @property
    def holds(self) -> bool:
        """Whether everything arrives in time and nothing fails."""
        first, gap = self.first[1], self.gaps[1]
        in_time = first is not None and gap is not None and first <= FIRST and gap <= GAP
        return in_time and not self.failures


@dataclass(frozen=True, slots=True)
class Capacity:
    """The steps of one server, up to the first that does not hold."""

    title: str
    steps: tuple[Step, ...]

    @property
    def most(self) -> Step | None:
        """The last step that holds."""
        return next((step for step in reversed(self.steps) if step.holds), None)

    @property
    def per_core(self) -> float | None:
        """People for each core that the server process uses at that step."""
        return None if self.most is None else self.most.people / self.most.server


@dataclass(frozen=True, slots=True)
class Plan:
    """What a number of people needs, in proportion to a measured step.

    Cores of each part, commits and bytes a second, bytes of memory of all server processes.
    """

    people: int
    processes: int
    server_cores: float
    database_cores: float
    streams_cores: float
    commits: float
    log_bytes: float
    stream_bytes: float
    memory_bytes: float


def planned(step: Step, people: int) -> Plan:
    """Return what people need if each needs what one of a measured step does."""
    share = people / step.people
    each_second = share / step.seconds
    return Plan(
        people=people,
        processes=math.ceil(share),
        server_cores=step.server * share,
        database_cores=step.database * share,
        streams_cores=step.streams * share,
        commits=step.commits * each_second,
        log_bytes=step.log_bytes * each_second,
        stream_bytes=step.stream_bytes * each_second,
        memory_bytes=step.grown_kib * 1024 * share,
    )


def measure_capacity(
    folder: Path, crowding: Crowding, progress: Callable[[str], None]
) -> list[Capacity]:
    """Measure each server, one after the other; without Node its row is omitted.

    Raises:
        BenchError: a server does not start, or a person cannot go on.
    """
    folder.mkdir(exist_ok=True)
    found = []
    for title in crowding.servers:
        place = folder / title.replace(" ", "-")
        with contextlib.ExitStack() as running:
            stores = None
            command: Sequence[str] | None = sluicegate("paying", *PEOPLE)
            if title == SHARED:
                stores = running.enter_context(running_stores(folder / "stores"))
                command = sluicegate("paying", *PEOPLE, *stores.options())
            elif title == AI_SDK:
                command = _on_node()
            if command is not None:
                server = running.enter_context(ServerProcess(command, place, {}))
                found.append(_measured(title, server, stores, crowding, progress))
    return found


def _on_node() -> list[str] | None:
    found = peer_environments.node()
    if found is None:
        return None
    binary, package = found
    script = peer_environments.ROOT / "backend" / "bench" / "servers" / "ai_sdk_people.mjs"
    return [binary, str(script), package, DELTA, str(PACE), str(BEFORE_CALL)]


def _measured(
    title: str,
    server: ServerProcess,
    stores: Stores | None,
    crowding: Crowding,
    progress: Callable[[str], None],
) -> Capacity:
    """Let more and more people in; a step that does not hold is measured twice.

    One in which no delta came at all is measured again.
    """
    kind = "node" if title == AI_SDK else OURS
    steps: list[Step] = []
    with PeopleProcess(server.address(), kind, scale=crowding.scale) as crowd:
        resident = server.resident_kib()
        for people in crowding.steps:
            crowd.let_in(people)
            crowd.measure(crowding.warm)
            deadline = time.monotonic() + SILENCE
            for number in itertools.count(1):
                step = _step(crowd, server, stores, people, crowding.seconds, resident)
                progress(f"{title}: {step_line(step)}")
                is_silent = not step.deltas and time.monotonic() < deadline
                if step.holds or (number >= 2 and not is_silent):
                    break
            steps.append(step)
            if not step.holds:
                break
    return Capacity(title, tuple(steps))


def _step(
    crowd: PeopleProcess,
    server: ServerProcess,
    stores: Stores | None,
    people: int,
    seconds: float,
    resident: int,
) -> Step:
    before = stores.used() if stores else Used()
    server_before = server.tree_seconds()
    sample = crowd.measure(seconds)
    server_after = server.tree_seconds()
    after = stores.used() if stores else Used()
    return step_of(
        people,
        sample,
        server_seconds=server_after - server_before,
        grown_kib=server.resident_kib() - resident,
        used=(before, after),
    )


def step_of(
    people: int,
    sample: dict[str, Any],
    *,
    server_seconds: float,
    grown_kib: int,
    used: tuple[Used, Used],
) -> Step:
    """Return the step of what people have seen and what was used meanwhile."""
    before, after = used
    seconds = sample["seconds"]
    return Step(
        people=people,
        seconds=seconds,
        first=sample["first"],
        gaps=sample["gaps"],
        resumes=sample["resumes"],
        lag=sample["lag"],
        deltas=sample["deltas"],
        turns=sample["turns"],
        approvals=sample["approvals"],
        failures=sample["failures"],
        server=server_seconds / seconds,
        client=sample["cpu"] / seconds,
        grown_kib=grown_kib,
        database=(after.database_seconds - before.database_seconds) / seconds,
        streams=(after.streams_seconds - before.streams_seconds) / seconds,
        commits=after.commits - before.commits,
        log_bytes=after.log_bytes - before.log_bytes,
        stream_bytes=after.stream_bytes - before.stream_bytes,
    )


def step_line(step: Step) -> str:
    """Return a step in one line."""
    text = (
        f"{step.people:,} people: first delta p50 {_ms(step.first[0])}, p99 {_ms(step.first[1])} "
        f"(at most {FIRST * 1e3:.0f}), gap p99 {_ms(step.gaps[1])} (at most {GAP * 1e3:.0f}), "
        f"resume p99 {_ms(step.resumes[1])}; cores: server {step.server:.2f}"
    )
    if step.commits:
        text += f", PostgreSQL {step.database:.2f}, Valkey {step.streams:.2f}"
    text += f", people {step.client:.2f} (late p99 {_ms(step.lag[1])})"
    return text + (f"; {len(step.failures)} failures" if step.failures else "")


def plan_line(plan: Plan) -> str:
    """Return a plan in one line."""
    return (
        f"{plan.people:,} people: {plan.processes} processes with {plan.server_cores:.1f} cores "
        f"and {plan.memory_bytes / 2**30:.1f} GiB beyond their start, PostgreSQL "
        f"{plan.database_cores:.1f} cores, {plan.commits:,.0f} commits and "
        f"{plan.log_bytes / 1e6:.1f} MB of log a second, Valkey {plan.streams_cores:.1f} cores "
        f"and {plan.stream_bytes / 1e6:.1f} MB a second"
    )


def _ms(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1e3:.0f} ms"
