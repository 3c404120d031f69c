"""The limit of open files of the process."""

from __future__ import annotations

from typing import Final

_RESERVED_FILES: Final = 128
"""Open files that a process needs beside its connections."""


def connections_possible(wanted: int) -> int:
    """Return how many connections the process may have open; raises its limit of open files."""
    try:
        import resource  # noqa: PLC0415 - Windows has no such module and no such limit
    except ImportError:
        return wanted
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + _RESERVED_FILES
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return wanted
    allowed = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return max(1, allowed - _RESERVED_FILES)
