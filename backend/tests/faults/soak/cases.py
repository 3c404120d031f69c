"""The cases of the soak test and how often each is run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from tests.faults.kill_points import POINTS
from tests.faults.soak.fuzz import KINDS as FUZZED
from tests.faults.soak.fuzz import Kind as Fuzzed
from tests.faults.soak.fuzz import fuzz
from tests.faults.soak.hostile import play as play_hostile
from tests.faults.soak.kills import kill
from tests.faults.soak.previews import TITLE as DRIFTING
from tests.faults.soak.previews import drift
from tests.faults.soak.quorums import TITLE, race_for_quorum
from tests.faults.soak.races import TITLES, Rival, race
from tests.faults.soak.random_trees import play as play_trees
from tests.faults.soak.schedules import play
from tests.faults.soak.stores import KINDS, Kind, databases
from tests.faults.soak.tally import Tally
from tests.faults.soak.trees import KILLED_AT, TREES
from tests.faults.soak.trees import kill as kill_in_tree
from tests.faults.soak.webhooks import kill as kill_with_webhooks

RACES: Final = 130
OTHER_RACES: Final = 80
QUORUMS: Final = {"sqlite": 250, "postgresql": 1_000}
PREVIEWS: Final = {"sqlite": 1_000, "postgresql": 250}
KILLS: Final = 32
WEBHOOK_KILLS: Final = 300
SCHEDULES: Final = 20_000
HOSTILE: Final = 20_000
FUZZ: Final = 20_000
TREES_AT_RANDOM: Final = 5_000
TREES_ON_POSTGRESQL: Final = 500

DELAYS: Final = (0.0, 0.01, 0.1, 0.25)
"""Seconds between the two answers."""


class _Running(Protocol):
    def __call__(self, folder: Path, *, count: int, processes: int, first_seed: int) -> Tally:
        """Run a case that many times in a folder."""


@dataclass(frozen=True)
class Case:
    """A case by its name, and how often it is run in the long run."""

    name: str
    count: int
    run: _Running


def cases() -> list[Case]:
    """All cases: 1,040 double approvals, 1,460 kills, 5,500 agent trees and much else."""
    return [
        *(_race(kind, "approve", delay, RACES) for kind in KINDS for delay in DELAYS),
        *(_race(kind, "deny", 0.0, OTHER_RACES) for kind in KINDS),
        *(_race(kind, "new text", delay, OTHER_RACES) for kind in KINDS for delay in (0.0, 0.1)),
        *(_quorum(kind) for kind in KINDS),
        *(_drifting(kind) for kind in KINDS),
        *(_kill(kind, point) for kind in KINDS for point in POINTS),
        *(_kill_in_tree(kind, tree) for kind in KINDS for tree in TREES),
        *(_kill_with_webhooks(kind) for kind in KINDS),
        _random_trees("sqlite", TREES_AT_RANDOM),
        _random_trees("postgresql", TREES_ON_POSTGRESQL),
        _schedules(),
        _hostile(),
        *(_fuzz(kind) for kind in FUZZED),
    ]


def _race(kind: Kind, rival: Rival, delay: float, count: int) -> Case:
    def run(folder: Path, *, count: int, processes: int, first_seed: int) -> Tally:
        with databases(kind, folder) as opened:
            return race(opened, rival, delay, count)

    return Case(f"{TITLES[rival]}, {delay * 1000:.0f} ms, {kind}", count, run)


def _quorum(kind: Kind) -> Case:
    def run(folder: Path, *, count: int, processes: int, first_seed: int) -> Tally:
        with databases(kind, folder) as opened:
            return race_for_quorum(opened, count, first_seed)

    return Case(f"{TITLE}, {kind}", QUORUMS[kind], run)


def _drifting(kind: Kind) -> Case:
    def run(folder: Path, *, count: int, processes: int, first_seed: int) -> Tally:
        with databases(kind, folder) as opened:
            return drift(opened, first_seed, count, processes)

    return Case(f"{DRIFTING}, {kind}", PREVIEWS[kind], run)


def _kill(kind: Kind, point: str) -> Case:
    def run(folder: Path, *, count: int, processes: int, first_seed: int) -> Tally:
        with databases(kind, folder) as opened:
            return kill(opened, point, count)

    return Case(f"kill {point}, {kind}", KILLS, run)


def _kill_in_tree(kind: Kind, tree: str) -> Case:
    def run(folder: Path, *, count: int, processes: int, first_seed: int) -> Tally:
        with databases(kind, folder) as opened:
            return kill_in_tree(opened, tree, count)

    return Case(f"kill in {tree}, {kind}", 2 * len(KILLED_AT), run)


def _kill_with_webhooks(kind: Kind) -> Case:
    def run(folder: Path, *, count: int, processes: int, first_seed: int) -> Tally:
        with databases(kind, folder) as opened:
            return kill_with_webhooks(opened, count)

    return Case(f"kill with webhooks, {kind}", WEBHOOK_KILLS, run)


def _random_trees(kind: Kind, count: int) -> Case:
    def run(folder: Path, *, count: int, processes: int, first_seed: int) -> Tally:
        with databases(kind, folder) as opened:
            return play_trees(opened, first_seed, count, processes)

    return Case(f"random trees, {kind}", count, run)


def _schedules() -> Case:
    def run(folder: Path, *, count: int, processes: int, first_seed: int) -> Tally:
        return play(folder, first_seed, count, processes)

    return Case("seeded schedules", SCHEDULES, run)


def _hostile() -> Case:
    def run(folder: Path, *, count: int, processes: int, first_seed: int) -> Tally:
        return play_hostile(first_seed, count, processes)

    return Case("hostile models", HOSTILE, run)


def _fuzz(kind: Fuzzed) -> Case:
    def run(folder: Path, *, count: int, processes: int, first_seed: int) -> Tally:
        return fuzz(kind, first_seed, count, processes)

    return Case(f"fuzzed {kind}", FUZZ, run)
