"""What a docstring says of a function and of each of its arguments."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field
from typing import Final, Literal

_SECTION: Final = re.compile(r"(Args|Arguments|Parameters|Params):\s*")
_OTHER_SECTION: Final = re.compile(
    r"(Returns?|Raises|Yields?|Examples?|Notes?|Attributes|See Also|References|Warnings?):\s*"
)
_ARGUMENT: Final = re.compile(r"\*{0,2}(\w+)(?:\s*\([^)]*\))?\s*:\s*(.*)")
_FIELD: Final = re.compile(r":param(?:\s+[^:]*?)?\s+(\w+):\s*(.*)")
_OTHER_FIELD: Final = re.compile(r":\w+[^:]*:")


@dataclass(slots=True)
class Docs:
    """``text`` is everything before the first section; ``arguments`` are described by name."""

    text: str = ""
    arguments: dict[str, str] = field(default_factory=dict)


def docs_of(function: object) -> Docs:
    """Read a docstring in the style of Google or of reST (S1-R22)."""
    reading = _Reading()
    for line in inspect.cleandoc(getattr(function, "__doc__", None) or "").splitlines():
        if not reading.turns(line):
            reading.take(line)
    return Docs("\n".join(reading.text).strip(), reading.arguments)


class _Reading:
    """Where in a docstring the reader is."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self.arguments: dict[str, str] = {}
        self._place: Literal["text", "arguments", "field", "elsewhere"] = "text"
        self._current = ""
        self._indent = 0

    def turns(self, line: str) -> bool:
        """Whether the line begins another section."""
        if line.startswith((" ", "\t")):
            return False
        if _SECTION.fullmatch(line):
            self._place, self._current, self._indent = "arguments", "", 0
        elif match := _FIELD.match(line):
            self._place, self._current = "field", match[1]
            self.arguments[self._current] = match[2]
        elif _OTHER_SECTION.fullmatch(line) or _OTHER_FIELD.match(line):
            self._place = "elsewhere"
        else:
            return False
        return True

    def take(self, line: str) -> None:
        """Take a line where the reader is."""
        words = line.strip()
        if self._place == "text":
            self.text.append(line)
        elif self._place != "elsewhere" and words and not self._begins(line, words):
            so_far = self.arguments.get(self._current, "")
            self.arguments[self._current] = f"{so_far} {words}".strip()

    def _begins(self, line: str, words: str) -> bool:
        """Whether an argument begins here; what is indented more goes on with the last one."""
        if self._place != "arguments":
            return False
        depth = len(line) - len(line.lstrip())
        self._indent = self._indent or depth
        match = _ARGUMENT.fullmatch(words) if depth <= self._indent else None
        if match is not None:
            self._current = match[1]
            self.arguments[self._current] = match[2]
        return match is not None
