"""Names of places in a list: a page goes on behind the last line of the one before.

A cursor stays right when lines come or move before it. It holds the last line's place and no
secret, and whoever makes one up sees no more than a list shows anyway.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from math import isfinite


def cursor(moment: float, *names: str) -> str:
    """The place of a line that is sorted by a moment and then by names."""
    text = json.dumps([moment, *names], separators=(",", ":"))
    return urlsafe_b64encode(text.encode("ascii")).decode("ascii").rstrip("=")


def read_cursor(text: str, names: int) -> tuple[float, list[str]] | None:
    """The moment and so many names that a cursor holds; None if it is none."""
    try:
        match json.loads(urlsafe_b64decode(text + "=" * (-len(text) % 4))):
            case [float(moment), *found] if isfinite(moment) and len(found) == names:
                if all(isinstance(name, str) and "\0" not in name for name in found):
                    "".join(found).encode()
                    return moment, found
    except (RecursionError, ValueError):
        pass
    return None
