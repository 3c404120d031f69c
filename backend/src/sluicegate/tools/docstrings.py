"""Descriptions of a function and its arguments, from its docstring."""

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
class FunctionDocs:
    """``text`` is everything before the first section; ``arguments`` are descriptions by name."""

    text: str = ""
    arguments: dict[str, str] = field(default_factory=dict)


def parse_docstring(function: object) -> FunctionDocs:
    """Read a docstring in Google style or reST (S1-R22)."""
    parser = _DocstringParser()
    for line in inspect.cleandoc(getattr(function, "__doc__", None) or "").splitlines():
        if not parser.enter_section(line):
            parser.feed(line)
    return FunctionDocs("\n".join(parser.text).strip(), parser.arguments)


class _DocstringParser:
    """Reads a docstring line by line and keeps the current section and argument."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self.arguments: dict[str, str] = {}
        self._section: Literal["text", "arguments", "field", "other"] = "text"
        self._argument = ""
        self._indent = 0

    def enter_section(self, line: str) -> bool:
        """Return whether the line begins another section, and enter it."""
        if line.startswith((" ", "\t")):
            return False
        if _SECTION.fullmatch(line):
            self._section, self._argument, self._indent = "arguments", "", 0
        elif match := _FIELD.match(line):
            self._section, self._argument = "field", match[1]
            self.arguments[self._argument] = match[2]
        elif _OTHER_SECTION.fullmatch(line) or _OTHER_FIELD.match(line):
            self._section = "other"
        else:
            return False
        return True

    def feed(self, line: str) -> None:
        """Add a line to the current section."""
        words = line.strip()
        if self._section == "text":
            self.text.append(line)
        elif self._section != "other" and words and not self._begin_argument(line, words):
            description = self.arguments.get(self._argument, "")
            self.arguments[self._argument] = f"{description} {words}".strip()

    def _begin_argument(self, line: str, words: str) -> bool:
        """Return whether an argument begins here; deeper indentation continues the last one."""
        if self._section != "arguments":
            return False
        indent = len(line) - len(line.lstrip())
        self._indent = self._indent or indent
        match = _ARGUMENT.fullmatch(words) if indent <= self._indent else None
        if match is not None:
            self._argument = match[1]
            self.arguments[self._argument] = match[2]
        return match is not None
