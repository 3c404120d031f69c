"""Which rows of long tables a run plays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import pytest

from tests.parts import FEW, left_out, long_table


@dataclass(frozen=True)
class Row:
    """A test as pytest collects it."""

    nodeid: str
    is_long: bool

    def get_closest_marker(self, name: str) -> str | None:
        return name if self.is_long and name == long_table.name else None


def table(name: str, rows: int, *, is_long: bool = True) -> list[pytest.Item]:
    return [cast("Any", Row(f"{name}[{row}]", is_long)) for row in range(rows)]


def test_each_row_of_a_long_table_is_played_on_one_day_of_three() -> None:
    rows = [*table("test_one", 10), *table("test_another", 11)]
    played = [[row for row in rows if row not in left_out(rows, day)] for day in ("0", "1", "2")]
    assert sorted(row.nodeid for day in played for row in day) == sorted(r.nodeid for r in rows)
    assert all(6 <= len(day) <= 8 for day in played)


def test_all_rows_are_played_without_a_part_and_in_other_tests() -> None:
    assert left_out(table("test_one", 10), "all") == []
    assert left_out(table("test_one", 10, is_long=False), "0") == []
    assert left_out(table("test_few", FEW), "0") == []
