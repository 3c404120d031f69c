"""Any Python value as JSON that a browser reads back unharmed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from enum import Enum
from math import isfinite
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pydantic import JsonValue

MAX_DEPTH: Final = 100
"""Containers deeper than this become a note; JSON parsers recurse."""

_MAX_EXACT: Final = 2**53 - 1
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
    """One conversion; it knows the containers it stands in."""

    def __init__(self) -> None:
        self._inside: set[int] = set()

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
        if id(value) in self._inside:
            return "[contains itself]"
        self._inside.add(id(value))
        try:
            return self._container(value, depth + 1)
        except Exception:  # noqa: BLE001 - foreign objects may raise anything when they are read
            return _note(value)
        finally:
            self._inside.discard(id(value))

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
    if -_MAX_EXACT <= value <= _MAX_EXACT:
        return value
    # Python refuses to write integers of more than some thousand digits.
    return str(value) if value.bit_length() <= _MAX_BITS else f"[{value.bit_length()} bits]"


def _note(value: object) -> str:
    return f"[{type(value).__name__}]"
