"""Every threat has a row, and every test that a row names exists."""

from __future__ import annotations

import re
from collections import defaultdict

import pytest

from tests.docs.markdown import DOCS, ROOT, links, rows

PAGE = DOCS / "reference" / "threats.md"
ROWS = [row for row in rows(PAGE.read_text("utf-8")) if row[0] != "id"]
IDS = [row[0] for row in ROWS]
REFERENCE = re.compile(r"`([\w./-]+\.(?:py|tsx?))(?:::([^`]+))?`")
STANDARD = re.compile(r"AISVS C\d+|ASVS(?: 5)? V?\d+|LLM\d\d|MCP")


def test_the_ids_of_a_group_are_numbered_without_gaps() -> None:
    groups: dict[str, list[int]] = defaultdict(list)
    for name in IDS:
        found = re.fullmatch(r"([A-Z]+-?)(\d+)", name)
        assert found is not None, name
        groups[found[1]].append(int(found[2]))
    assert {"C", "P", "AV", "R", "SUP"} <= set(groups)
    for name, numbers in groups.items():
        assert numbers == list(range(1, len(numbers) + 1)), name


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_a_row_names_a_standard_and_whether_its_promise_is_met(row: list[str]) -> None:
    assert len(row) == 6
    assert STANDARD.search(row[4])
    met = row[5].rstrip(" |")
    # What is not met has a reason.
    assert re.match(r"met\b|(not met|in part): \S", met)


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_every_test_of_a_threat_exists(row: list[str]) -> None:
    named = [found for cell in row for found in REFERENCE.findall(cell)]
    assert named
    for path, title in named:
        folder = ROOT if path.startswith(("e2e/", "frontend/")) else ROOT / "backend" / "tests"
        text = (folder / path).read_text("utf-8")
        if path.endswith(".py"):
            assert re.search(rf"def {title or 'test_'}", text), f"{path}::{title}"
        else:
            assert title in text, f"{path}::{title}"


def test_the_policy_refers_to_the_page() -> None:
    assert "docs/reference/threats.md" in links((ROOT / "SECURITY.md").read_text("utf-8"))
