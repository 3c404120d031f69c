"""Every requirement has a row, and every test that a row names exists."""

from __future__ import annotations

import re

import pytest

from tests.docs.markdown import DOCS, ROOT, rows

TEXT = (DOCS / "requirements.md").read_text("utf-8")
ROWS = {row[0]: row[2] for row in rows(TEXT) if re.fullmatch(r"[SD][0-4]?-R\d\d", row[0])}
REFERENCE = re.compile(r"`([\w./-]+\.(?:py|ts))(?:::([^`]+))?`")
FOLDERS = {".py": ROOT / "backend" / "tests", ".ts": ROOT / "e2e" / "conformance"}


def test_every_requirement_has_one_row() -> None:
    found = re.findall(r"^\| (\S+-R\d\d) \|", TEXT, re.MULTILINE)

    numbers = {
        "S2": range(1, 49),
        "S0": range(1, 30),
        "S1": range(1, 44),
        "S3": range(1, 33),
        "S4": (*range(1, 39), *range(40, 58)),
        "D": range(1, 11),
    }
    assert found == [f"{part}-R{number:02}" for part, some in numbers.items() for number in some]


@pytest.mark.parametrize("name", ROWS)
def test_a_row_names_at_least_one_test(name: str) -> None:
    assert any(title for _, title in REFERENCE.findall(ROWS[name]))


@pytest.mark.parametrize("name", ROWS)
def test_every_test_of_a_requirement_exists(name: str) -> None:
    for path, title in REFERENCE.findall(ROWS[name]):
        python = path.endswith(".py")
        file = FOLDERS[".py" if python else ".ts"] / path
        assert file.is_file(), path
        named = rf"def {title}\b" if python else rf'"{re.escape(title)}"'
        assert not title or re.search(named, file.read_text("utf-8")), f"{path}::{title}"
