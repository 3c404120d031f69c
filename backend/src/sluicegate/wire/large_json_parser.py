"""The parser for large bodies: as strict as `strict_json.loads`, in small steps.

A parser in C keeps the interpreter for a whole body, also in a thread: 32 MiB of empty arrays take
two seconds in which no other request is answered. No call into C is long here, so that in a thread
this parser gives up the interpreter within a few milliseconds. It counts values while it reads and
holds no copy of the body as text. Only arrays and objects of up to 4 KiB without others inside are
parsed in C.

ijson 3.6 (yajl) does not replace it: it has no types, turns a lone surrogate into another text, and
in pieces of 4 KiB takes 16 s for one string of 20 MiB (0.1 s here), over 100 s if it has escapes.
"""

from __future__ import annotations

import codecs
import re
from enum import Enum
from json import JSONDecodeError
from typing import TYPE_CHECKING, Any, Final

from sluicegate.errors import Malformed, TooLarge
from sluicegate.wire import strict_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic import JsonValue

MAX_TEXT: Final = 8 * 2**20
"""Bytes of a string with characters beyond ASCII; attached files are ASCII."""

_TOKENS_PER_STEP: Final = 1_000
_BYTES_PER_STEP: Final = 2**16
_MAX_NUMBER: Final = 1_000

_LEAF: Final = re.compile(rb"[ \t\r\n]{0,64}(\{[^{}\[\]]{0,4096}\}|\[[^{}\[\]]{0,4096}\])")
_TOKEN: Final = re.compile(
    rb"[ \t\r\n]{0,64}(?:"
    rb'"([^"\\\x00-\x1f\x80-\xff]{0,256})"'
    rb"|([\[\]{},:])"
    rb"|(-?(?:0|[1-9][0-9]{0,%(most)d})(?:\.[0-9]{1,%(most)d})?(?:[eE][-+]?[0-9]{1,%(most)d})?)"
    rb"(?![0-9.eE])"
    rb"|(true|false|null))" % {b"most": _MAX_NUMBER}
)
_SPACE: Final = re.compile(rb"[ \t\r\n]{1,%d}" % _BYTES_PER_STEP)
_PLAIN: Final = re.compile(rb'[^"\\\x00-\x1f]{1,%d}' % _BYTES_PER_STEP)
# Python 3.11.2 matches possessive groups wrongly; nothing follows, so this cannot backtrack.
_ESCAPES: Final = re.compile(
    rb'(?:\\(?:["\\/bfnrt]'
    rb"|u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|u(?!0000|[dD][89a-fA-F])[0-9a-fA-F]{4})"
    rb'[^"\\\x00-\x1f]*)+'
)
_HALF_CHARACTER: Final = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_CONSTANT: Final = re.compile(rb"NaN|-?Infinity")
_LONG_NUMBER: Final = re.compile(rb"-?[0-9]{18}")
_LITERALS: Final[dict[bytes, bool | None]] = {b"true": True, b"false": False, b"null": None}


def loads(
    data: bytes, *, max_values: int, between_steps: Callable[[], object] = lambda: None
) -> JsonValue:
    """Parse one JSON value. Arrays, objects and their items count as values.

    ``between_steps`` is called after each step.

    Raises:
        Malformed: As `strict_json.loads`.
        TooLarge: There are more than ``max_values``, or a string has more than `MAX_TEXT` bytes.
    """
    parser = Parser(data, max_values)
    while parser.run_step():
        between_steps()
    return parser.result


class _Expected(Enum):
    VALUE = "a value"
    ITEM_OR_END = "a value or the end of the array"
    KEY = "a key"
    KEY_OR_END = "a key or the end of the object"
    COLON = "a colon"
    COMMA_OR_END = "a comma or the end of the container"
    NOTHING = "the end of the data"


_VALUE: Final = frozenset({_Expected.VALUE, _Expected.ITEM_OR_END})
_KEY: Final = frozenset({_Expected.KEY, _Expected.KEY_OR_END})


class Parser:
    """A position in the data, and the containers that are open there; see `loads`."""

    def __init__(self, data: bytes, max_values: int) -> None:
        self.result: JsonValue = None
        self._data = data
        self.position = 0
        self._max_values = max_values
        self._values = 0
        self._expected = _Expected.VALUE
        # The open containers from the outermost, each with the key under which it will be stored.
        self._open: list[tuple[Any, str]] = []
        self._container: Any = None
        self._key = ""
        self._string: _LongString | None = None
        if data.startswith(codecs.BOM_UTF8):
            raise Malformed(strict_json.BYTE_ORDER_MARK)

    def run_step(self) -> bool:
        """Read at most 1,000 tokens or 64 KiB; False once the whole data is read."""
        end = self.position + _BYTES_PER_STEP
        for _ in range(_TOKENS_PER_STEP):
            if self.position >= end:
                break
            if self._string is not None:
                return self._read_string(self._string)
            if self._expected in _VALUE and self._read_leaf():
                continue
            match = _TOKEN.match(self._data, self.position)
            if match is None:
                return self._read_rest()
            self.position = match.end()
            self._read_token(match)
        return True

    def _read_leaf(self) -> bool:
        """Read an array or object without another one inside; False if there is none here."""
        match = _LEAF.match(self._data, self.position)
        if match is None or b"\\u" in match[1] or len(self._open) == strict_json.MAX_DEPTH:
            return False
        try:
            value = strict_json.decode_text(match[1].decode())
        except (JSONDecodeError, UnicodeDecodeError):
            # Perhaps a bracket in a string; if it is an error, the tokens show it.
            return False
        self._count(len(value))
        self.position = match.end()
        self._add(value)
        return True

    def _read_token(self, match: re.Match[bytes]) -> None:
        kind = match.lastindex
        if kind == 1:
            self._add_string(match[1].decode("ascii"))
        elif kind == 2:
            self._read_punctuation(match[2])
        elif kind == 3:
            number = match[3].decode("ascii")
            is_integer = number.isdecimal() or number[1:].isdecimal()
            parse = strict_json.parse_integer if is_integer else strict_json.parse_float
            self._add(parse(number))
        else:
            self._add(_LITERALS[match[4]])

    def _read_punctuation(self, mark: bytes) -> None:
        expected = self._expected
        if mark == b"," and expected is _Expected.COMMA_OR_END:
            is_object = isinstance(self._container, dict)
            self._expected = _Expected.KEY if is_object else _Expected.VALUE
        elif mark == b":" and expected is _Expected.COLON:
            self._expected = _Expected.VALUE
        elif mark == b"{" and expected in _VALUE:
            self._begin({}, _Expected.KEY_OR_END)
        elif mark == b"[" and expected in _VALUE:
            self._begin([], _Expected.ITEM_OR_END)
        elif mark == b"}" and isinstance(self._container, dict):
            self._end(is_allowed=expected in (_Expected.KEY_OR_END, _Expected.COMMA_OR_END))
        elif mark == b"]" and isinstance(self._container, list):
            self._end(is_allowed=expected in (_Expected.ITEM_OR_END, _Expected.COMMA_OR_END))
        else:
            raise Malformed(strict_json.NOT_JSON)

    def _begin(self, container: dict[str, Any] | list[Any], expected: _Expected) -> None:
        self._open.append((self._container, self._key))
        # The value outside of all containers is not open.
        if len(self._open) > strict_json.MAX_DEPTH:
            raise Malformed(strict_json.TOO_DEEP)
        self._container, self._expected = container, expected

    def _end(self, *, is_allowed: bool) -> None:
        if not is_allowed:
            raise Malformed(strict_json.NOT_JSON)
        value = self._container
        self._container, self._key = self._open.pop()
        self._store(value)

    def _add(self, value: Any) -> None:
        if self._expected not in _VALUE:
            raise Malformed(strict_json.NOT_JSON)
        self._store(value)

    def _store(self, value: Any) -> None:
        self._count(1)
        container = self._container
        if container is None:
            self.result = value
            self._expected = _Expected.NOTHING
            return
        if isinstance(container, dict):
            container[self._key] = value
        else:
            container.append(value)
        self._expected = _Expected.COMMA_OR_END

    def _add_string(self, text: str) -> None:
        if self._expected not in _KEY:
            self._add(text)
            return
        strict_json.check_key(text, self._container)
        self._key, self._expected = text, _Expected.COLON

    def _count(self, values: int) -> None:
        self._values += values
        if self._values > self._max_values:
            raise TooLarge(
                f"The body has more than {self._max_values:,} JSON values; "
                "send the last message without the ones before it."
            )

    def _read_rest(self) -> bool:
        """Read what is not a short token; False at the end of the data."""
        data = self._data
        space = _SPACE.match(data, self.position)
        if space is not None:
            self.position = space.end()
        if self.position == len(data):
            if self._expected is not _Expected.NOTHING:
                raise Malformed(strict_json.TOO_DEEP if self._open else strict_json.NOT_JSON)
            return False
        if data[self.position : self.position + 1] == b'"':
            self.position += 1
            self._string = _LongString(data, self.position)
        elif space is None:
            if constant := _CONSTANT.match(data, self.position):
                strict_json.refuse_constant(constant[0].decode())
            if _LONG_NUMBER.match(data, self.position):
                raise Malformed(strict_json.TOO_MANY_DIGITS)
            raise _error_at(data, self.position)
        return True

    def _read_string(self, string: _LongString) -> bool:
        """Read one piece of a string, or its end."""
        data, start = self._data, self.position
        if match := _PLAIN.match(data, start):
            string.add(match[0])
        elif match := _ESCAPES.match(data, start, start + _BYTES_PER_STEP):
            string.add_escaped(match[0])
        elif data[start : start + 1] == b'"':
            self.position = start + 1
            self._string = None
            self._add_string(string.end())
            return True
        else:
            raise _error_at(data, start)
        self.position = match.end()
        return True


def _error_at(data: bytes, position: int) -> Malformed:
    """Return the error for data that no token matches."""
    if data.startswith(b"\\u0000", position):
        return Malformed(strict_json.NULL_CHARACTER)
    if _HALF_CHARACTER.match(data, position):
        return Malformed(strict_json.HALF_CHARACTER)
    try:
        codecs.getincrementaldecoder("utf-8")().decode(data[position : position + 64])
    except UnicodeDecodeError:
        return strict_json.NotUtf8()
    return Malformed(strict_json.NOT_JSON)


class _LongString:
    """A string that is read in pieces.

    The ASCII at its beginning, all of an attached file, is copied only once the string has ended.
    """

    def __init__(self, data: bytes, start: int) -> None:
        self._data = data
        self._start = start
        self._end = start
        self._pieces: list[str] = []
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._size = 0
        self._is_ascii = True

    def add(self, piece: bytes) -> None:
        """Add bytes without escapes; a character may continue in the next piece."""
        if not self._pieces and piece.isascii():
            self._end += len(piece)
            self._size += len(piece)
            return
        try:
            self._append(self._decoder.decode(piece), len(piece))
        except UnicodeDecodeError:
            raise strict_json.NotUtf8 from None

    def add_escaped(self, piece: bytes) -> None:
        """Add whole escapes with the text between them; its last character may continue."""
        try:
            text = self._decoder.decode(piece)
        except UnicodeDecodeError:
            raise strict_json.NotUtf8 from None
        self._append(strict_json.decode_text(f'"{text}"'), len(piece))

    def end(self) -> str:
        """Return the whole string."""
        if self._decoder.getstate()[0]:
            raise strict_json.NotUtf8
        beginning = str(memoryview(self._data)[self._start : self._end], "ascii")
        return "".join((beginning, *self._pieces)) if self._pieces else beginning

    def _append(self, text: str, size: int) -> None:
        self._pieces.append(text)
        self._size += size
        self._is_ascii = self._is_ascii and text.isascii()
        if self._size > MAX_TEXT and not self._is_ascii:
            raise TooLarge(
                f"A text in the body is longer than {MAX_TEXT // 2**20} MiB; send a shorter one."
            )
