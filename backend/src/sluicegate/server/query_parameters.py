"""Query parameters that several routes read, and their schemas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sluicegate.errors import Malformed
from sluicegate.server.schemas import one_line
from sluicegate.wire.one_line_pattern import is_one_line

if TYPE_CHECKING:
    from starlette.requests import Request

MAX_PAGE: Final = 100
"""Items on one page of a list."""

DEFAULT_PAGE: Final = 30
"""Items on a page of a request without ``limit``."""

_MAX_CHARACTERS: Final = 256

LIMIT_SCHEMA: Final[dict[str, Any]] = {
    "type": "integer",
    "minimum": 1,
    "maximum": MAX_PAGE,
    "default": DEFAULT_PAGE,
}
TEXT_SCHEMA: Final = one_line(_MAX_CHARACTERS)


def limit_of(request: Request) -> int:
    """Return the parameter ``limit``, the number of items on a page; raises Malformed."""
    text = request.query_params.get("limit", str(DEFAULT_PAGE))
    if not (text.isascii() and text.isdigit() and len(text) <= 3 and 1 <= int(text) <= MAX_PAGE):
        raise Malformed(f"The parameter limit must be a number from 1 to {MAX_PAGE}.")
    return int(text)


def text_of(request: Request, name: str, *, max_characters: int = _MAX_CHARACTERS) -> str | None:
    """Return a parameter of printable text, None if it is absent or empty; raises Malformed."""
    text = request.query_params.get(name)
    if text is not None and (len(text) > max_characters or not is_one_line(text)):
        raise Malformed(
            f"The parameter {name} must be at most {max_characters} characters in one line."
        )
    return text or None
