"""Extraction of files from any result of a tool: the rest stays, files keep their order (S0-R16).

Rule: no result raises an exception; a file that is not valid becomes one sentence.
"""

from __future__ import annotations

import base64
import binascii
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from google.genai import types
from pydantic import BaseModel

from sluicegate.errors import DetailError
from sluicegate.media.attachments_and_links import Attachment, FileSource, as_file_source
from sluicegate.media.base64_detection import file_in_base64
from sluicegate.media.storable_results import as_storable
from sluicegate.media.tool_result_with_files import ToolResult

if TYPE_CHECKING:
    from collections.abc import Sequence


logger = logging.getLogger("sluicegate")

_DEPTH: Final = 20
"""Levels of containers that are searched for files; deeper values stay unchanged."""

_LONG: Final = 256
"""Characters from which a text of an MCP result is searched for files."""

_ATTACHED: Final = "Base64 of files was replaced: they are attached."

_MCP_MEDIA: Final = frozenset({"image", "audio"})
_MCP_KINDS: Final = frozenset({"text", "image", "audio", "resource", "resource_link"})
_REMOVED: Final = object()


@dataclass(slots=True)
class ExtractedResult:
    """A result without its files.

    ``response`` is the rest, not yet JSON: it may hold any objects of the tool. ``problems`` are
    public sentences about files that are not valid, ``notes`` those about files that are.
    """

    response: Any
    files: list[FileSource] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    is_changed: bool = False
    """Whether the response is not the object that the tool returned."""


def extract_files(result: object) -> ExtractedResult:
    """Extract the files of a tool's result."""
    extracted = ExtractedResult(result)
    rest = _Walk(extracted).value(result, 0)
    if rest is _REMOVED or (extracted.files and isinstance(rest, list | tuple) and not rest):
        rest = {}
    extracted.response = rest
    extracted.is_changed = rest is not result
    return extracted


class _Walk:
    """One walk through a result, which tracks the containers around the current value."""

    def __init__(self, extracted: ExtractedResult) -> None:
        self._extracted = extracted
        self._containers: set[int] = set()
        self._encoded: dict[str, str] = {}
        """Texts that were files in base64, and what is left of each."""

    def value(self, value: Any, depth: int) -> Any:
        """Return the rest of a value; `_REMOVED` if it was a file."""
        if isinstance(value, str):
            return self._text(value)
        if value is None or isinstance(value, int | float):
            return value
        if isinstance(value, ToolResult):
            return self._tool_result(value)
        if isinstance(value, types.FunctionResponse):
            return self._function_response(value, depth)
        if isinstance(value, types.Content):
            return self._parts(value.parts or [], depth)
        if isinstance(value, types.Part):
            return self._parts([value], depth)
        return _REMOVED if self._add_file(value) else self._container(value, depth)

    def _add_file(self, value: object) -> bool:
        """Add a value to the files if it is one; a file that is not valid becomes a problem."""
        try:
            file = as_file_source(value)
        except DetailError as error:
            self._problem(f"A file was left out: {error}.")
            return True
        if file is None:
            return False
        self._extracted.files.append(file)
        return True

    def _container(self, value: Any, depth: int) -> Any:
        if depth >= _DEPTH or id(value) in self._containers:
            return value
        self._containers.add(id(value))
        try:
            if _is_mcp_object(value):
                value = value.model_dump(mode="json", by_alias=True, exclude_none=True)
            if isinstance(value, Mapping):
                is_mcp = _is_mcp(value)
                return self._mcp(value, depth) if is_mcp else self._mapping(value, depth)
            if type(value) in (list, tuple):
                return self._items(value, depth)
            return value
        except Exception:  # noqa: BLE001 - reading a custom container may raise anything
            return value
        finally:
            self._containers.discard(id(value))

    def _mapping(self, value: Mapping[Any, Any], depth: int) -> Any:
        walked = {key: self.value(item, depth + 1) for key, item in value.items()}
        if all(walked[key] is item for key, item in value.items()):
            return value
        rest = {key: item for key, item in walked.items() if item is not _REMOVED}
        return rest if rest or depth == 0 else _REMOVED

    def _items(self, value: list[Any] | tuple[Any, ...], depth: int) -> Any:
        if depth == 0 and _is_model_content(value):
            return self._parts(value, depth)
        walked = [self.value(item, depth + 1) for item in value]
        if all(one is other for one, other in zip(walked, value, strict=True)):
            return value
        rest = [item for item in walked if item is not _REMOVED]
        return rest if rest or depth == 0 else _REMOVED

    def _parts(self, parts: Sequence[types.Part | str | None], depth: int) -> Any:
        """Return the rest of a content: its texts, joined (S3-R08), or the response in it.

        A response keeps its payload and its files; other parts beside it are ignored (S3-R10).
        """
        responses = [p for p in parts if isinstance(p, types.Part) and p.function_response]
        if responses:
            if len(parts) > 1:
                logger.warning(
                    "a tool returned a function response; %d other parts are ignored",
                    len(parts) - 1,
                )
            return self.value(responses[0].function_response, depth)
        texts = [text for part in parts if (text := self._text_or_file(part)) is not None]
        return "\n".join(texts) if texts else _REMOVED

    def _text_or_file(self, part: types.Part | str | None) -> str | None:
        """Return the text of a part, or add its file; parts of other kinds are ignored."""
        if part is None or isinstance(part, str):
            return part
        if part.text is not None:
            return part.text
        self._add_file(part)
        return None

    def _tool_result(self, result: ToolResult) -> Any:
        self._extracted.files.extend(result.files)
        return result.response

    def _function_response(self, response: types.FunctionResponse, depth: int) -> Any:
        for part in response.parts or []:
            self.value(part, depth)
        payload = response.response or {}
        # ADK: a result that is not a mapping is wrapped under this key.
        wrapped = payload.get("result") if set(payload) == {"result"} else None
        return self.value(wrapped if isinstance(wrapped, ToolResult) else payload, depth)

    def _text(self, text: str) -> str:
        """Return a text, or a short one in place of a file in base64 (S0-R15)."""
        known = self._encoded.get(text)
        if known is not None:
            return known
        file = file_in_base64(text)
        if file is None:
            return text
        self._add_decoded(file)
        if _ATTACHED not in self._extracted.notes:
            self._extracted.notes.append(_ATTACHED)
        return self._encoded.setdefault(text, f"[attached: {file.media_type}]")

    def _add_decoded(self, file: Attachment) -> None:
        """Add a file, unless the result has it already: MCP servers often send it twice."""
        others = (one.data for one in self._extracted.files if isinstance(one, Attachment))
        if file.data not in others:
            self._extracted.files.append(file)

    def _mcp(self, value: Mapping[str, Any], depth: int) -> dict[str, Any]:
        """Extract the files of an MCP result.

        ADK: it passes the result in the form of the protocol, with media in base64.
        """
        rest = {**value, "content": [self._mcp_item(item) for item in value["content"]]}
        if "structuredContent" in rest:
            rest["structuredContent"] = self.value(rest["structuredContent"], depth + 1)
        # A server may repeat the structured content as JSON in a text.
        rest["content"] = [self._mcp_text(item) for item in rest["content"]]
        return rest

    def _mcp_text(self, item: dict[str, Any]) -> dict[str, Any]:
        text = item.get("text")
        if not isinstance(text, str) or len(text) < _LONG:
            return item
        for encoded, left in self._encoded.items():
            text = text.replace(encoded, left)
        return {**item, "text": self._text(text)}

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
            self._add_decoded(Attachment(data=data, media_type=kind, title=title))
            self._encoded.setdefault(text, f"[attached: {kind or 'a file'}]")
        except (binascii.Error, ValueError):
            self._problem("A file was left out: it is not what the protocol calls for.")

    def _problem(self, sentence: str) -> None:
        self._extracted.problems.append(sentence)


def _is_model_content(value: Sequence[object]) -> bool:
    """Whether a list holds the parts of a content, and texts among them."""
    return any(isinstance(item, types.Part) for item in value) and all(
        item is None or isinstance(item, types.Part | str) for item in value
    )


def _is_mcp(value: Mapping[Any, Any]) -> bool:
    content = value.get("content")
    if not isinstance(content, list) or not content:
        return False
    kinds = [item.get("type") if isinstance(item, dict) else None for item in content]
    if not all(isinstance(kind, str) and kind in _MCP_KINDS for kind in kinds):
        return False
    # Other protocols have content with types too, so one of these signs of MCP is required.
    return "isError" in value or not _MCP_MEDIA.isdisjoint(kinds) or "resource" in kinds


def _is_mcp_object(value: object) -> bool:
    return isinstance(value, BaseModel) and type(value).__name__ == "CallToolResult"


def is_native(result: object) -> bool:
    """Whether ADK itself extracts every file of a result, and the rest is storable.

    Such a result is left to ADK and to callbacks of the user, and `ResultFiles.replace_files`
    handles its event.
    """
    rest = _without_parts(result, 0)
    return rest is not result and as_storable(rest) is None


def _without_parts(value: object, depth: int) -> object:
    """Return what ADK leaves of a result; the value itself if it has no file."""
    if isinstance(value, types.Part):
        blob, file = value.inline_data, value.file_data
        has_file = blob is not None and bool(blob.data and blob.mime_type)
        has_file = has_file or (file is not None and bool(file.file_uri and file.mime_type))
        return None if has_file else value
    # ADK: files are extracted only near the top of a result.
    if depth > 1 or not isinstance(value, dict | list):
        return value
    keys = list(value) if isinstance(value, dict) else range(len(value))
    rest = {key: _without_parts(value[key], depth + 1) for key in keys}
    return value if all(rest[key] is value[key] for key in keys) else rest
