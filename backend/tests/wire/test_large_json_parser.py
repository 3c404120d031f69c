"""The parser for large bodies accepts and refuses what the parser for small ones does."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sluicegate.errors import Malformed, TooLarge
from sluicegate.wire import strict_json
from sluicegate.wire.large_json_parser import MAX_TEXT, Parser, loads
from tests.wire.test_strict_json import ACCEPTED, REFUSED

MANY = 10**6


@pytest.mark.parametrize(("data", "value"), ACCEPTED)
def test_json_is_parsed(data: bytes, value: object) -> None:
    assert loads(data, max_values=MANY) == value


@pytest.mark.parametrize("data", [row[1] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_what_the_other_parser_refuses_is_refused(data: bytes) -> None:
    with pytest.raises(Malformed):
        loads(data, max_values=10**8)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=30,
)


@given(value=json_values, ascii_only=st.booleans(), indent=st.sampled_from([None, 1]))
@example(value={"a": "[" * 300 + "é" * 300 + "\\n\n" * 300}, ascii_only=False, indent=None)
def test_every_value_is_parsed_alike(value: Any, *, ascii_only: bool, indent: int | None) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    check_alike(text.encode("utf-8", "surrogatepass"))


PIECES = rb"""{ } [ ] , : " "" \ "a" 1 - 0.5 e9 null true NaN \u0041 \ud83d \ude00 "\u0000"
{"a":1} {"a":1,"a":2} "__proto__": [] [1,"x"]""".split()
pieces = st.sampled_from([*PIECES, b" ", b"\n", b"\xc3\xa9", b"\xc3"])


@given(st.lists(pieces, max_size=40).map(b"".join))
def test_all_data_is_judged_alike(data: bytes) -> None:
    check_alike(data)


def check_alike(data: bytes) -> None:
    assert outcome(lambda: loads(data, max_values=MANY)) == outcome(lambda: strict_json.loads(data))


def outcome(parse: Any) -> str:
    """The representation distinguishes 1, 1.0 and true; the order of the checks may differ."""
    try:
        return repr(parse())
    except Malformed:
        return "refused"


@pytest.mark.parametrize("data", [b"[1,[2,{}]]", b'{"a":[1,"x"],"b":{}}', b"[[[[[]]]]]"])
def test_arrays_objects_and_their_items_are_counted(data: bytes) -> None:
    assert loads(data, max_values=5) == json.loads(data)
    with pytest.raises(TooLarge, match="more than 4 JSON values"):
        loads(data, max_values=4)


@pytest.mark.parametrize(
    "data",
    [
        b"[" + b"[]," * 100_000 + b"[]]",
        b"[" + b'"",' * 100_000 + b'""]',
        b'{"a":"' + b"x" * 2_000_000 + b'"}',
        b'{"a":"' + b"\\n" * 500_000 + b'"}',
        b'{"a":"' + "é".encode() * 500_000 + b'"}',
        b'{"a":"' + "é\\n😀\\u00e9".encode() * 100_000 + b'"}',
        b'{"a":"' + (b"\\n" + b"x" * 66) * 20_000 + b'"}',
        b" " * 2_000_000 + b"1",
        b'{"a":{"b":[' + b"1.5," * 200_000 + b"1]}}",
        b"[" + (b'{"a":"' + b"x" * 4_000 + b'"},') * 500 + b"{}]",
    ],
    ids=[
        "arrays",
        "strings",
        "text",
        "escapes",
        "characters",
        "mixed",
        "lines",
        "space",
        "numbers",
        "objects",
    ],
)
def test_steps_are_small_and_few(data: bytes) -> None:
    parser, longest, last, is_unfinished, steps = Parser(data, MANY), 0, 0, True, 0
    while is_unfinished:
        is_unfinished = parser.run_step()
        longest, last = max(longest, parser.position - last), parser.position
        steps += 1
    assert last == len(data)
    assert longest <= 2 * 65_536 + 8_192
    assert steps <= len(data) / 1_000 + 10


def test_a_text_beyond_ascii_has_a_limit_and_a_file_has_none() -> None:
    file = b"A" * (MAX_TEXT + 1)
    assert loads(b'"' + file + b'"', max_values=1) == file.decode()
    text = "é".encode() * (MAX_TEXT // 2)
    assert loads(b'"' + text + b'"', max_values=1) == text.decode()
    with pytest.raises(TooLarge, match="8 MiB"):
        loads(b'"' + text + b'x"', max_values=1)
