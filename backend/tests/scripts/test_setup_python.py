"""`make setup` notices that another interpreter is given than the one that made the .venv."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.docs.markdown import ROOT


def interpreter(path: Path, name: str) -> Path:
    """A program that answers as an interpreter of this name does."""
    path.write_text(f"#!/bin/sh\necho {name}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout whose .venv is up to date, and was made by an interpreter called `old`."""
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "Makefile", tmp_path)
    shutil.copy(ROOT / "scripts/setup_python.sh", tmp_path / "scripts")
    for name in ("pyproject.toml", "bootstrap.lock", "requirements.lock"):
        (tmp_path / name).touch()
    (tmp_path / ".venv/bin").mkdir(parents=True)
    interpreter(tmp_path / ".venv/bin/python", "old")
    (tmp_path / ".venv/.setup").touch()
    return tmp_path


def commands(checkout: Path, *arguments: str) -> str:
    """What make would run."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHON"}
    environment |= {"MAKEFLAGS": ""}
    return subprocess.run(
        ["make", "--dry-run", "setup", *arguments],
        cwd=checkout,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout


@pytest.mark.parametrize(("name", "runs"), [("old", False), ("new", True)])
def test_another_interpreter_sets_up_again(checkout: Path, name: str, *, runs: bool) -> None:
    python = interpreter(checkout / name, name)
    assert ("setup_python.sh" in commands(checkout, f"PYTHON={python}")) == runs


def test_without_an_interpreter_the_environment_is_kept(checkout: Path) -> None:
    assert "setup_python.sh" not in commands(checkout)
