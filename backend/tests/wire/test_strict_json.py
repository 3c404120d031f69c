import json
import math
import re
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sluicegate.errors import Malformed
from sluicegate.wire.strict_json import MAX_DEPTH, MAX_INTEGER, loads


def nested(depth: int, *, inner: str = "") -> bytes:
    return ("[" * depth + inner + "]" * depth).encode()


ACCEPTED: list[tuple[bytes, Any]] = [
    (b"null", None),
    (b" \t\r\n{} \n", {}),
    (b"true", True),
    (b"-0", 0),
    (b"1.5e3", 1500.0),
    (b"1e308", 1e308),
    (b"1e-400", 0.0),
    (str(MAX_INTEGER).encode(), MAX_INTEGER),
    (str(-MAX_INTEGER).encode(), -MAX_INTEGER),
    ('"é😀"'.encode(), "é😀"),
    (rb'"\u00e9\ud83d\ude00\uD83D\uDE00"', "é😀😀"),
    (rb'"\\u0000 \\ud83d \\\" \/ \b"', '\\u0000 \\ud83d \\" / \b'),
    (rb'"\\\\u0000"', "\\\\u0000"),
    (b'"__proto__"', "__proto__"),
    (b'{"proto":{"a":1},"b":{"a":1}}', {"proto": {"a": 1}, "b": {"a": 1}}),
    (b'{"constructor":{"prototype":1}}', {"constructor": {"prototype": 1}}),
    (b'[{"a":[{"__proto__":{"b":1}}]}]', [{"a": [{"__proto__": {"b": 1}}]}]),
    (rb'{"\u005f_proto__":null,"c":1}', {"__proto__": None, "c": 1}),
    (b'"NaN"', "NaN"),
    (b'["[[[[", "]]", "{\\"[{"]', ["[[[[", "]]", '{"[{']),
    (('"' + "[{" * 1000 + '"').encode(), "[{" * 1000),
    (("[" + ",".join(['"[","{\\\\"'] * 20_000) + "]").encode(), ["[", "{\\"] * 20_000),
]


@pytest.mark.parametrize(("data", "value"), ACCEPTED)
def test_json_is_parsed(data: bytes, value: object) -> None:
    assert loads(data) == value


REFUSED: list[tuple[str, bytes, str]] = [
    ("nothing", b"", "not valid JSON"),
    ("spaces", b" ", "not valid JSON"),
    ("two values", b"1 2", "not valid JSON"),
    ("trailing garbage", b'{"a":1}x', "not valid JSON"),
    ("a second object", b"{}{}", "not valid JSON"),
    ("a trailing comma", b"[1,]", "not valid JSON"),
    ("single quotes", b"{'a':1}", "not valid JSON"),
    ("a leading zero", b"01", "not valid JSON"),
    ("a raw newline in a string", b'"a\nb"', "not valid JSON"),
    ("a raw NUL in a string", b'"a\x00b"', "not valid JSON"),
    ("an open string", b'"abc', "not valid JSON"),
    ("an open escape", b'"abc\\', "not valid JSON"),
    ("an open escaped quote", b'"abc\\"', "not valid JSON"),
    ("a bad escape", rb'"\x"', "not valid JSON"),
    ("a short escape", rb'"\u12"', "not valid JSON"),
    ("a capital U", rb'"\U0001F600"', "not valid JSON"),
    ("a byte order mark", b"\xef\xbb\xbf{}", "byte order mark"),
    ("UTF-16 with a mark", "{}".encode("utf-16"), "not UTF-8"),
    ("UTF-16 without a mark", "{}".encode("utf-16-le"), "not valid JSON|brackets"),
    ("UTF-32", "{}".encode("utf-32"), "not UTF-8"),
    ("Latin-1", '"é"'.encode("latin-1"), "not UTF-8"),
    ("a surrogate in UTF-8", b'"\xed\xa0\xbd"', "not UTF-8"),
    ("an overlong NUL", b'"\xc0\x80"', "not UTF-8"),
    ("gzip", b"\x1f\x8b\x08\x00", "not UTF-8"),
    ("a key twice", b'{"a":1,"a":1}', "same key twice"),
    ("a key twice, once escaped", rb'{"a":1,"\u0061":1}', "same key twice"),
    ("a key twice, deep inside", b'[{"b":{"a":1,"a":2}}]', "same key twice"),
    ("NaN", b"NaN", "NaN"),
    ("Infinity", b"[Infinity]", "Infinity"),
    ("-Infinity", b'{"a":-Infinity}', "-Infinity"),
    ("1e400", b"1e400", "too large"),
    ("-1e400", b"[-1E+400]", "too large"),
    ("a long float", b"1" * 400 + b".0", "too large"),
    ("2^53 + 1", str(MAX_INTEGER + 1).encode(), r"2\^53"),
    ("-2^53 - 1", str(-MAX_INTEGER - 1).encode(), r"2\^53"),
    ("10**17", b"1" + b"0" * 17, r"2\^53"),
    ("10**400", b"1" + b"0" * 400, r"2\^53"),
    ("10**100000", b"1" + b"0" * 100_000, r"2\^53"),
    ("U+0000", rb'"a\u0000b"', r"U\+0000"),
    ("U+0000 in a key", rb'{"\u0000":1}', r"U\+0000"),
    ("U+0000 after a backslash", rb'"\\\u0000"', r"U\+0000"),
    ("a high half", rb'"\ud83d"', "surrogate"),
    ("a low half", rb'"\ude00"', "surrogate"),
    ("a high half in a key", rb'{"\uD83D":1}', "surrogate"),
    ("a high half before a letter", rb'"\ud83dx"', "surrogate"),
    ("a high half before another escape", rb'"\ud83d\u0041"', "surrogate"),
    ("two high halves and a low one", rb'"\ud83d\ud83d\ude00"', "surrogate"),
    ("a pair and a low half", rb'"\ud83d\ude00\ude00"', "surrogate"),
    ("halves in the wrong order", rb'"\ude00\ud83d"', "surrogate"),
    ("halves parted by a backslash", rb'"\ud83d\\\ude00"', "surrogate"),
    ("halves parted by a quote", rb'"\ud83d\"\ude00"', "surrogate"),
    ("halves in two strings", rb'["\ud83d","\ude00"]', "surrogate"),
    ("a bracket left open", b"[[]", "brackets"),
    ("a bracket too many", b"[]]", "brackets"),
    ("closed before it is open", b"][", "brackets"),
    ("crossed brackets", b"[{]}", "not valid JSON"),
    ("depth 129", nested(129), "levels deep"),
    ("depth 129 in objects", b'{"a":' * 129 + b"1" + b"}" * 129, "levels deep"),
    ("depth 129 beside a string with brackets", b'["]]",' + nested(128) + b"]", "levels deep"),
    ("depth 129 after many strings", b"[" + b'"[",' * 30_000 + nested(128) + b"]", "levels deep"),
    ("depth 100,000", nested(100_000), "levels deep"),
    ("depth 100,000 in objects", b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "levels deep"),
    ("depth 100,000, never closed", b"[" * 100_000, "levels deep"),
    ("a million quotes", b'"' * 1_000_001, "not valid JSON"),
    ("a million escaped quotes", b'"' + b'\\"' * 1_000_000, "not valid JSON"),
]


@pytest.mark.parametrize(("data", "why"), [row[1:] for row in REFUSED], ids=[r[0] for r in REFUSED])
def test_json_that_stores_or_clients_change_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(Malformed, match=why) as refused:
        loads(data)
    assert re.fullmatch(r"The body .*; .*\.|A.* in the body .*; .*\.", refused.value.message)


@pytest.mark.parametrize(
    "data",
    [nested(MAX_DEPTH), nested(MAX_DEPTH - 1, inner="{}"), nested(MAX_DEPTH, inner='"["')],
)
def test_the_deepest_allowed_json_is_parsed(data: bytes) -> None:
    assert json.loads(data) == loads(data)


def flaw(value: object, depth: int = 1) -> bool:
    """Whether something in it must be refused, judged on the value and one node at a time."""
    match value:
        case str():
            return "\0" in value or any("\ud800" <= character <= "\udfff" for character in value)
        case bool() | None:
            return False
        case int():
            return abs(value) > MAX_INTEGER
        case float():
            return not math.isfinite(value)
        case list():
            return depth > MAX_DEPTH or any(flaw(item, depth + 1) for item in value)
        case Pairs():
            keys = [key for key, _ in value.members]
            return (
                depth > MAX_DEPTH
                or len(set(keys)) < len(keys)
                or any(flaw(key) or flaw(item, depth + 1) for key, item in value.members)
            )
    raise AssertionError(value)


class Pairs:
    def __init__(self, members: list[tuple[str, Any]]) -> None:
        self.members = members


TOKENS = st.lists(
    st.sampled_from(
        [
            *'[]{}",:\\ ',
            *("[", "]") * 3,
            *('"a"', '"b":', '{"a":', '"[', ']"', '"__proto__":', "1", "1e999", "NaN"),
            *(r"\ud83d", r"\ude00", r"\u0000", r"\\", r"\"", r"\u", "é", "\0", '"'),
            *(f'"{text}"' for text in (r"\ud83d\ude00", r"\ud83d", r"\ude00", r"\\", r"\"")),
            "9007199254740993",
        ]
    ),
    max_size=60,
).map("".join)


@given(TOKENS)
@example("[" * 33 + "]" * 33)
@example(r'"\ud83d\\\ude00"')
def test_exactly_the_json_without_flaws_is_accepted(text: str) -> None:
    data = text.encode()
    try:
        reference = json.loads(data.decode(), object_pairs_hook=Pairs)
        accepted = not flaw(reference)
    except ValueError:
        accepted = False
    try:
        value = loads(data)
    except Malformed:
        assert not accepted
    else:
        assert accepted
        assert value == json.loads(text)


@given(st.one_of(st.binary(), TOKENS.map(str.encode), st.text().map(str.encode)))
def test_any_bytes_are_parsed_or_refused(data: bytes) -> None:
    try:
        value = loads(data)
    except Malformed:
        return
    json.dumps(value, allow_nan=False, ensure_ascii=False).encode()


TEXT = st.text(st.characters(exclude_characters="\0", codec="utf-8"))
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-MAX_INTEGER, MAX_INTEGER)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT | st.just("__proto__"), inner),
    max_leaves=30,
)


@given(JSON, st.booleans())
def test_encoded_values_are_parsed_unchanged(value: object, ascii_only: bool) -> None:
    assert loads(json.dumps(value, ensure_ascii=ascii_only).encode()) == value
