"""A lock on a file that the operating system drops with the process, however that ends."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

if TYPE_CHECKING:
    from pathlib import Path


class FileLock:
    """An exclusive lock; a second holder, in this process too, is refused at once."""

    def __init__(self, path: Path) -> None:
        """Take the lock, creating the file if needed. The file stays behind.

        Raises:
            BlockingIOError: somebody has it.
            OSError: the file cannot be opened, or its file system has no locks.
        """
        self._descriptor: int | None = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            _lock(self._descriptor)
        except OSError:
            self.release()
            raise

    def release(self) -> None:
        """Give the lock back; a second call does nothing."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _lock(descriptor: int) -> None:
    if sys.platform == "win32":
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except PermissionError as error:
            raise BlockingIOError(*error.args) from error
    else:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
