"""Text that every store keeps: PostgreSQL takes neither U+0000 nor half of a surrogate pair."""

from __future__ import annotations

import re
from typing import Any, Final

_NOWHERE_KEPT: Final = re.compile("[\0\ud800-\udfff]")
_REPLACEMENT: Final = "\ufffd"


def storable_text(text: str) -> str:
    """Return the text with U+FFFD in place of what some store would refuse."""
    return _NOWHERE_KEPT.sub(_REPLACEMENT, text)


def storable_json(value: Any) -> Any:
    """The same for all texts of a JSON value, keys too; what is fine comes back as it is."""
    if isinstance(value, str):
        return storable_text(value)
    if isinstance(value, list):
        items = [storable_json(item) for item in value]
        return value if all(map(_is, items, value)) else items
    if isinstance(value, dict):
        members = {storable_json(key): storable_json(item) for key, item in value.items()}
        same = all(map(_is, members, value)) and all(map(_is, members.values(), value.values()))
        return value if same and len(members) == len(value) else members
    return value


def _is(one: object, other: object) -> bool:
    return one is other
