"""Whatever a tool returns, taken apart: what is JSON stays, files come out in order (S0-R16).

Rule: nothing here raises, whatever a tool returns; what cannot be used becomes one sentence.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from google.genai import types
from pydantic import BaseModel

from sluicegate.errors import DetailError
from sluicegate.media.file_sources import Attachment, FileSource, as_file_source
from sluicegate.media.tool_result import ToolResult

_DEPTH: Final = 20
"""Containers in which files are looked for; what lies deeper stays as it is."""

_MCP_MEDIA: Final = frozenset({"image", "audio"})
_MCP_KINDS: Final = frozenset({"text", "image", "audio", "resource", "resource_link"})
_GONE: Final = object()


@dataclass(slots=True)
class ExtractedResult:
    """A result without its files.

    ``response`` is what is left, not yet JSON: foreign objects stand in it as they came.
    ``problems`` are public sentences on files that could not be used.
    """

    response: Any
    files: list[FileSource] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    is_changed: bool = False
    """Whether the response is another one than the tool returned."""


def extract_files(result: object) -> ExtractedResult:
    """Take a tool's result apart."""
    taken = ExtractedResult(result)
    walk = _Walk(taken)
    rest = walk.value(result, 0)
    if rest is _GONE or (taken.files and isinstance(rest, list | tuple) and not rest):
        rest = {}
    taken.response = rest
    taken.is_changed = rest is not result
    return taken


class _Walk:
    """One walk through a result; it knows the containers it stands in."""

    def __init__(self, taken: ExtractedResult) -> None:
        self._taken = taken
        self._inside: set[int] = set()

    def value(self, value: Any, depth: int) -> Any:
        """What is left of a value, `_GONE` where nothing is."""
        if value is None or isinstance(value, str | int | float):
            return value
        if isinstance(value, ToolResult):
            return self._result(value)
        if isinstance(value, types.FunctionResponse):
            return self._answer(value, depth)
        if isinstance(value, types.Content):
            return self.value(list(value.parts or []), depth)
        if isinstance(value, types.Part) and value.text is not None:
            return value.text
        try:
            found = as_file_source(value)
        except DetailError as error:
            self._problem(f"A file was left out: {error}.")
            return _GONE
        if found is not None:
            self._taken.files.append(found)
            return _GONE
        return self._container(value, depth)

    def _container(self, value: Any, depth: int) -> Any:
        if depth >= _DEPTH or id(value) in self._inside:
            return value
        self._inside.add(id(value))
        try:
            if _is_mcp_object(value):
                value = value.model_dump(mode="json", by_alias=True, exclude_none=True)
            if isinstance(value, Mapping):
                return self._mcp(value) if _is_mcp(value) else self._mapping(value, depth)
            if type(value) in (list, tuple):
                return self._items(value, depth)
            return value
        except Exception:  # noqa: BLE001 - a container of somebody's own may raise when it is read
            return value
        finally:
            self._inside.discard(id(value))

    def _mapping(self, value: Mapping[Any, Any], depth: int) -> Any:
        kept = {key: self.value(item, depth + 1) for key, item in value.items()}
        if all(kept[key] is item for key, item in value.items()):
            return value
        left = {key: item for key, item in kept.items() if item is not _GONE}
        return left if left or depth == 0 else _GONE

    def _items(self, value: list[Any] | tuple[Any, ...], depth: int) -> Any:
        kept = [self.value(item, depth + 1) for item in value]
        if all(one is other for one, other in zip(kept, value, strict=True)):
            return value
        left = [item for item in kept if item is not _GONE]
        return left if left or depth == 0 else _GONE

    def _result(self, result: ToolResult) -> Any:
        self._taken.files.extend(result.files)
        return result.response

    def _answer(self, answer: types.FunctionResponse, depth: int) -> Any:
        for part in answer.parts or []:
            self.value(part, depth)
        response = answer.response or {}
        # ADK: what is not an object is wrapped under this name.
        only = response.get("result") if set(response) == {"result"} else None
        return self.value(only if isinstance(only, ToolResult) else response, depth)

    def _mcp(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """A result of an MCP tool.

        ADK: it is handed on as the protocol has it, pictures in base64.
        """
        content = [self._mcp_item(item) for item in value["content"]]
        return {**value, "content": content}

    def _mcp_item(self, item: dict[str, Any]) -> dict[str, Any]:
        kind, resource = item["type"], item.get("resource")
        if kind in _MCP_MEDIA:
            self._decode(item.get("data"), item.get("mimeType"), None)
            return {key: value for key, value in item.items() if key != "data"}
        if kind == "resource" and isinstance(resource, dict) and "blob" in resource:
            name = str(resource.get("uri", "")).rstrip("/").rpartition("/")[2]
            self._decode(resource["blob"], resource.get("mimeType"), name or None)
            rest = {key: value for key, value in resource.items() if key != "blob"}
            return {**item, "resource": rest}
        return item

    def _decode(self, encoded: object, media_type: object, title: str | None) -> None:
        try:
            text = "".join(encoded.split()) if isinstance(encoded, str) else ""
            data = base64.b64decode(text, validate=True)
            kind = media_type if isinstance(media_type, str) and media_type else None
            self._taken.files.append(Attachment(data=data, media_type=kind, title=title))
        except (binascii.Error, ValueError):
            self._problem("A file was left out: it is not what the protocol calls for.")

    def _problem(self, sentence: str) -> None:
        self._taken.problems.append(sentence)


def _is_mcp(value: Mapping[Any, Any]) -> bool:
    content = value.get("content")
    if not isinstance(content, list) or not content:
        return False
    kinds = [item.get("type") if isinstance(item, dict) else None for item in content]
    if not all(isinstance(kind, str) and kind in _MCP_KINDS for kind in kinds):
        return False
    # Other protocols speak of content and types as well; only these two are sure signs.
    return "isError" in value or not _MCP_MEDIA.isdisjoint(kinds) or "resource" in kinds


def _is_mcp_object(value: object) -> bool:
    return isinstance(value, BaseModel) and type(value).__name__ == "CallToolResult"
