from __future__ import annotations

import stat
from typing import TYPE_CHECKING

import pytest

from sluicegate.stores.sql.sqlite import FileLock

if TYPE_CHECKING:
    from pathlib import Path


def test_a_second_holder_is_refused_until_the_release(tmp_path: Path) -> None:
    path = tmp_path / "x.lock"
    first = FileLock(path)
    with pytest.raises(BlockingIOError):
        FileLock(path)
    first.release()
    first.release()
    second = FileLock(path)
    with pytest.raises(BlockingIOError):
        FileLock(path)
    second.release()


def test_the_file_is_private_and_stays(tmp_path: Path) -> None:
    path = tmp_path / "x.lock"
    FileLock(path).release()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
