"""The files that the conformance agent writes to."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def effects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that counts the effects of tools."""
    path = tmp_path / "effects"
    path.touch()
    monkeypatch.setenv("SLUICEGATE_EFFECTS", str(path))
    return path
