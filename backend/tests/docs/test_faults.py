"""Every fault has a row, and every test that a row names exists."""

from __future__ import annotations

import re

import pytest

from tests.docs.markdown import DOCS, TESTS, is_test, python_tests, rows

TEXT = (DOCS / "reference" / "faults.md").read_text("utf-8")
ROWS = {row[0]: row[3] for row in rows(TEXT) if re.fullmatch(r"F\d+", row[0])}


def test_every_fault_has_one_row() -> None:
    found = re.findall(r"^\| F(\d+) \|", TEXT, re.MULTILINE)
    # Live audio and load have tables of their own.
    assert found == [str(number) for number in range(1, 29) if number not in (19, 21)]


@pytest.mark.parametrize("name", ROWS)
def test_every_test_of_a_fault_exists(name: str) -> None:
    named = python_tests(ROWS[name])
    assert named
    for path, title in named:
        assert is_test(path, title), f"{path}::{title}"


def test_every_test_that_is_named_after_a_fault_is_in_its_row() -> None:
    for file in sorted((TESTS / "faults").glob("test_*.py")):
        for title, number in re.findall(r"def (test_f(\d+)_\w+)", file.read_text("utf-8")):
            files = {path for path, _ in python_tests(ROWS[f"F{number}"])}
            assert f"faults/{file.name}" in files, title
