"""The files that the conformance agent writes to."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def effects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that counts what tools really did."""
    path = tmp_path / "effects"
    path.touch()
    monkeypatch.setenv("SLUICEGATE_EFFECTS", str(path))
    return path
