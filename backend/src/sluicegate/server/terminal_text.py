"""Text that a terminal shows as it is."""

from __future__ import annotations


def visible(word: str) -> str:
    """Escape characters that would control a terminal or begin a line."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in word)
