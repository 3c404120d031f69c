"""Files and folders that only their owner may read."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest
from google.genai import types

from sluicegate.stores.open_artifacts import open_artifacts
from sluicegate.stores.private_files import make_private, make_tree_private, private_folder
from tests.stores.builders import open_database


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def modes_below(folder: Path) -> tuple[set[int], set[int]]:
    """The modes of all folders and of all files below a folder."""
    found = list(folder.rglob("*"))
    return ({mode(p) for p in found if p.is_dir()}, {mode(p) for p in found if p.is_file()})


@pytest.fixture(autouse=True)
def permissive_umask() -> Any:
    before = os.umask(0o000)
    yield
    os.umask(before)


def open_to_all(folder: Path, *names: str) -> Path:
    """A folder of mode 0755 with files of mode 0644."""
    folder.mkdir(mode=0o755, parents=True)
    for name in names:
        (folder / name).touch(mode=0o644)
    return folder


async def test_an_existing_database_is_tightened_at_the_start(tmp_path: Path) -> None:
    names = ("chats.db", "chats.db-wal", "chats.db-shm", "chats.db.lock")
    folder = open_to_all(tmp_path / "data", *names)
    database = await open_database(f"sqlite+aiosqlite:///{folder / 'chats.db'}")
    assert mode(folder) == 0o700
    assert modes_below(folder) == (set(), {0o600})
    await database.close()


async def test_a_folder_with_other_files_stays_open_and_the_database_does_not(
    tmp_path: Path,
) -> None:
    folder = open_to_all(tmp_path / "home", "notes.txt", "chats.db")
    database = await open_database(f"sqlite+aiosqlite:///{folder / 'chats.db'}")
    assert (mode(folder), mode(folder / "notes.txt")) == (0o755, 0o644)
    assert {mode(path) for path in folder.glob("chats.db*")} == {0o600}
    await database.close()


async def test_the_default_folder_is_tightened_with_its_recordings(tmp_path: Path) -> None:
    folder = open_to_all(tmp_path / ".sluicegate", "sluicegate.db")
    (folder / "recordings").mkdir()
    database = await open_database(f"sqlite+aiosqlite:///{folder / 'sluicegate.db'}")
    assert mode(folder) == 0o700
    await database.close()


def test_a_shared_folder_stays_as_it_is(tmp_path: Path) -> None:
    shared = tmp_path / "tmp"
    shared.mkdir()
    shared.chmod(0o1777)
    private_folder(shared, lambda _: True)
    assert mode(shared) == 0o1777


async def test_artifacts_are_private_with_any_umask(tmp_path: Path) -> None:
    service = open_artifacts(f"file:{tmp_path}/files")
    place: Any = {"app_name": "app", "user_id": "ann", "session_id": "chat"}
    part = types.Part(inline_data=types.Blob(data=b"bytes", mime_type="image/png"))
    for name in ("a.png", "deep/b c.png", "user:shared.png"):
        for _ in range(2):
            await service.save_artifact(**place, filename=name, artifact=part)
    assert mode(tmp_path / "files") == 0o700
    assert modes_below(tmp_path / "files") == ({0o700}, {0o600})
    loaded = await service.load_artifact(**place, filename="deep/b c.png")
    assert loaded == part


def test_existing_artifacts_are_tightened_at_the_start(tmp_path: Path) -> None:
    old = open_to_all(tmp_path / "files" / "apps" / "app" / "users" / "ann", "a.png")
    open_artifacts(f"file:{tmp_path}/files")
    assert (mode(tmp_path / "files"), mode(old), mode(old / "a.png")) == (0o700, 0o700, 0o600)


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    target = open_to_all(tmp_path / "target", "file")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "file").symlink_to(target / "file")
    (folder / "target").symlink_to(target)
    make_tree_private(folder)
    assert (mode(target), mode(target / "file")) == (0o755, 0o644)


def test_a_file_of_another_user_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = open_to_all(tmp_path / "folder", "file") / "file"

    def refuse(_path: Path, _mode: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "chmod", refuse)
    make_private(path)
    assert caplog.messages == [
        f"the permissions of {path} cannot be tightened: operation not permitted"
    ]


def test_only_rights_of_others_are_taken(tmp_path: Path) -> None:
    path = tmp_path / "backup"
    path.touch()
    path.chmod(0o440)
    make_private(path)
    make_private(tmp_path / "missing")
    assert mode(path) == 0o400
