"""One range of bytes of a file, as RFC 9110 section 14 asks for it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_RANGE: Final = re.compile(r"bytes\s*=\s*([0-9]{0,18})-([0-9]{0,18})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Range:
    """The bytes from ``start`` up to, not including, ``stop``, of ``size``."""

    start: int
    stop: int
    size: int

    @property
    def is_empty(self) -> bool:
        """Whether nothing of the file lies in it: 416."""
        return self.start >= self.stop

    @property
    def content_range(self) -> str:
        """The header ``content-range`` of the answer."""
        place = "*" if self.is_empty else f"{self.start}-{self.stop - 1}"
        return f"bytes {place}/{self.size}"


def asked_range(headers: Mapping[str, str], size: int, tag: str) -> Range | None:
    """The range that a request asks for; None where the whole file is to be sent.

    Several ranges at once, other units and what cannot be read are answered with the whole, as
    the RFC allows; so is a range of another version (``if-range``).
    """
    found = _RANGE.fullmatch(headers.get("range", "").strip())
    if found is None or headers.get("if-range", tag) != tag:
        return None
    first, last = found.groups()
    if not first:
        return Range(max(0, size - int(last)), size, size) if last else None
    if last and int(last) < int(first):
        return None
    stop = min(int(last) + 1, size) if last else size
    return Range(int(first), stop, size)
