"""One spelling for each JSON value, so that equal arguments have equal hashes."""

from __future__ import annotations

import json
from decimal import Decimal
from hashlib import sha256
from math import isfinite
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import JsonValue


def canonical_json(value: JsonValue) -> str:
    """Return the value as ASCII JSON: keys sorted, no blanks, whole numbers without a point.

    Values that are equal in JSON have the same text, also after a way through a database or a
    browser that reorders keys or writes ``1.0`` as ``1``. ``true`` and ``1`` stay apart.

    Raises:
        ValueError: a number is not finite, the value contains itself, or it is nested too deeply.
        TypeError: it is not JSON, or a key is not a string.
    """
    try:
        plain = _plain(value)
        return json.dumps(plain, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except RecursionError:
        raise ValueError("the value contains itself or is nested too deeply") from None


def hash_arguments(args: JsonValue) -> str:
    """Return the SHA-256 of the canonical JSON, 64 hexadecimal digits (A1, A10).

    Raises:
        ValueError: as `canonical_json`.
        TypeError: as `canonical_json`.
    """
    return sha256(canonical_json(args).encode("ascii")).hexdigest()


def _plain(value: JsonValue) -> JsonValue:
    """Copy the value with every whole number as an int; a float keeps the digits it prints."""
    if isinstance(value, float):
        if not isfinite(value):
            raise ValueError("a number is not finite")
        return int(Decimal(repr(value))) if value.is_integer() else value
    if isinstance(value, dict):
        if any(not isinstance(key, str) for key in value):
            raise TypeError("a key is not a string")
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
