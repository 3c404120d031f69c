"""The demo's handbook as text and PDF, and the tool that reads it or an attachment."""

from __future__ import annotations

from typing import Final, Literal

from google.adk.tools.tool_context import ToolContext
from google.genai import types

from sluicegate.errors import ToolError
from sluicegate.media import Attachment, ToolResult
from sluicegate.wire.stored_files import StoredFile, parse_file_uri

TITLE: Final = "handbook.pdf"
LINES: Final = (
    "Handbook of the sluice gate",
    "1. The gate stays closed until somebody says yes.",
    "2. Who opens it signs with a name and a time.",
    "3. What has gone through once does not go through again.",
    "4. In doubt, ask the miller.",
)

_LEFT: Final = 72
_TOP: Final = 720
_LEADING: Final = 24


def handbook_text() -> str:
    """Return the lines of the handbook."""
    return "\n".join(LINES)


def handbook_pdf() -> bytes:
    """Return one page in Letter size; the bytes are always the same."""
    shown = " T* ".join(f"({_escaped(line)}) Tj" for line in LINES)
    content = f"BT /F1 14 Tf {_LEADING} TL {_LEFT} {_TOP} Td {shown} ET".encode("ascii")
    bodies = (
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R "
        b"/Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    )
    pdf = bytearray(b"%PDF-1.4\n")
    offsets: list[int] = []
    for number, body in enumerate(bodies, start=1):
        offsets.append(len(pdf))
        pdf += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = len(pdf)
    pdf += b"xref\n0 %d\n0000000000 65535 f \n" % (len(bodies) + 1)
    pdf += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    pdf += b"trailer\n<< /Size %d /Root 1 0 R >>\n" % (len(bodies) + 1)
    return bytes(pdf + b"startxref\n%d\n%%%%EOF\n" % table)


def _escaped(line: str) -> str:
    return line.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")


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
