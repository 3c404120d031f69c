"""A tool that returns files of every kind, by name."""

from __future__ import annotations

import base64
from typing import Any, Final

from google.adk.tools.function_tool import FunctionTool
from google.genai import types

from sluicegate import ToolResult
from sluicegate.demo.png_bar_chart import Colour
from sluicegate.media import Attachment
from tests.media import samples

FILES: Final[dict[str, tuple[bytes, str]]] = {
    "jpeg": (samples.JPEG, "image/jpeg"),
    "gif": (samples.GIF, "image/gif"),
    "webp": (samples.WEBP, "image/webp"),
    "bmp": (samples.BMP, "image/bmp"),
    "svg": (samples.SVG, "image/svg+xml"),
    "pdf": (samples.PDF, "application/pdf"),
    "text": (samples.TEXT, "text/plain"),
    "csv": (samples.CSV, "text/csv"),
    "wav": (samples.WAV, "audio/wav"),
    "mp4": (samples.MP4, "video/mp4"),
    "docx": (samples.ZIP, samples.DOCX_TYPE),
}
COLOURS: Final[tuple[Colour, ...]] = ("blue", "green", "orange", "purple", "red")
LINKS: Final[dict[str, types.FileData]] = {
    "web": types.FileData(file_uri="https://a.example/b.png", mime_type="image/png"),
    "bucket": types.FileData(file_uri="gs://a/b.png", mime_type="image/png"),
    "google": types.FileData(
        file_uri="https://generativelanguage.googleapis.com/v1beta/files/a", mime_type="image/png"
    ),
}
OTHERS: Final[dict[str, Any]] = {
    "string": "plain words",
    "nothing": None,
    "number": 7,
    "mapping": {"rows": 3},
    "lie": types.Part(inline_data=types.Blob(data=samples.JPEG, mime_type="image/png")),
    "failure": ToolResult(["It went wrong."], status="error"),
    "mixed": ToolResult(
        ["Two files.", Attachment(data=samples.PDF, title="report.pdf"), {"pages": 1}]
    ),
    "everything": ToolResult(
        [
            "Text, picture and file.",
            types.Blob(data=samples.JPEG, mime_type="image/jpeg"),
            {"rows": 3},
            Attachment(data=samples.PDF, title="report.pdf", description="Sales by quarter"),
        ]
    ),
    "answer": types.FunctionResponse(
        id="another",
        name="another",
        response={"rows": 3},
        parts=[
            types.FunctionResponsePart.from_bytes(data=samples.PDF, mime_type="application/pdf")
        ],
    ),
    "mcp": {
        "content": [
            {"type": "text", "text": "A picture."},
            {
                "type": "image",
                "data": base64.b64encode(samples.JPEG).decode(),
                "mimeType": "image/jpeg",
            },
        ],
        "isError": False,
    },
    "passed": [
        types.Part(
            function_response=types.FunctionResponse(
                id="another", name="another", response={"rows": 3}
            )
        ),
        types.Part(text="ignored"),
    ],
    "texts": [types.Part(text="first"), types.Part(text="second")],
    "several": [
        types.Part(text="Three pictures."),
        *(
            types.Part(inline_data=types.Blob(data=samples.chart(c), mime_type="image/png"))
            for c in COLOURS[:3]
        ),
    ],
}
KINDS: Final = (*FILES, *LINKS, *OTHERS, *COLOURS)


def made(kind: str) -> Any:
    """The result of the tool for a kind."""
    if kind in FILES:
        data, media_type = FILES[kind]
        return types.Part(inline_data=types.Blob(data=data, mime_type=media_type))
    if kind in LINKS:
        return ToolResult([LINKS[kind]])
    if kind in OTHERS:
        return OTHERS[kind]
    picture = types.Blob(data=samples.chart(kind), mime_type="image/png")
    return ToolResult([f"A {kind} chart.".upper(), picture])


def maker(*, gated: bool = False) -> FunctionTool:
    """The tool, named ``make``."""

    def make(kind: str) -> Any:
        """Make something."""
        return made(kind)

    return FunctionTool(make, require_confirmation=gated)
