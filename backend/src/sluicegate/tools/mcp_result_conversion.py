"""Conversion of tool results to MCP and back: JSON as data, files as MCP content (S1-R34)."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from mimetypes import guess_type
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from mcp import types as mcp
from pydantic_core import to_jsonable_python

from sluicegate.errors import MediaError, ToolError
from sluicegate.media.attachments_and_links import Attachment, FileSource, Link
from sluicegate.media.extract_result_files import extract_files
from sluicegate.media.file_inspection import check_media_type
from sluicegate.media.tool_result_with_files import MAX_FILE_BYTES
from sluicegate.tools.worker_call_metadata import TITLE_KEY

if TYPE_CHECKING:
    from collections.abc import Mapping

_BYTES = bytes | bytearray | memoryview


def result_to_mcp(value: object) -> mcp.CallToolResult:
    """Convert a function's result to MCP; bytes become files and never stand in JSON.

    Raises:
        ToolError: It is neither JSON nor a file, or a file cannot be sent.
    """
    extracted = extract_files(_wrap_bytes(value))
    if extracted.problems:
        raise ToolError(extracted.problems[0])
    try:
        data = to_jsonable_python(extracted.response, inf_nan_mode="null")
    except (ValueError, TypeError, RecursionError):
        raise ToolError("The tool returned something that is neither JSON nor a file.") from None
    structured = data if isinstance(data, dict) else {"result": data}
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    blocks: list[mcp.ContentBlock] = [mcp.TextContent(type="text", text=text)]
    blocks += [_content_block(file) for file in extracted.files]
    return mcp.CallToolResult(content=blocks, structured_content=structured)


def result_from_mcp(result: mcp.CallToolResult) -> Any:
    """Convert a worker's result to what a tool of this process returns, files as attachments.

    Nothing is lost: text that structured content does not repeat, links without a known type, and
    fields of the worker's own are kept beside each other.
    """
    content = _Content()
    for block in result.content:
        content.add(block)
    structured = result.structured_content
    if structured is None:
        response: dict[str, Any] = {"result": "\n".join(content.texts)}
    else:
        response = dict(structured) if isinstance(structured, dict) else {"result": structured}
        if not _repeats(content.texts, response):
            response[_unused("text", response)] = "\n".join(content.texts)
    if content.links:
        response[_unused("links", response)] = content.links
    if content.files:
        response[_unused("files", response)] = content.files
    return response


@dataclass(slots=True)
class _Content:
    """The unstructured content of a result by what becomes of it."""

    files: list[FileSource] = field(default_factory=list)
    links: list[dict[str, str]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def add(self, block: mcp.ContentBlock) -> None:
        """Read a block."""
        match block:
            case mcp.TextContent():
                self.texts.append(block.text)
            case mcp.ImageContent() | mcp.AudioContent():
                self.files.append(_attachment(block.data, block.mime_type, _title(block.meta)))
            case mcp.EmbeddedResource(resource=mcp.BlobResourceContents() as resource):
                self.files.append(
                    _attachment(resource.blob, resource.mime_type, _title(block.meta))
                )
            case mcp.EmbeddedResource(resource=mcp.TextResourceContents() as resource):
                self.texts.append(resource.text)
            case mcp.ResourceLink():
                self._add_link(block)

    def _add_link(self, link: mcp.ResourceLink) -> None:
        title = link.title or link.name
        media_type = link.mime_type or _guessed_type(link.uri)
        if media_type is None:
            self.links.append({"uri": link.uri, "name": title})
        else:
            self.files.append(Link(link.uri, media_type, title))


def _guessed_type(uri: str) -> str | None:
    try:
        return guess_type(urlsplit(uri).path)[0]
    except ValueError:
        return None


def _unused(name: str, response: dict[str, Any]) -> str:
    while name in response:
        name += "_"
    return name


def _repeats(texts: list[str], response: dict[str, Any]) -> bool:
    """Whether texts say only what the structured content says, which MCP recommends."""
    plain = response.get("result") if set(response) == {"result"} else None
    read = [_json(text) for text in texts]
    return not any(texts) or read == [response] or read in ([plain], plain) or texts == [plain]


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def error_text(result: mcp.CallToolResult) -> str:
    """Return the public sentence of an error result."""
    texts = [block.text for block in result.content if isinstance(block, mcp.TextContent)]
    return " ".join(" ".join(texts).split())[:500] or "The tool failed."


def _wrap_bytes(value: object) -> object:
    """Wrap bytes as attachments, in plain dicts, lists and tuples."""
    if isinstance(value, _BYTES):
        return Attachment(data=bytes(value)) if value else ""
    if type(value) is dict:
        return {key: _wrap_bytes(item) for key, item in value.items()}
    if type(value) in (list, tuple) and isinstance(value, list | tuple):
        return type(value)(_wrap_bytes(item) for item in value)
    return value


def _content_block(file: FileSource) -> mcp.ContentBlock:
    if isinstance(file, Link):
        name = file.title or file.uri.rpartition("/")[2] or "file"
        return mcp.ResourceLink(
            type="resource_link", uri=file.uri, name=name, mime_type=file.media_type
        )
    if not isinstance(file, Attachment):
        raise ToolError("A file of a chat cannot be returned by a worker; return its bytes.")
    data = _read(file)
    try:
        media_type = check_media_type(data, file.media_type)
    except MediaError as error:
        raise ToolError(str(error)) from None
    encoded = base64.b64encode(data).decode("ascii")
    meta: dict[str, Any] | None = {TITLE_KEY: file.title} if file.title else None
    kind = media_type.partition("/")[0]
    if kind == "image":
        return mcp.ImageContent(type="image", data=encoded, mime_type=media_type, _meta=meta)
    if kind == "audio":
        return mcp.AudioContent(type="audio", data=encoded, mime_type=media_type, _meta=meta)
    uri = f"attachment:///{quote(file.title or 'file', safe='')}"
    resource = mcp.BlobResourceContents(uri=uri, mime_type=media_type, blob=encoded)
    return mcp.EmbeddedResource(type="resource", resource=resource, _meta=meta)


def _read(file: Attachment) -> bytes:
    if file.data is None:
        try:
            with Path(file.path or "").open("rb") as opened:
                data = opened.read(MAX_FILE_BYTES + 1)
        except (OSError, ValueError):
            raise ToolError("A file that the tool returned cannot be read.") from None
    else:
        data = file.data
    if len(data) > MAX_FILE_BYTES:
        raise ToolError(f"A file that the tool returned is over {MAX_FILE_BYTES:,} bytes.")
    return data


def _attachment(encoded: str, media_type: str | None, title: str | None) -> Attachment:
    try:
        data = base64.b64decode(encoded, validate=True)
        return Attachment(data=data, media_type=media_type, title=title)
    except ValueError:
        raise ToolError("The tool sent a file that cannot be read.") from None


def _title(meta: Mapping[str, Any] | None) -> str | None:
    title = (meta or {}).get(TITLE_KEY)
    return title[:200] if isinstance(title, str) and title.isprintable() else None
