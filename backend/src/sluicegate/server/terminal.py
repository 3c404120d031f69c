"""Text on a terminal: its colours, progress that only a person reads, and control characters."""

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


def visible(word: str) -> str:
    """Escape characters that would control a terminal or begin a line."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in word)
