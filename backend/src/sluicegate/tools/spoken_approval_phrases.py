"""Phrases that approve a call when they are spoken, compared as words."""

from __future__ import annotations

import unicodedata
from typing import Final

SHORTEST: Final = 8
"""Letters of the shortest phrase: a shorter one is said too easily, or misheard.

A letter of a script without upper and lower case, such as Japanese, counts twice.
"""

LONGEST: Final = 60
"""Characters of the longest phrase, which a person reads and says at once."""


def spoken_words(text: str) -> str:
    """Return the words of a text in lower case, without punctuation, in one width (NFKC)."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    kept = (each if unicodedata.category(each)[0] in "LMN" else " " for each in folded)
    return " ".join("".join(kept).split())


def is_usable(phrase: str) -> bool:
    """Whether a phrase can approve a call.

    It has `SHORTEST` letters at least, `LONGEST` characters at most, and no digits, which a
    transcript may spell out.
    """
    words = spoken_words(phrase)
    kinds = [unicodedata.category(each) for each in words]
    letters = sum(2 if kind == "Lo" else kind[0] == "L" for kind in kinds)
    has_digits = any(kind[0] == "N" for kind in kinds)
    return letters >= SHORTEST and len(phrase) <= LONGEST and not has_digits
