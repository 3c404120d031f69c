"""Every test that a fact of ADK names exists."""

from __future__ import annotations

import re

import pytest

from tests.docs.markdown import DOCS, TESTS, rows

FACTS = {
    row[0]: row[-1] for row in rows((DOCS / "adk-facts.md").read_text("utf-8")) if row[0] != "fact"
}
NAMED = re.compile(r"`(?:([\w/]+\.py)(?:::|`)|…(?:::|(?=\[)))(\w*)")
"""A file and a test, each perhaps missing; dots stand for the file, or the test, named before."""


def named_tests(cell: str) -> list[tuple[str, str]]:
    """The tests that a cell names: path, and name or an empty string."""
    named: list[tuple[str, str]] = []
    for path, name in NAMED.findall(cell):
        if path or named:
            named.append((path or named[-1][0], name))
    return named


def test_dots_stand_for_the_file_that_is_named_before() -> None:
    cell = "`…[a row]`, `live/test_a.py::test_one[a row]`, `…::test_two`, `test_b.py`, `…::…[x]` |"
    assert named_tests(cell) == [
        ("live/test_a.py", "test_one"),
        ("live/test_a.py", "test_two"),
        ("test_b.py", ""),
        ("test_b.py", ""),
    ]


@pytest.mark.parametrize("fact", FACTS)
def test_every_test_of_a_fact_exists(fact: str) -> None:
    for path, name in named_tests(FACTS[fact]):
        files = list(TESTS.rglob(path))
        assert files, path
        named = re.compile(rf"def {name}\b" if name else "def test_")
        assert any(named.search(file.read_text("utf-8")) for file in files), f"{path}::{name}"
