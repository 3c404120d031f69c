"""Keyset pagination: a cursor holds the sort key of the last row of a page.

A cursor stays valid when rows are added or moved before it. It contains no secret, and a forged
one selects only rows that the list shows to the same user anyway.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from math import isfinite


def encode_cursor(moment: float, *names: str) -> str:
    """Encode the sort key of a row: a time, then names that break ties."""
    text = json.dumps([moment, *names], separators=(",", ":"))
    return urlsafe_b64encode(text.encode("ascii")).decode("ascii").rstrip("=")


def parse_cursor(text: str, names: int) -> tuple[float, list[str]] | None:
    """Return the time and the given number of names of a cursor; None if it is not valid."""
    try:
        match json.loads(urlsafe_b64decode(text + "=" * (-len(text) % 4))):
            case [float(moment), *values] if isfinite(moment) and len(values) == names:
                if all(isinstance(value, str) and "\0" not in value for value in values):
                    "".join(values).encode()
                    return moment, values
    except (RecursionError, ValueError):
        pass
    return None
