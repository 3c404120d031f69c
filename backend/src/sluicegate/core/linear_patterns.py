"""Regular expressions of JSON schemas, searched in linear time.

Python's ``re`` backtracks: a pattern that a worker declares and a text that a model writes can
keep it busy for hours. The engine here is the one of pydantic-core, Rust's ``regex``: a finite
automaton whose time grows with the text times the size of the pattern. It comes with pydantic,
typed and on every platform, and it reads the patterns that pydantic itself writes into schemas.
RE2 would be another dependency, without wheels for musl and without types. Neither engine has
look-around or back-references; a pattern with them is refused.
"""

from __future__ import annotations

import re
from typing import Final

from pydantic_core import SchemaError, SchemaValidator, core_schema

from sluicegate.errors import UnusableSchema

MAX_SIZE: Final = 5_000
"""Characters and classes that a pattern may have after its counted repetitions are written out."""

_COUNT: Final = re.compile(r"\{ *(\d*) *(,?) *(\d*) *\}")
_GROUP: Final = re.compile(r"\(\?(?:P?<[^>]*>|([A-Za-z-]*)[:)]?)")
_BRACED_ESCAPES: Final = "pPxuU"
_ESCAPE_SIZES: Final = dict.fromkeys("wWpP", 50) | dict.fromkeys("dDsS", 3)
"""Classes of Unicode are large automata: the time of compiling one, measured in characters."""

_NEGATED_SIZE: Final = 3
_MAX_SHOWN: Final = 80


class LinearPattern:
    """A compiled pattern; ``size`` is a bound of the size of its automaton.

    Raises:
        UnusableSchema: The engine does not support the pattern, or it is larger than `MAX_SIZE`.
    """

    __slots__ = ("_validator", "size")

    def __init__(self, pattern: str) -> None:
        self.size = pattern_size(pattern)
        name = f"the pattern {pattern[:_MAX_SHOWN]!r}"
        if self.size > MAX_SIZE:
            raise UnusableSchema(f"{name} is too large when its repetitions are written out")
        schema = core_schema.str_schema(pattern=pattern, strict=True, regex_engine="rust-regex")
        try:
            self._validator = SchemaValidator(schema)
        except SchemaError:
            raise UnusableSchema(
                f"{name} is not valid, or has look-around or back-references, which no engine "
                "searches in linear time"
            ) from None

    def is_in(self, text: str) -> bool:
        """Whether the pattern matches somewhere in the text."""
        return self._validator.isinstance_python(text)


def pattern_size(pattern: str) -> int:
    """Return a bound of the size of the pattern's automaton, with counted repetitions written out.

    Raises:
        UnusableSchema: The pattern has comments, whose text could hide a repetition.
    """
    return _Measure(pattern).size()


class _Measure:
    """Adds up the atoms of a pattern; a group or an atom is multiplied by its repetition."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._groups = [0]
        self._last = 0

    def size(self) -> int:
        while self._at < len(self._pattern):
            match self._pattern[self._at]:
                case "(":
                    self._open()
                case ")":
                    self._close()
                case "{":
                    self._repeat()
                case "[":
                    self._add(self._class())
                case "\\":
                    self._add(self._escape())
                case "*" | "+" | "?":
                    self._at += 1
                case _:
                    self._at += 1
                    self._add(1)
        return sum(self._groups)

    def _add(self, size: int) -> None:
        self._last = size
        self._groups[-1] += size

    def _open(self) -> None:
        self._groups.append(0)
        found = _GROUP.match(self._pattern, self._at)
        if found is None:
            self._at += 1
            return
        if "x" in (found[1] or ""):
            raise UnusableSchema(f"the pattern {self._pattern[:_MAX_SHOWN]!r} has comments")
        self._at = found.end()
        if found[0].endswith(")"):
            self._at -= 1

    def _close(self) -> None:
        self._at += 1
        if len(self._groups) > 1:
            self._add(self._groups.pop())

    def _repeat(self) -> None:
        found = _COUNT.match(self._pattern, self._at)
        if found is None:
            self._at += 1
            self._add(1)
            return
        self._at = found.end()
        counts = (text.lstrip("0")[:6] for text in (found[1], found[3]))
        times = max(1, *(int(count or 0) for count in counts))
        self._groups[-1] += self._last * (times - 1)
        self._last *= times

    def _escape(self) -> int:
        name = self._pattern[self._at + 1 : self._at + 2]
        self._at += 2
        if name and name in _BRACED_ESCAPES and self._pattern[self._at : self._at + 1] == "{":
            end = self._pattern.find("}", self._at)
            self._at = len(self._pattern) if end < 0 else end + 1
        return _ESCAPE_SIZES.get(name, 1)

    def _class(self) -> int:
        """Read a class in brackets, which may hold others."""
        self._at += 1
        size = 1
        if self._pattern[self._at : self._at + 1] == "^":
            size, self._at = _NEGATED_SIZE, self._at + 1
        if self._pattern[self._at : self._at + 1] == "]":
            self._at += 1
        while self._at < len(self._pattern):
            match self._pattern[self._at]:
                case "]":
                    self._at += 1
                    return size
                case "[":
                    size += self._class()
                case "\\":
                    size += self._escape() - 1
                case _:
                    self._at += 1
        return size
