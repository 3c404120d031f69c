"""Long tables, of which `make test` plays a third, another one each day, and pytest itself all."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Final, TypeVar

Row = TypeVar("Row")

PARTS: Final = 3
PART: Final = os.environ.get("PART", "all")
"""The third that is played, "0" to "2", or "all"."""


def plays(number: int) -> bool:
    """Whether this run plays the row of a number."""
    return PART == "all" or number % PARTS == int(PART)


def played(rows: Iterable[Row]) -> list[Row]:
    """The rows that this run plays."""
    return [row for number, row in enumerate(rows) if plays(number)]
