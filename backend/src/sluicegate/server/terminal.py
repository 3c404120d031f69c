"""Text on a terminal: whether it is coloured, and progress that only a person reads."""

from __future__ import annotations

import os
import sys
from typing import TextIO


def is_coloured(stream: TextIO) -> bool:
    """Whether to colour a stream: it is a terminal, and ``NO_COLOR`` is not set."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def show_progress(text: str) -> None:
    """Show on a terminal that something takes a while; a file or a pipe gets nothing."""
    if sys.stderr.isatty():
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()
