"""The C allocator of the process."""

from __future__ import annotations

import ctypes
import sys
from typing import Final

_MMAP_THRESHOLD: Final = -3
"""``M_MMAP_THRESHOLD`` in glibc's ``malloc.h``."""
_LARGE: Final = 2**20
"""Larger than what one read from a socket allocates."""


def return_large_blocks() -> bool:
    """Let freed blocks of 1 MiB and more return to the system; False where that is not glibc.

    glibc raises this limit to the largest block that was freed, so that after one body of 32 MiB it
    keeps the memory of all later ones.
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and mallopt(_MMAP_THRESHOLD, _LARGE) == 1
