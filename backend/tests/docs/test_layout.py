"""The packages and folders of the project."""

from __future__ import annotations

import re
import subprocess
import tomllib

import pytest

from tests.docs.markdown import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def _names(requirements: list[object]) -> set[str]:
    return {re.split(r"[^A-Za-z0-9_-]", item)[0] for item in requirements if isinstance(item, str)}


def test_the_packages_are_the_required_ones() -> None:
    """D-R02."""
    needed = _names(PROJECT["project"]["dependencies"])
    tested_with = _names(PROJECT["dependency-groups"]["dev"])

    assert {"starlette", "sse-starlette", "websockets", "google-adk", "pydantic"} <= needed
    assert {"pytest", "pytest-asyncio"} <= tested_with
    assert needed.isdisjoint({"fastapi", "loguru", "pillow", "Pillow"})


@pytest.mark.parametrize(
    "module", ["starlette", "sse_starlette", "websockets", "google.adk", "pydantic"]
)
def test_each_required_package_is_imported_by_the_source(module: str) -> None:
    """D-R02: a package is not only installed."""
    imported = re.compile(rf"^(from|import) {re.escape(module)}\b", re.MULTILINE)
    files = (ROOT / "backend" / "src").rglob("*.py")
    assert any(imported.search(file.read_text("utf-8")) for file in files)


def test_the_quick_loop_checks_style_and_types() -> None:
    """S3-R22."""
    recipes = (ROOT / "Makefile").read_text("utf-8")
    assert re.search(r"^check: static types ", recipes, re.MULTILINE)
    assert re.search(r"^\t@\$\(MAKE\) .* static types ", recipes, re.MULTILINE)
    for command in ("ruff format --check .", "ruff check .", "mypy"):
        assert f"\t$(BIN)/{command}\n" in recipes
    assert PROJECT["tool"]["mypy"]["strict"] is True
    assert {"backend/src", "backend/tests"} <= set(PROJECT["tool"]["mypy"]["files"])


def test_the_project_root_contains_the_required_files() -> None:
    """D-R03."""
    names = {path.name for path in ROOT.iterdir()}

    assert {
        "backend",
        "e2e",
        "frontend",
        "pyproject.toml",
        "package.json",
        "playwright.config.ts",
    } <= names
    assert {"README.md", "LICENSE", "Makefile"} <= names


def test_a_part_reaches_only_the_recipes_that_name_it() -> None:
    """Make exports a variable of its command line, so that every suite would play a part."""
    show = "show:\n\t@echo [$$PART]"
    command = ["make", "--silent", "--no-print-directory", f"--eval={show}", "show", "PART=2"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
