"""Previews: what a call would do, as its card shows it, and what an approval of it covers.

A preview is a JSON object with its ``kind``; the model never reads it. Rule 1: it is shown as a
whole, or it has failed. Rule 2: an approval covers its contents and its version, so another preview
is not approved. Rule 3: the model learns how a preview has changed, not what it shows.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from sluicegate.core.json_values import canonical_json, hash_arguments

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import JsonValue

    ShownPreview = Mapping[str, Any]

MAX_BYTES: Final = 65_536
"""UTF-8 bytes of the JSON of a preview; a picture is stored beside it."""

MAX_IMAGE_BYTES: Final = 2 * 1024 * 1024
MAX_COLUMNS: Final = 50

RENEWALS: Final = 2
"""How often the model may ask anew by itself for a call whose preview has changed."""

DRIFTED: Final = "preview_changed"
"""The key in the outcome of a call that did not run since its preview was another one."""

_COVERED: Final = ("kind", "text", "columns", "rows", "before", "after", "sha256", "version")
_ABOUT: Final = ("editedBy", "previous")
_CHANGES: Final = {
    "text": "its text has changed",
    "diff": "it would change something else",
    "image": "its picture has changed",
}


def failed_preview(reason: str) -> dict[str, JsonValue]:
    """A preview that could not be shown; ``reason`` is a public sentence."""
    return {"kind": "failed", "reason": reason}


def is_failed(preview: ShownPreview | None) -> bool:
    """Whether nothing is shown, so that nothing can be approved."""
    return preview is not None and preview.get("kind") == "failed"


def digest_of(preview: ShownPreview) -> str:
    """The digest that an approval covers."""
    return hash_arguments({name: preview[name] for name in _COVERED if name in preview})


def contents_of(preview: ShownPreview) -> dict[str, Any]:
    """The preview alone, without who has edited the call and what an earlier card showed."""
    return {name: value for name, value in preview.items() if name not in _ABOUT}


def difference(approved: ShownPreview, now: ShownPreview) -> str:
    """How a preview has changed, as a clause for the model: numbers, no contents."""
    kind = approved.get("kind")
    if now.get("kind") != kind or approved.get("columns") != now.get("columns"):
        return "it shows something else"
    if without_version(approved) == without_version(now):
        return "its version has changed"
    return _change_of_rows(approved, now) if kind == "table" else _CHANGES[str(kind)]


def without_version(preview: ShownPreview) -> dict[str, Any]:
    """What a preview shows."""
    return {name: preview[name] for name in _COVERED if name in preview and name != "version"}


def _change_of_rows(approved: ShownPreview, now: ShownPreview) -> str:
    before, after = _counted(approved), _counted(now)
    counts = {"new": (after - before).total(), "gone": (before - after).total()}
    changes = [f"{_rows(count)} {word}" for word, count in counts.items() if count]
    return " and ".join(changes) or "its rows have another order"


def _counted(preview: ShownPreview) -> Counter[str]:
    return Counter(canonical_json(row) for row in preview["rows"])


def _rows(count: int) -> str:
    return "1 row is" if count == 1 else f"{count} rows are"
