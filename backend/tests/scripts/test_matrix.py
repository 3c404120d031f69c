"""The table of compatibility: its rows, what is counted, and the page that is published."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from scripts import matrix
from scripts.matrix import CLIENTS, PAGE, RESULT, Result, counted, direct_names, page, rows, table
from tests.docs.test_metadata import PROJECT

NAMES = ("deferred, call, ai 7, stock", "bidi, progressive, call, ai 6-floor, stock")


def result(**more: Any) -> Result:
    found = Result("Python 3.11, newest", "3.11", {"starlette": "1.0.0"}, **more)
    counted(found, [{"fullName": f"plain {name}", "status": "passed"} for name in NAMES])
    return found


def test_the_lowest_and_newest_versions_and_each_python_have_a_row() -> None:
    names = [row.name for row in rows(canary=False)]
    here = ".".join(map(str, sys.version_info[:2]))
    assert names[0].endswith(", lowest")
    assert f"Python {here}, newest" in names
    assert [row.ignores_ranges for row in rows(canary=True)] == [True]


def test_a_python_that_is_missing_has_no_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix, "PYTHONS", ("3.11", "3.99"))
    monkeypatch.setattr(matrix, "find_python", {"3.11": "/usr/bin/python3.11"}.get)
    assert [row.python for row in rows(canary=False)] == ["/usr/bin/python3.11"] * 2


def test_the_ranges_are_left_out_of_the_newest_of_everything() -> None:
    names = direct_names()
    assert len(names) == len(PROJECT["dependencies"])
    assert {"google-adk", "starlette", "sqlalchemy[asyncio]", "uvloop"} <= set(names)


def test_stories_are_counted_by_client() -> None:
    found = result()
    assert found.passed == {
        "ai 6, lowest": 1,
        "ai 6, newest": 0,
        "ai 7, lowest": 0,
        "ai 7, newest": 1,
    }
    # A client that played nothing shows nothing.
    assert not found.is_good
    counted(
        found,
        [{"fullName": f"x, ai {version}, y", "status": "passed"} for version in CLIENTS.values()],
    )
    assert found.is_good
    counted(found, [{"fullName": "x, ai 7, y", "status": "failed"}])
    assert not found.is_good
    assert "**1 failed**, 0 passed" in table([found])


def test_a_row_that_cannot_be_installed_says_why() -> None:
    assert "no versions fit" in table([result(error="no versions fit")])
    assert not result(error="no versions fit").is_good


def test_the_published_page_is_that_of_the_published_result() -> None:
    document = json.loads(RESULT.read_text("utf-8"))
    assert set(document) == {"matrix", "canary"}
    assert PAGE.read_text("utf-8") == page(document)
    for each in document["matrix"]["results"]:
        assert Result(**each).is_good, each["name"]


def test_the_lowest_versions_of_the_page_are_those_of_the_project() -> None:
    document = json.loads(RESULT.read_text("utf-8"))
    lowest = document["matrix"]["results"][0]["versions"]
    floors = dict(each.split(">=", 1) for each in PROJECT["dependencies"] if ">=" in each)
    for name, version in lowest.items():
        floor = floors[name].split(",")[0].split(";")[0].strip()
        assert (version + ".0.0").startswith(floor), name


def test_a_wheel_is_what_is_tested() -> None:
    recipes = (Path(RESULT).parents[2] / "Makefile").read_text("utf-8")
    assert "\nmatrix: setup-node wheel " in recipes
    assert "\ncanary: setup-node wheel " in recipes
