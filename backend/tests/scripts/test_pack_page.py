"""The build hook that puts the page into the wheel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scripts import pack_page
from scripts.pack_page import BUILT, PLACE, PackPage


def pack(root: Path, target: str, version: str) -> dict[str, str]:
    data: dict[str, Any] = {"force_include": {}}
    hook = PackPage(str(root), {}, None, None, str(root / "out"), target)  # type: ignore[arg-type]
    hook.initialize(version, data)
    included: dict[str, str] = data["force_include"]
    return included


@pytest.fixture
def built(tmp_path: Path) -> Path:
    (tmp_path / BUILT).mkdir(parents=True)
    (tmp_path / BUILT / "index.html").write_text("<!doctype html>")
    return tmp_path


def test_a_wheel_contains_the_built_page_in_the_expected_place(built: Path) -> None:
    assert pack(built, "wheel", "standard") == {str(built / BUILT): PLACE}


def test_an_editable_install_needs_no_page(tmp_path: Path) -> None:
    assert pack(tmp_path, "wheel", "editable") == {}


def test_an_sdist_contains_the_page(built: Path) -> None:
    assert pack(built, "sdist", "standard") == {}


def test_without_a_page_and_npm_the_build_reports_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RuntimeError, match="no npm to build it"):
        pack(tmp_path, "wheel", "standard")


@pytest.mark.parametrize("has_modules", [True, False])
def test_a_missing_page_is_built_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, has_modules: bool
) -> None:
    npm = tmp_path / ".venv" / "bin" / "npm"
    npm.parent.mkdir(parents=True)
    npm.write_text('#!/bin/sh\necho "$@" >>asked\n')
    npm.chmod(0o755)
    if has_modules:
        (tmp_path / "node_modules").mkdir()
    pack_page.build(tmp_path)
    build = "--silent run build --workspace frontend/app"
    asked = (tmp_path / "asked").read_text().splitlines()
    assert asked == ([build] if has_modules else ["--silent ci", build])


def test_a_failed_page_build_fails_the_wheel(tmp_path: Path) -> None:
    npm = tmp_path / ".venv" / "bin" / "npm"
    npm.parent.mkdir(parents=True)
    npm.write_text("#!/bin/sh\nexit 1\n")
    npm.chmod(0o755)
    with pytest.raises(RuntimeError, match="make page"):
        pack(tmp_path, "wheel", "standard")
