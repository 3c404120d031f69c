"""A strict JSON parser: it accepts what every store keeps unchanged and every client can read.

The checks run on the bytes, so they cost little more than the standard parser.
`large_json_parser` accepts the same in steps, for bodies that take longer than other requests may
wait.
"""

from __future__ import annotations

import math
import re
from itertools import accumulate
from json import JSONDecodeError, JSONDecoder
from typing import TYPE_CHECKING, Any, Final, NoReturn

from sluicegate.errors import Malformed

if TYPE_CHECKING:
    from pydantic import JsonValue

MAX_DEPTH: Final = 128
"""Nested arrays and objects; a flat array has depth 1. Histories contain what the server sends."""

MAX_INTEGER: Final = 2**53
"""The largest magnitude that a browser parses without loss."""

MAX_DIGITS: Final = 1_000
"""Characters of a number."""

BYTE_ORDER_MARK: Final = "The body begins with a byte order mark; send plain UTF-8 without one."
NOT_JSON: Final = "The body is not valid JSON; send one JSON value."
NULL_CHARACTER: Final = "The body contains the character U+0000; remove it."
HALF_CHARACTER: Final = "The body contains half of a character (a lone surrogate); remove it."
TOO_DEEP: Final = (
    f"The body is nested more than {MAX_DEPTH} levels deep or its brackets do not match; "
    "send flatter JSON."
)
TOO_MANY_DIGITS: Final = "A number in the body is too long; send it as a string."

_LONE_SURROGATE: Final = re.compile(
    rb"\\u[dD](?:[89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])"
    rb"|[c-fC-F](?<!\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F]))"
)
_SAME_KEY: Final = "An object in the body has the same key twice; send each key once."
_CHANGES: Final = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_NOT_STRUCTURE: Final = bytes(set(range(256)) - set(b'[]{}"'))
_SLICE: Final = 2**16


class NotUtf8(Malformed):
    """The data is not text, so no part of it can be read."""

    sentence = "The body is not UTF-8; send JSON in UTF-8."


def loads(data: bytes) -> JsonValue:
    """Parse one JSON value.

    It refuses what stores and clients interpret differently: bytes that are not UTF-8, a byte order
    mark, duplicate keys, NaN, Infinity and numbers that overflow, integers beyond `MAX_INTEGER`,
    U+0000, lone surrogates, more than `MAX_DEPTH` levels, and data after the value. ``__proto__``
    is a key as any other: clients post back what they were sent.

    Raises:
        Malformed: With one plain sentence.
    """
    if data.startswith(b"\xef\xbb\xbf"):
        raise Malformed(BYTE_ORDER_MARK)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise NotUtf8 from None
    escaped = data
    if b"\\" in data:
        # The placeholders keep the length, so that no new sequence of bytes arises.
        escaped = data.replace(b"\\\\", b"__").replace(b'\\"', b"__")
        _check_escapes(escaped)
    _check_depth(escaped)
    try:
        value: JsonValue = decode_text(text)
    except JSONDecodeError:
        raise Malformed(NOT_JSON) from None
    return value


def _check_escapes(escaped: bytes) -> None:
    if b"\\u0000" in escaped:
        raise Malformed(NULL_CHARACTER)
    if _LONE_SURROGATE.search(escaped):
        raise Malformed(HALF_CHARACTER)


def _check_depth(escaped: bytes) -> None:
    """Refuse deep nesting, and brackets that are not balanced, before the recursive parser runs."""
    depths = list(accumulate(map(_CHANGES.__getitem__, _brackets(escaped)), initial=0))
    if depths[-1] or min(depths) < 0 or max(depths) > MAX_DEPTH:
        raise Malformed(TOO_DEEP)


def _brackets(escaped: bytes) -> bytes:
    """Return the brackets outside of strings."""
    marks = escaped.translate(None, _NOT_STRUCTURE)
    # Two adjacent quotes do not change what is inside of a string and what is outside.
    marks = marks.replace(b'""', b"")
    outside: list[bytes] = []
    inside = 0
    for start in range(0, len(marks), _SLICE):
        pieces = marks[start : start + _SLICE].split(b'"')
        outside.append(b"".join(pieces[inside::2]))
        inside ^= (len(pieces) - 1) & 1
    return b"".join(outside)


def decode_text(text: str) -> Any:
    """Decode text whose depth and escapes have been checked.

    Raises:
        Malformed: A key or a number is not accepted.
        JSONDecodeError: It is not JSON.
    """
    return _DECODER.decode(text)


def check_key(key: str, members: dict[str, Any]) -> None:
    """Check the next key of an object with these members; raises Malformed."""
    if key in members:
        raise Malformed(_SAME_KEY)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise Malformed(_SAME_KEY)
    return members


def parse_integer(digits: str) -> int:
    """Parse an integer; raises Malformed if browsers would lose digits."""
    # The longest integer allowed has 16 digits and a sign; the conversion of long ones is slow.
    if len(digits) <= 17 and -MAX_INTEGER <= (number := int(digits)) <= MAX_INTEGER:
        return number
    raise Malformed("A whole number in the body is beyond 2^53; send it as a string.")


def parse_float(digits: str) -> float:
    """Parse a number with a fraction or an exponent; raises Malformed if it overflows."""
    if len(digits) > MAX_DIGITS:
        raise Malformed(TOO_MANY_DIGITS)
    number = float(digits)
    if math.isinf(number):
        raise Malformed("A number in the body is too large; send it as a string.")
    return number


def refuse_constant(name: str) -> NoReturn:
    """Refuse NaN and infinity; raises Malformed."""
    raise Malformed(f"The body contains {name}, which is not JSON; send null or a string.")


_DECODER: Final = JSONDecoder(
    object_pairs_hook=_object,
    parse_float=parse_float,
    parse_int=parse_integer,
    parse_constant=refuse_constant,
)
