"""The table of compatibility: its rows, what is counted, and the page that is published."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from scripts import matrix
from scripts.matrix import (
    CLIENTS,
    PAGE,
    PROMISES,
    RESULT,
    STORIES,
    Result,
    Row,
    broken,
    counted,
    direct_names,
    page,
    promise_of,
    ranges,
    rows,
    run,
    table,
)
from tests.docs.test_metadata import PROJECT

TITLES = [title for stories in PROMISES.values() for title in stories]
NAMES = ("deferred, call, ai 7, stock", "bidi, progressive, call, ai 6-floor, stock")


def played(status: str = "passed") -> list[dict[str, Any]]:
    """Every story with every client."""
    return [
        {"fullName": f"{title} deferred, call, ai {version}, stock", "status": status}
        for title in TITLES
        for version in CLIENTS.values()
    ]


def result(tests: list[dict[str, Any]], **more: Any) -> Result:
    found = Result("Python 3.11, newest", {"starlette": "1.0.0"}, **more)
    counted(found, tests)
    return found


def test_the_lowest_and_newest_versions_and_each_python_have_a_row() -> None:
    names = [row.name for row in rows(canary=False)]
    here = ".".join(map(str, sys.version_info[:2]))
    assert names[0].endswith(", lowest")
    assert f"Python {here}, newest" in names
    assert [row.is_canary for row in rows(canary=True)] == [True]


def test_a_python_that_is_missing_is_not_played(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix, "PYTHONS", ("3.11", "3.99"))
    monkeypatch.setattr(matrix, "find_python", {"3.11": "/usr/bin/python3.11"}.get)
    assert [row.python for row in rows(canary=False)] == ["/usr/bin/python3.11"] * 2 + [None]
    missing = run(Row("Python 3.99, newest", None))
    assert missing.is_good
    assert table([missing]).count("not played") == len(CLIENTS)


def test_the_ranges_are_left_out_of_the_newest_of_everything() -> None:
    names = direct_names()
    assert len(names) == len(PROJECT["dependencies"])
    assert {"google-adk", "starlette", "sqlalchemy[asyncio]", "uvloop"} <= set(names)


@pytest.mark.parametrize("title", TITLES)
def test_every_promise_names_a_story_of_the_suite(title: str) -> None:
    stories = [path.read_text("utf-8") for path in STORIES.glob("*.test.ts")]
    assert any(f'"{title}",' in story for story in stories)


def test_stories_are_counted_by_client() -> None:
    found = result([{"fullName": f"plain text {name}", "status": "passed"} for name in NAMES])
    assert found.passed == {
        "ai 6, lowest": 1,
        "ai 6, newest": 0,
        "ai 7, lowest": 0,
        "ai 7, newest": 1,
    }
    # A client that played nothing shows nothing, and neither does a promise without a story.
    assert not found.is_good
    assert len(found.not_shown) == len(PROMISES) - 1
    assert result(played()).is_good
    assert not result(played("failed")).is_good


def test_a_story_that_fails_is_said_with_its_promise_and_client() -> None:
    failed = {"fullName": f"one gated call, denied {NAMES[0]}", "status": "failed"}
    found = result([*played(), failed])
    assert not found.is_good
    assert f"**1 failed**, {len(TITLES)} passed" in table([found])
    [line] = broken([found])
    assert "ai 7, newest: A denied call does not run. (one gated call, denied deferred," in line


def test_a_story_with_a_longer_title_shows_its_own_promise() -> None:
    assert promise_of(f"an approval with edited arguments {NAMES[0]}") in PROMISES
    assert promise_of(f"another {NAMES[0]}") not in PROMISES


def test_a_row_that_cannot_be_played_says_why() -> None:
    found = Result("Python 3.11, lowest", error="no versions fit")
    assert not found.is_good
    assert "not played" in table([found])
    assert broken([found]) == ["Not played with Python 3.11, lowest: no versions fit"]


def test_the_reason_of_a_failure_is_its_most_telling_line() -> None:
    assert matrix._reason("a\n  TypeError: of it\n\nERROR: Exiting.\n") == "TypeError: of it"
    assert matrix._reason("a\nb\n") == "b"
    assert matrix._reason("") == "no story was played"


def test_the_page_has_a_table_of_each_run() -> None:
    found = asdict(result(played()))
    written = page({"matrix": {"date": "2026-11-26", "version": "0.1.0", "results": [found]}})
    assert "## Lowest and newest" in written
    assert "| Python 3.11, newest | " in written
    assert "Played on 2026-11-26 with the stories of version 0.1.0." in written
    assert "## Canary" not in written


def test_the_published_page_agrees_with_its_data_and_with_the_ranges() -> None:
    # `python scripts/matrix.py --page` writes it again, with other ranges after `make matrix`.
    assert PAGE.read_text("utf-8") == page(json.loads(RESULT.read_text("utf-8")))


def test_what_was_played_is_within_the_ranges_from_their_lower_ends() -> None:
    results = [
        Result(**each) for each in json.loads(RESULT.read_text("utf-8"))["matrix"]["results"]
    ]
    assert {f"Python {each}, newest" for each in matrix.PYTHONS} < {each.name for each in results}
    allowed = {each.name: each.specifier for each in map(Requirement, PROJECT["dependencies"])}
    for each in results:
        assert each.is_good
        for name, version in each.versions.items():
            assert name not in allowed or Version(version) in allowed[name]
    lowest = results[0].versions
    # Starlette's own range is wider than what google-adk allows.
    for name in ("google-adk", "uvicorn", "sse-starlette", "websockets"):
        [least] = [each.version for each in allowed[name] if each.operator == ">="]
        assert Version(lowest[name]) == Version(least)
    peers = re.findall(r"\^([\d.]+)", dict(ranges())["ai"])
    assert [lowest["ai 6, lowest"], lowest["ai 7, lowest"]] == peers


def test_a_wheel_is_what_is_tested() -> None:
    recipes = (Path(RESULT).parents[2] / "Makefile").read_text("utf-8")
    assert "\nmatrix: setup-node wheel " in recipes
    assert "\ncanary: setup-node wheel " in recipes
