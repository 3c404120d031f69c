"""Streamed arguments of a call: JSON-path pieces in, the JSON text of the arguments out.

Rule 1: the joined deltas are one JSON object that parses to the final arguments. Rule 2: JSON text
only grows, so a piece for a value that is already closed is deferred to the end, where its
top-level member is written again; of duplicate keys a JSON parser keeps the last.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from sluicegate.core.json_values import json_safe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic import JsonValue

Path: TypeAlias = tuple[str | int, ...]

MAX_INDEX: Final = 10_000
"""ADK drops pieces of arrays beyond this index."""

_MAX_DEPTH: Final = 64
_TOKEN: Final = re.compile(
    r"\[\s*(\d+)\s*\]"
    r"|\['((?:[^'\\]|\\.)*)'\]"
    r'|\["((?:[^"\\]|\\.)*)"\]'
    r"|(?:\.?((?:[^.\[\]\\]|\\.)+))"
)
_ESCAPE: Final = re.compile(r"\\u([0-9a-fA-F]{4})|\\(.)")
_ESCAPED: Final = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}


@dataclass(slots=True)
class _Open:
    """A container that is open in the text, and its value as written so far."""

    value: dict[str, JsonValue] | list[JsonValue]
    token: str | int | None = None
    """The child that was written last."""

    def accepts(self, token: str | int) -> bool:
        """Whether a child of that name can still be added."""
        if isinstance(self.value, dict):
            return isinstance(token, str) and token not in self.value
        return isinstance(token, int) and len(self.value) <= token <= MAX_INDEX

    def set(self, token: str | int, value: JsonValue) -> None:
        if isinstance(self.value, dict):
            self.value[cast("str", token)] = value
        elif isinstance(token, int) and token < len(self.value):
            self.value[token] = value
        else:
            self.value.append(value)


@dataclass(slots=True)
class ArgumentsWriter:
    """The text of one call's arguments as it grows."""

    _root: dict[str, JsonValue] = field(default_factory=dict)
    _open: list[_Open] = field(default_factory=list)
    _string: Path | None = None
    _pieces: list[str] = field(default_factory=list)
    _scalar: tuple[Path, JsonValue] | None = None

    @property
    def value(self) -> JsonValue:
        """The arguments written so far."""
        self._keep_string()
        return self._root

    def add_string(self, path: Path, piece: str) -> str:
        """Append to the string at ``path``; return the added text."""
        if path == self._string:
            self._pieces.append(piece)
            return _inner(piece)
        text = self._write_scalar()
        begun = self._begin(path)
        if begun is None:
            return text
        self._string = path
        self._pieces = [piece]
        self._open[-1].set(path[-1], "")
        return f'{text}{begun}"{_inner(piece)}'

    def add_scalar(self, path: Path, value: JsonValue) -> str:
        """Set a number, boolean or null; it is written once it can no longer change."""
        text = ""
        if self._scalar is not None and self._scalar[0] != path:
            text = self._write_scalar()
        self._scalar = (path, value)
        return text

    def finish(self, final: JsonValue) -> str:
        """Return the rest of the text, so that the whole parses to ``final``."""
        text = self._write_scalar()
        members = final if isinstance(final, dict) else {}
        if not self._open:
            return text + _dumps(members)
        text += self._end_string(members)
        while self._open:
            text += self._complete(members)
        return text

    def _write_scalar(self) -> str:
        if self._scalar is None:
            return ""
        path, value = self._scalar
        self._scalar = None
        begun = self._begin(path)
        if begun is None:
            return ""
        self._open[-1].set(path[-1], value)
        return begun + _dumps(value)

    def _keep_string(self) -> str:
        """Store the open string as written so far."""
        if self._string is None:
            return ""
        written = "".join(self._pieces)
        self._pieces = [written]
        parent = self._open[-1]
        parent.set(cast("str | int", parent.token), written)
        return written

    def _begin(self, path: Path) -> str | None:
        """Open the containers of a new value; None if the text is already past its position."""
        if not path or not isinstance(path[0], str) or len(path) > _MAX_DEPTH:
            return None
        shared = 0
        deepest = min(len(path), len(self._open)) - 1
        while shared < deepest and self._open[shared].token == path[shared]:
            shared += 1
        if self._open and not self._open[shared].accepts(path[shared]):
            return None
        if any(isinstance(token, int) and token > MAX_INDEX for token in path):
            return None
        text = self._quote() + self._close_to(shared + 1)
        if not self._open:
            self._open.append(_Open(self._root))
            text = "{"
        for depth in range(shared, len(path)):
            text += self._enter(path[depth])
            if depth + 1 < len(path):
                inner: _Open = _Open({} if isinstance(path[depth + 1], str) else [])
                self._open[-1].set(path[depth], inner.value)
                self._open.append(inner)
                text += "{" if isinstance(inner.value, dict) else "["
        return text

    def _quote(self) -> str:
        if self._string is None:
            return ""
        self._keep_string()
        self._string = None
        return '"'

    def _close_to(self, count: int) -> str:
        text = ""
        while len(self._open) > count:
            text += "}" if isinstance(self._open.pop().value, dict) else "]"
        return text

    def _enter(self, token: str | int) -> str:
        """Write the separator and key before a child of the innermost container."""
        parent = self._open[-1]
        text = "," if parent.value else ""
        if isinstance(parent.value, dict):
            text += _dumps(token) + ":"
        else:
            while len(parent.value) < cast("int", token):
                text += "null,"
                parent.value.append(None)
        parent.token = token
        return text

    def _end_string(self, final: dict[str, JsonValue]) -> str:
        """Write the rest of the open string, then its quote."""
        if self._string is None:
            return ""
        written, wanted = self._keep_string(), _at(final, self._string)
        rest = ""
        if isinstance(wanted, str) and wanted.startswith(written):
            rest = wanted[len(written) :]
            self._pieces.append(rest)
        return _inner(rest) + self._quote()

    def _complete(self, final: dict[str, JsonValue]) -> str:
        """Write the rest of the innermost container, and close it."""
        here = self._open[-1]
        path = tuple(cast("str | int", frame.token) for frame in self._open[:-1])
        wanted = _at(final, path)
        text = ""
        if isinstance(here.value, dict) and isinstance(wanted, dict):
            for name, value in wanted.items():
                is_top = len(self._open) == 1
                if name not in here.value or (is_top and not _same(here.value[name], value)):
                    text += ("," if here.value else "") + _dumps(name) + ":" + _dumps(value)
                    here.value[name] = value
        elif isinstance(here.value, list) and isinstance(wanted, list):
            for value in wanted[len(here.value) :]:
                text += ("," if here.value else "") + _dumps(value)
                here.value.append(value)
        self._open.pop()
        return text + ("}" if isinstance(here.value, dict) else "]")


def parse_path(text: str) -> Path:
    """Read a JSON path as ADK does: ``$.a['b c'][0]`` is ("a", "b c", 0)."""
    body = text[2:] if text.startswith("$.") else text.removeprefix("$")
    found: list[str | int] = []
    for index, single, double, plain in _TOKEN.findall(body):
        found.append(int(index) if index else _ESCAPE.sub(_unescaped, single or double or plain))
    return tuple(found)


def _unescaped(match: re.Match[str]) -> str:
    if match.group(1):
        return chr(int(match.group(1), 16))
    return _ESCAPED.get(match.group(2), match.group(2))


def _at(value: JsonValue, path: Sequence[str | int]) -> JsonValue:
    for token in path:
        if isinstance(value, dict) and isinstance(token, str):
            value = value.get(token)
        elif isinstance(value, list) and isinstance(token, int) and token < len(value):
            value = value[token]
        else:
            return None
    return value


def _same(left: JsonValue, right: JsonValue) -> bool:
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(v, right[k]) for k, v in left.items())
    if isinstance(left, list) and isinstance(right, list):
        pairs = zip(left, right, strict=False)
        return len(left) == len(right) and all(_same(a, b) for a, b in pairs)
    return isinstance(left, bool) is isinstance(right, bool) and left == right


def _dumps(value: object) -> str:
    return json.dumps(json_safe(value), ensure_ascii=False, separators=(",", ":"))


def _inner(piece: str) -> str:
    return json.dumps(piece, ensure_ascii=False)[1:-1]
