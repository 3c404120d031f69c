"""The tool that reads the handbook, or the file that the user has attached last."""

from __future__ import annotations

from typing import Final, Literal

from google.adk.tools.tool_context import ToolContext
from google.genai import types

from sluicegate.demo.handbook import TITLE, handbook_pdf, handbook_text
from sluicegate.errors import ToolError
from sluicegate.media import Attachment, ToolResult
from sluicegate.wire.stored_files import StoredFile, parse_file_uri

Source = Literal["handbook", "attachment"]

ORIGINALS: Final = ("application/pdf", "image/png", "image/jpeg")
"""Media types of documents whose original can be returned; of others only the text."""


async def read_document(
    tool_context: ToolContext, source: Source = "handbook", *, return_original: bool = False
) -> ToolResult:
    """Read the handbook, or the file that the user attached last; its text, or the original."""
    if source == "handbook":
        if not return_original:
            return ToolResult([handbook_text()])
        return ToolResult([f"This is {TITLE}.", Attachment(data=handbook_pdf(), title=TITLE)])
    file = _last_attachment(tool_context)
    if return_original and file.media_type in ORIGINALS:
        # The file is stored already: the reference is enough.
        return ToolResult([f"This is {file.title or 'the file'}.", file])
    return ToolResult([await _text(file, tool_context)])


def _last_attachment(context: ToolContext) -> StoredFile:
    for event in reversed(context.session.events):
        if event.author != "user" or event.content is None:
            continue
        for part in reversed(event.content.parts or []):
            data = part.file_data
            file = parse_file_uri(data.file_uri or "", data.mime_type) if data is not None else None
            if file is not None:
                return file
    raise ToolError("There is no attached file; attach one and ask again.")


async def _text(file: StoredFile, context: ToolContext) -> str:
    if not file.media_type.startswith("text/") and file.media_type != "application/json":
        raise ToolError(f"No text can be read from {file.media_type}; ask for the original.")
    part: types.Part | None = await context.load_artifact(file.name)
    blob = part.inline_data if part is not None else None
    if blob is None or blob.data is None:
        raise ToolError("The attached file is no longer there; attach it again.")
    return blob.data.decode("utf-8", "replace")
