"""A strict JSON parser: it accepts what every store keeps unchanged and every client can read.

It has no size limits: they apply only to the fields of a request that are used. The checks run on
the bytes, so a body of many megabytes costs little more than with the standard parser.
"""

from __future__ import annotations

import math
import re
from json import JSONDecodeError, JSONDecoder
from typing import TYPE_CHECKING, Any, Final, NoReturn

from sluicegate.errors import Malformed

if TYPE_CHECKING:
    from pydantic import JsonValue

MAX_DEPTH: Final = 32
"""Nested arrays and objects; a flat array has depth 1."""

MAX_INTEGER: Final = 2**53
"""The largest magnitude that a browser parses without loss."""

_LONE_SURROGATE: Final = re.compile(
    rb"\\u[dD](?:[89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])"
    rb"|[c-fC-F](?<!\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F]))"
)
_BRACKETS: Final = bytes.maketrans(b"{}", b"[]")
_NOT_STRUCTURE: Final = bytes(set(range(256)) - set(b'[]{}"'))
_SLICE: Final = 2**16


def loads(data: bytes) -> JsonValue:
    """Parse one JSON value.

    It refuses what stores and clients interpret differently: bytes that are not UTF-8, a byte order
    mark, duplicate keys, ``__proto__`` as a key, NaN, Infinity and numbers that overflow, integers
    beyond `MAX_INTEGER`, U+0000, lone surrogates, more than `MAX_DEPTH` levels, and data after the
    value.

    Raises:
        Malformed: With one plain sentence.
    """
    if data.startswith(b"\xef\xbb\xbf"):
        raise Malformed("The body begins with a byte order mark; send plain UTF-8 without one.")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise Malformed("The body is not UTF-8; send JSON in UTF-8.") from None
    escaped = data
    if b"\\" in data:
        # The placeholders keep the length, so that no new sequence of bytes arises.
        escaped = data.replace(b"\\\\", b"__").replace(b'\\"', b"__")
        _check_escapes(escaped)
    _check_depth(escaped)
    try:
        value: JsonValue = _DECODER.decode(text)
    except JSONDecodeError:
        raise Malformed("The body is not valid JSON; send one JSON value.") from None
    return value


def _check_escapes(escaped: bytes) -> None:
    if b"\\u0000" in escaped:
        raise Malformed("The body contains the character U+0000; remove it.")
    if _LONE_SURROGATE.search(escaped):
        raise Malformed("The body contains half of a character (a lone surrogate); remove it.")


def _check_depth(escaped: bytes) -> None:
    """Refuse deep nesting before the recursive parser runs.

    Each round removes the innermost pairs of brackets. Brackets that remain are nested too deep or
    are not balanced.
    """
    brackets = _brackets(escaped)
    for _ in range(MAX_DEPTH):
        before = len(brackets)
        brackets = brackets.replace(b"[]", b"")
        if len(brackets) == before:
            break
    if brackets:
        raise Malformed(
            f"The body is nested more than {MAX_DEPTH} levels deep or its brackets do not match; "
            "send flatter JSON."
        )


def _brackets(escaped: bytes) -> bytes:
    """Return the brackets outside of strings, all as square brackets."""
    marks = escaped.translate(_BRACKETS, _NOT_STRUCTURE)
    # Two adjacent quotes do not change what is inside of a string and what is outside.
    marks = marks.replace(b'""', b"")
    outside: list[bytes] = []
    inside = 0
    for start in range(0, len(marks), _SLICE):
        pieces = marks[start : start + _SLICE].split(b'"')
        outside.append(b"".join(pieces[inside::2]))
        inside ^= (len(pieces) - 1) & 1
    return b"".join(outside)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise Malformed("An object in the body has the same key twice; send each key once.")
    if "__proto__" in members:
        raise Malformed("An object in the body has the key __proto__; remove it.")
    return members


def _integer(digits: str) -> int:
    # The longest integer allowed has 16 digits and a sign; the conversion of long ones is slow.
    if len(digits) <= 17 and -MAX_INTEGER <= (number := int(digits)) <= MAX_INTEGER:
        return number
    raise Malformed("A whole number in the body is beyond 2^53; send it as a string.")


def _float(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise Malformed("A number in the body is too large; send it as a string.")
    return number


def _constant(name: str) -> NoReturn:
    raise Malformed(f"The body contains {name}, which is not JSON; send null or a string.")


_DECODER: Final = JSONDecoder(
    object_pairs_hook=_object, parse_float=_float, parse_int=_integer, parse_constant=_constant
)
