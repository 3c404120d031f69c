"""Decisions are short, numbered, and complete."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.markdown import DOCS

DECISIONS = sorted((DOCS / "decisions").glob("*.md"))


@pytest.mark.parametrize("path", DECISIONS, ids=lambda path: path.stem)
def test_a_decision_has_its_sections_in_at_most_sixty_lines(path: Path) -> None:
    lines = path.read_text("utf-8").splitlines()

    assert len(lines) <= 60
    assert [line for line in lines if line.startswith("## ")] == [
        "## Context",
        "## Decision",
        "## Consequences",
        "## Rejected",
    ]


def test_decisions_are_numbered_without_gaps() -> None:
    numbers = [int(path.name[:4]) for path in DECISIONS]

    assert numbers == list(range(1, len(DECISIONS) + 1))
    for number, path in zip(numbers, DECISIONS, strict=True):
        assert path.read_text("utf-8").startswith(f"# {number}. ")
