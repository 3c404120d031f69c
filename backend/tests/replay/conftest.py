"""The tools of the conformance agent write to a file of the test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def with_effects(effects: Path) -> None:
    """Every test has a file that counts the effects of tools."""
