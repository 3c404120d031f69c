"""Long tables, of which `make test` plays a third, another one each day, and pytest itself all."""

from __future__ import annotations

import os
from collections import defaultdict
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence

PARTS: Final = 3
PART: Final = os.environ.get("PART", "all")
"""The third that is played, "0" to "2", or "all"."""
FEW: Final = 3
"""A test of so many rows plays all of them."""

long_table: Final = pytest.mark.long_table
"""Marks a test, or each test of a module, of whose rows a run plays a third."""


def plays(number: int, part: str = PART) -> bool:
    """Whether this run plays the row of a number."""
    return part == "all" or number % PARTS == int(part)


def left_out(items: Sequence[pytest.Item], part: str = PART) -> list[pytest.Item]:
    """The rows of long tables that this run does not play."""
    tables: defaultdict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker(long_table.name) is not None:
            tables[item.nodeid.partition("[")[0]].append(item)
    return [
        row
        for name, rows in tables.items()
        if len(rows) > FEW
        for number, row in enumerate(rows)
        # The tests of a module do not all play the same rows, such as one transport.
        if not plays(number + len(name), part)
    ]
