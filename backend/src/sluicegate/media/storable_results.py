"""Results of tools as JSON that can be stored."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from google.genai import types

from sluicegate.core.json_values import json_safe, storable_json

if TYPE_CHECKING:
    from sluicegate.media.attachments_and_links import Link
    from sluicegate.wire.stored_files import StoredFile


FILES_KEY: Final = "sluicegate_files"
"""The key under which ADK finds the files of a result, and extracts them."""


def as_object(result: object) -> dict[str, Any]:
    """Return a result as ADK wraps it."""
    return dict(result) if isinstance(result, dict) else {"result": result}


@dataclass(frozen=True, slots=True)
class StorableResult:
    """A result in storable form: JSON, and files by reference."""

    response: dict[str, Any]
    files: list[StoredFile | Link] = field(default_factory=list)
    is_changed: bool = False

    @property
    def for_adk(self) -> dict[str, Any]:
        """The result for ADK, with its files."""
        if not self.files:
            return self.response
        return {**self.response, FILES_KEY: [part_of(file) for file in self.files]}

    @property
    def outcome(self) -> dict[str, Any]:
        """The result for the ledger."""
        if not self.files:
            return self.response
        files = [{"uri": file.uri, "mediaType": file.media_type} for file in self.files]
        return {"response": self.response, FILES_KEY: files}


def from_outcome(outcome: dict[str, Any]) -> dict[str, Any]:
    """Return a `StorableResult.outcome` of the ledger in the form for ADK."""
    files = outcome.get(FILES_KEY)
    if not isinstance(files, list):
        return dict(outcome)
    parts = [
        types.Part(file_data=types.FileData(file_uri=item["uri"], mime_type=item["mediaType"]))
        for item in files
    ]
    return {**outcome["response"], FILES_KEY: parts}


def part_of(file: StoredFile | Link) -> types.Part:
    """A file as a part of a function response, by reference."""
    return types.Part(file_data=types.FileData(file_uri=file.uri, mime_type=file.media_type))


def as_storable(result: object) -> dict[str, Any] | None:
    """Return a result as an object that every store accepts; None if it is storable as it is.

    Bytes, NaN, cycles and foreign objects would be shown and stored differently, or fail the run
    when its event is stored.
    """
    if _is_plain(result):
        return None
    cleaned = _as_json(result)
    # ADK: any other value is wrapped under this name, pydantic models too.
    return cleaned if isinstance(result, Mapping) else {"result": cleaned}


def _is_plain(result: object) -> bool:
    try:
        text = json.dumps(result, allow_nan=False, ensure_ascii=False)
        text.encode()
    except (TypeError, ValueError, RecursionError):
        return False
    return r"\u0000" not in text


def _as_json(value: object) -> Any:
    return storable_json(json_safe(value))
