"""The packages and folders of the project."""

from __future__ import annotations

import re
import tomllib

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
