"""The result of a case, and the table of all cases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from tests.faults.promises import DoubleEffect, LostDecision

_HEAD: Final = ("case", "runs", "double effects", "lost decisions", "broken", "seconds")
_WIDTHS: Final = (36, 7, 15, 15, 7, 8)


@dataclass
class Tally:
    """One case: ``broken`` counts runs that failed otherwise, ``notes`` describe failures."""

    case: str
    runs: int = 0
    double_effects: int = 0
    lost_decisions: int = 0
    broken: int = 0
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Whether nothing failed, in at least one run."""
        return self.runs > 0 and not (self.double_effects or self.lost_decisions or self.broken)

    def add(self, failures: Sequence[tuple[str, str]], *, runs: int) -> None:
        """Count runs and their failures: pairs of a kind and a description."""
        self.runs += runs
        for kind, note in failures:
            if kind == DoubleEffect.__name__:
                self.double_effects += 1
            elif kind == LostDecision.__name__:
                self.lost_decisions += 1
            else:
                self.broken += 1
            self.notes.append(f"{kind}: {note}")

    def as_data(self) -> dict[str, Any]:
        """The tally as JSON holds it."""
        return asdict(self)

    def row(self) -> str:
        """The tally as a row of the table."""
        counts = (self.runs, self.double_effects, self.lost_decisions, self.broken)
        return _line(self.case, *map(str, counts), f"{self.seconds:.1f}")


def head() -> str:
    """The first line of the table."""
    return _line(*_HEAD)


def failure(error: BaseException, where: str) -> tuple[str, str]:
    """An error as a pair for `Tally.add`."""
    words = str(error).strip().splitlines()
    return type(error).__name__, f"{where}: {words[-1] if words else 'no message'}"


def _line(*cells: str) -> str:
    name, *counts = cells
    padded = [cell.rjust(width) for cell, width in zip(counts, _WIDTHS[1:], strict=True)]
    return " ".join([name.ljust(_WIDTHS[0]), *padded])
