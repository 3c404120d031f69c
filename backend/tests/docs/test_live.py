"""Every situation of a live chat has a row, and every test that a row names exists."""

from __future__ import annotations

import pytest

from tests.docs.markdown import DOCS, TESTS, is_test, python_tests, rows

TEXT = (DOCS / "reference" / "live.md").read_text("utf-8")
ROWS = {row[0]: row[3] for row in rows(TEXT) if row[0] != "id"}


def test_the_ids_are_numbered_without_gaps() -> None:
    assert list(ROWS) == [f"L{number}" for number in range(1, len(ROWS) + 1)]


@pytest.mark.parametrize("name", ROWS)
def test_every_test_of_a_situation_exists(name: str) -> None:
    named = python_tests(ROWS[name])
    assert named
    for path, title in named:
        assert is_test(path, title), f"{path}::{title}"


def test_every_file_of_tests_on_the_wire_is_in_a_row() -> None:
    files = {path for cell in ROWS.values() for path, _ in python_tests(cell)}
    on_the_wire = {f"live/google/{file.name}" for file in (TESTS / "live/google").glob("test_*.py")}
    # These test the double itself, and what every other test presupposes.
    assert on_the_wire - files == {
        "live/google/test_live_api.py",
        "live/google/test_conversations.py",
    }
