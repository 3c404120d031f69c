"""The numbers as one table for people and as JSON for programs."""

from __future__ import annotations

import platform
import statistics
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bench.peers import ALONE, FLOOR, FREE, PREVIEW, PROGRESSIVE, RUNNER

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from bench.pending import Pending
    from bench.rounds import Samples

DELTA_BUDGET: Final = 25e-6
"""Seconds per delta that the server may add to ``Runner.run_async``."""
FIRST_BUDGET: Final = 5e-3
"""Seconds to the first delta that it may add."""

_OURS: Final = (FREE, PROGRESSIVE, PREVIEW)
_BASES: Final = {
    ALONE: "to Runner.run_async alone, so with all of HTTP",
    RUNNER: "to Runner.run_async in the bare generator",
}


@dataclass(frozen=True, slots=True)
class Spread:
    """Median, lowest and highest of the rounds."""

    median: float
    lowest: float
    highest: float

    def text(self, scale: float) -> str:
        """Return ``median (lowest - highest)`` in other units."""
        low, high = self.lowest * scale, self.highest * scale
        return f"{self.median * scale:8.1f} ({low:.1f} - {high:.1f})"


def spread(values: Sequence[float]) -> Spread:
    """Return the spread of one value a round."""
    return Spread(statistics.median(values), min(values), max(values))


class Added(NamedTuple):
    """What the server adds: per delta, to the first delta, and per delta of its own work."""

    per_delta: Spread
    first_delta: Spread
    work: Spread | None


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that one run has measured."""

    titles: Mapping[str, str]
    samples: Mapping[str, Samples]
    pending: Pending | None
    rounds: int
    deltas: int

    def added(self, name: str, base: str) -> Added:
        """Return what a row adds to another, round by round."""
        ours, theirs = self.samples[name], self.samples[base]
        return Added(
            _difference(ours.per_delta, theirs.per_delta),
            _difference(ours.first_delta, theirs.first_delta),
            _difference(ours.server, theirs.server) if ours.server and theirs.server else None,
        )

    def table(self) -> str:
        """Return the table that is printed."""
        return "\n".join(self._lines())

    def json(self) -> dict[str, Any]:
        """Return all samples in seconds, what follows from them, and where they were taken."""
        return {
            "format": 1,
            "python": platform.python_version(),
            "google_adk": version("google-adk"),
            "rounds": self.rounds,
            "deltas": self.deltas,
            "peers": {name: asdict(found) for name, found in self.samples.items()},
            "added": {
                name: {base: self._added_json(name, base) for base in self._bases()}
                for name in self._ours()
            },
            "budget": {"per_delta": DELTA_BUDGET, "first_delta": FIRST_BUDGET},
            "pending": self._pending_json(),
        }

    def _pending_json(self) -> dict[str, Any] | None:
        if self.pending is None:
            return None
        return {**asdict(self.pending), "kib_per_thousand": self.pending.kib_per_thousand}

    def _bases(self) -> list[str]:
        return [name for name in _BASES if name in self.samples]

    def _ours(self) -> list[str]:
        return [name for name in _OURS if name in self.samples]

    def _added_json(self, name: str, base: str) -> dict[str, Any]:
        per_delta, first, work = self.added(name, base)
        return {
            "per_delta": per_delta.median,
            "first_delta": first.median,
            "server": None if work is None else work.median,
            "within": per_delta.median <= DELTA_BUDGET and first.median <= FIRST_BUDGET,
        }

    def _lines(self) -> Iterator[str]:
        yield (
            f"{self.deltas:,} deltas of 20 bytes, median of {self.rounds} (lowest - highest); "
            f"Python {platform.python_version()}, google-adk {version('google-adk')}"
        )
        yield ""
        yield f"{'':37}{'µs per delta':28}{'x floor':10}{'of work':10}first delta ms"
        for name, found in self.samples.items():
            per_delta, first = spread(found.per_delta), spread(found.first_delta)
            work = spread(found.server) if found.server else None
            yield (
                f"{self.titles[name]:36}{per_delta.text(1e6):28}"
                f"{self._to_floor(per_delta.median):8}{_plain(work):10}{first.text(1e3)}"
            )
        for base in self._bases():
            yield ""
            yield f"What the server adds {_BASES[base]} (budget 25 µs and 5 ms)"
            yield from (self._against_budget(name, base) for name in self._ours())
        yield ""
        yield from self._idle()

    def _to_floor(self, per_delta: float) -> str:
        floor = spread(self.samples[FLOOR].per_delta).median if FLOOR in self.samples else 0.0
        return f"{per_delta / floor:7.1f}" if floor else ""

    def _against_budget(self, name: str, base: str) -> str:
        per_delta, first, work = self.added(name, base)
        return (
            f"{self.titles[name]:36}{per_delta.text(1e6):28}"
            f"{_verdict(per_delta.median, DELTA_BUDGET):8}{_plain(work):10}"
            f"{first.text(1e3):27}{_verdict(first.median, FIRST_BUDGET)}"
        )

    def _idle(self) -> Iterator[str]:
        found = self.pending
        if found is not None:
            yield (
                f"{found.count:,} idle pending approvals: {found.resident_kib:,} KiB of memory "
                f"({found.kib_per_thousand:,.0f} KiB per 1,000), "
                f"{found.tasks} tasks, {found.sockets} sockets"
            )
        if FLOOR in self.samples:
            client = spread(self.samples[FLOOR].client)
            yield f"The client's own work at the floor: {client.text(1e6).strip()} µs per delta"


def _difference(ours: Sequence[float], theirs: Sequence[float]) -> Spread:
    return spread([mine - other for mine, other in zip(ours, theirs, strict=True)])


def _plain(microseconds: Spread | None) -> str:
    return f"{microseconds.median * 1e6:8.1f}" if microseconds is not None else ""


def _verdict(value: float, budget: float) -> str:
    return "within" if value <= budget else "over"
