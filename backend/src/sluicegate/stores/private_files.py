"""Files and folders that only their owner may read.

New files get their mode when they are created; here those that exist are tightened, and those
that a library has written. A file or a folder of another user stays as it is, with a warning.
"""

from __future__ import annotations

import logging
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_log: Final = logging.getLogger("sluicegate")


def private_folder(folder: Path, is_own: Callable[[str], bool]) -> None:
    """Create a folder that only its owner may enter, with its parents; or tighten it.

    An existing folder stays as it is if it holds anything that is not ``is_own`` by its name:
    it may be the home of a user, or shared with other programs.

    Raises:
        OSError: The folder cannot be created or read.
    """
    for missing in reversed([each for each in (folder, *folder.parents) if not each.exists()]):
        missing.mkdir(mode=0o700, exist_ok=True)
    with os.scandir(folder) as entries:
        is_dedicated = all(is_own(entry.name) for entry in entries)
    # A sticky folder is shared, even while it is empty.
    if is_dedicated and not folder.stat().st_mode & stat.S_ISVTX:
        make_private(folder)


def make_private(path: Path) -> None:
    """Take all rights on a file or folder from the group and others. Links are not followed."""
    if os.name != "posix":
        return
    try:
        mode = path.lstat().st_mode
        if mode & 0o077 and not stat.S_ISLNK(mode):
            path.chmod(stat.S_IMODE(mode) & 0o700)
    except FileNotFoundError:
        return
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        _log.warning("the permissions of %s cannot be tightened: %s", path, reason)


def make_tree_private(folder: Path) -> None:
    """Take all rights on a folder and all that is in it from the group and others."""
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            make_private(Path(parent, name))
    make_private(folder)
