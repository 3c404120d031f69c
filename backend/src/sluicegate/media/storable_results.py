"""Results of tools as JSON that can be stored."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from google.genai import types

if TYPE_CHECKING:
    from sluicegate.media.result_file_sources import Link
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
