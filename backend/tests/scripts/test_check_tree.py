"""The tree check reports every error and accepts a tree without any."""

from __future__ import annotations

import json

import pytest

from scripts.check_tree import MAX_LINES, length_errors, npm_lock_errors, python_lock_errors


@pytest.mark.parametrize(
    "line",
    [
        "--index-url somewhere",
        "--extra-index-url somewhere",
        "-i somewhere",
        "--find-links folder",
        "uv @ https://example.org/uv.whl",
        "    # from https://example.org/simple",
    ],
)
def test_a_python_lock_that_names_a_source_is_reported_with_its_line(line: str) -> None:
    errors = list(python_lock_errors("some.lock", f"uv==1.0 \\\n{line}\n"))
    assert errors == ["some.lock:2 names a source of packages"]


def test_a_python_lock_with_only_names_versions_and_hashes_is_accepted() -> None:
    assert not list(python_lock_errors("some.lock", "uv==1.0 \\\n    --hash=sha256:00\n"))


def npm_lock(packages: dict[str, dict[str, object]]) -> str:
    return json.dumps({"packages": packages})


def test_an_npm_lock_that_names_a_host_is_reported() -> None:
    text = npm_lock({"node_modules/ai": {"resolved": "https://example.org/ai.tgz"}})
    assert list(npm_lock_errors("lock", text)) == ["lock names a host for node_modules/ai"]


def test_a_workspace_link_is_accepted() -> None:
    text = npm_lock({"node_modules/client": {"resolved": "e2e/client", "link": True}})
    assert not list(npm_lock_errors("lock", text))


@pytest.mark.parametrize(
    ("place", "missing"),
    [
        ("node_modules/fast-linux", False),
        ("node_modules/fast/node_modules/fast-linux", False),
        ("node_modules/other/node_modules/fast-linux", True),
    ],
)
def test_a_platform_package_is_accepted_only_where_node_resolves_it(
    place: str, missing: bool
) -> None:
    text = npm_lock({"node_modules/fast": {"optionalDependencies": {"fast-linux": "1"}}, place: {}})
    errors = list(npm_lock_errors("lock", text))
    assert errors == ["lock lacks fast-linux, a platform package of node_modules/fast"] * missing


@pytest.mark.parametrize(("lines", "count"), [(MAX_LINES, 0), (MAX_LINES + 1, 1)])
def test_a_source_file_may_have_500_lines_and_no_more(lines: int, count: int) -> None:
    assert len(list(length_errors("a.py", "x\n" * lines))) == count
