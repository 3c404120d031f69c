"""The tools that the conformance suite of MCP calls, as the functions of a worker."""

from __future__ import annotations

import asyncio
import struct
import zlib
from collections.abc import AsyncIterator
from typing import Any

from sluicegate.errors import ToolError
from sluicegate.media import Attachment


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


_PIXEL = _chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0))
_PNG = (
    b"\x89PNG\r\n\x1a\n" + _PIXEL + _chunk(b"IDAT", zlib.compress(b"\0\0")) + _chunk(b"IEND", b"")
)
_WAV = (
    b"RIFF\x26\0\0\0WAVEfmt \x10\0\0\0"
    + struct.pack("<HHIIHH", 1, 1, 8000, 16000, 2, 16)
    + b"data\x02\0\0\0\0\0"
)


def test_simple_text() -> str:
    """Return text."""
    return "This is a simple text response for testing."


def test_image_content() -> Attachment:
    """Return an image."""
    return Attachment(data=_PNG)


def test_audio_content() -> Attachment:
    """Return audio."""
    return Attachment(data=_WAV, media_type="audio/wav")


def test_embedded_resource() -> Attachment:
    """Return a file."""
    return Attachment(data=b"%PDF-1.4\n", media_type="application/pdf", title="test.pdf")


def test_multiple_content_types() -> dict[str, Any]:
    """Return text, an image and a file."""
    return {"text": "Several.", "image": test_image_content(), "file": test_embedded_resource()}


def test_error_handling() -> str:
    """Fail."""
    raise ToolError("This tool intentionally returns an error for testing")


async def test_tool_with_progress() -> AsyncIterator[str]:
    """Report on the way."""
    for percent in (0, 50, 100):
        yield f"{percent} %"
        await asyncio.sleep(0)
    yield "Done."
