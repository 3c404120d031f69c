"""The C allocator of the process."""

from __future__ import annotations

import contextlib
import ctypes
import sys
import threading
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Generator

_MMAP_THRESHOLD: Final = -3
"""``M_MMAP_THRESHOLD`` in glibc's ``malloc.h``."""
_LARGE: Final = 2**20
"""Larger than what one read from a socket allocates."""
_INTERVAL: Final = 30.0
"""Seconds between two returns of free memory, which take about 5 ms without the interpreter."""


@contextlib.contextmanager
def returning_free_memory(interval: float = _INTERVAL) -> Generator[bool]:
    """Return freed memory to the system; yields False, and does nothing, where that is not glibc.

    glibc keeps freed memory in two ways. First, when a large block is freed, later blocks up to its
    size no longer get pages of their own; here that limit is fixed at 1 MiB. Second, glibc keeps
    free blocks below a block that is in use; here a thread returns them every ``interval`` seconds.
    """
    libc = ctypes.CDLL(None) if sys.platform.startswith("linux") else None
    mallopt, trim = (getattr(libc, name, None) for name in ("mallopt", "malloc_trim"))
    if mallopt is None or trim is None or mallopt(_MMAP_THRESHOLD, _LARGE) != 1:
        yield False
        return
    ended = threading.Event()

    def trim_repeatedly() -> None:
        while not ended.wait(interval):
            trim(0)

    thread = threading.Thread(target=trim_repeatedly, name="malloc_trim", daemon=True)
    thread.start()
    try:
        yield True
    finally:
        ended.set()
        thread.join()
