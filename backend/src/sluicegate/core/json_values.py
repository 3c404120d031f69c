"""JSON values: conversion from any Python value, text that stores accept, canonical form, hash."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from decimal import Decimal
from enum import Enum
from hashlib import sha256
from math import isfinite
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pydantic import JsonValue

MAX_DEPTH: Final = 100
"""Containers nested more deeply become a note; JSON parsers recurse.

Posted bodies may be deeper (`strict_json`), since clients post back the messages that contain it.
"""

MAX_EXACT_INTEGER: Final = 2**53 - 1
"""JavaScript's ``Number.MAX_SAFE_INTEGER``."""

_MAX_BITS: Final = 10_000
_BYTES = (bytes, bytearray, memoryview)


def json_safe(value: object) -> JsonValue:
    """Return the value as JSON; never raises, and is its own fixed point.

    Numbers are finite (T6): NaN and the infinities become null, integers that a browser would
    round become their digits. Bytes, values that contain themselves, values nested too deeply and
    objects of unknown types become a short note in square brackets. Everything else reads as
    pydantic would store it: models without their empty fields, sets as lists, dates in ISO 8601.
    """
    return _Converter().convert(value, 0)


class _Converter:
    """One conversion; it tracks the containers that enclose the current value."""

    def __init__(self) -> None:
        self._enclosing: set[int] = set()

    def convert(self, value: object, depth: int) -> JsonValue:
        if value is None or value is True or value is False or type(value) is str:
            return value
        if isinstance(value, Enum):
            return self.convert(value.value, depth)
        if isinstance(value, str):
            return str.__str__(value)
        if isinstance(value, int):
            return _integer(int(value))
        if isinstance(value, float):
            return float(value) if isfinite(value) else None
        if isinstance(value, _BYTES):
            return f"[{memoryview(value).nbytes} bytes]"
        if depth >= MAX_DEPTH:
            return "[nested too deeply]"
        if id(value) in self._enclosing:
            return "[contains itself]"
        self._enclosing.add(id(value))
        try:
            return self._container(value, depth + 1)
        except Exception:  # noqa: BLE001 - foreign objects may raise anything when they are read
            return _note(value)
        finally:
            self._enclosing.discard(id(value))

    def _container(self, value: object, depth: int) -> JsonValue:
        if isinstance(value, Mapping):
            return self._mapping(value.items(), depth)
        if isinstance(value, list | tuple | AbstractSet):
            return [self.convert(item, depth) for item in value]
        if isinstance(value, BaseModel):
            return self._mapping(((k, v) for k, v in value if v is not None), depth)
        if is_dataclass(value) and not isinstance(value, type):
            return self._mapping(((f.name, getattr(value, f.name)) for f in fields(value)), depth)
        if isinstance(value, Iterator):
            return _note(value)
        plain = to_jsonable_python(value)
        return _note(value) if plain is value else self.convert(plain, depth)

    def _mapping(self, items: Iterable[tuple[Any, Any]], depth: int) -> JsonValue:
        return {self._key(key): self.convert(item, depth) for key, item in items}

    def _key(self, key: object) -> str:
        if type(key) is str:
            return key
        if key is None or isinstance(key, bool):
            return {None: "null", True: "true", False: "false"}[key]
        plain = self.convert(key, 0)
        return str(plain) if isinstance(plain, str | int | float) else _note(key)


def _integer(value: int) -> JsonValue:
    if -MAX_EXACT_INTEGER <= value <= MAX_EXACT_INTEGER:
        return value
    # Python refuses to write integers of more than some thousand digits.
    return str(value) if value.bit_length() <= _MAX_BITS else f"[{value.bit_length()} bits]"


def _note(value: object) -> str:
    return f"[{type(value).__name__}]"


_NOT_STORABLE: Final = re.compile("[\0\ud800-\udfff]")
_REPLACEMENT: Final = "\ufffd"


def storable_text(text: str) -> str:
    """Return the text with U+FFFD in place of characters that some store refuses."""
    return _NOT_STORABLE.sub(_REPLACEMENT, text)


def is_storable_text(text: str) -> bool:
    """Whether every store accepts the text."""
    return _NOT_STORABLE.search(text) is None


def storable_json(value: Any) -> Any:
    """As `storable_text` for all strings of a JSON value; returns an unchanged value itself."""
    if isinstance(value, str):
        return storable_text(value)
    if isinstance(value, list):
        items = [storable_json(item) for item in value]
        return value if all(map(_is, items, value)) else items
    if isinstance(value, dict):
        members = {storable_json(key): storable_json(item) for key, item in value.items()}
        same = all(map(_is, members, value)) and all(map(_is, members.values(), value.values()))
        return value if same and len(members) == len(value) else members
    return value


def _is(one: object, other: object) -> bool:
    return one is other


def canonical_json(value: JsonValue) -> str:
    """Return the value as ASCII JSON: keys sorted, no blanks, whole numbers without a point.

    Values that are equal in JSON have the same text, also after a round trip through a database or
    a browser that reorders keys or writes ``1.0`` as ``1``. ``true`` and ``1`` differ.

    Raises:
        ValueError: A number is not finite, the value contains itself, or it is nested too deeply.
        TypeError: The value is not JSON, or a key is not a string.
    """
    try:
        plain = _plain(value)
        return json.dumps(plain, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except RecursionError:
        raise ValueError("the value contains itself or is nested too deeply") from None


def hash_arguments(
    args: JsonValue,
    defaults: Mapping[str, JsonValue] | None = None,
    payload: JsonValue = None,
) -> str:
    """Return the SHA-256 of the canonical JSON, 64 hexadecimal digits (A1, A10).

    ``defaults`` and the ``payload`` of a confirmation are shown beside the arguments; other ones
    give another digest.

    Raises:
        ValueError: As `canonical_json`.
        TypeError: As `canonical_json`.
    """
    text = canonical_json(args)
    if defaults:
        # A line break separates the two, since canonical JSON has none.
        text = f"{text}\n{canonical_json(dict(defaults))}"
    if payload is not None:
        text = f"{text}\npayload {canonical_json(payload)}"
    return sha256(text.encode("ascii")).hexdigest()


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


def is_same(one: JsonValue, other: JsonValue) -> bool:
    """Whether two values are equal as JSON; ``true`` and ``1`` differ."""
    return canonical_json(one) == canonical_json(other)
