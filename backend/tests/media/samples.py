"""Small files of every kind with valid first bytes; the PNG is a complete image."""

from __future__ import annotations

from functools import cache

from sluicegate.demo.png_bar_chart import Colour, bar_chart


@cache
def chart(colour: Colour) -> bytes:
    """A picture with bars of one colour."""
    return bar_chart([1, 2, 3], colour)


PNG = bar_chart([1, 2, 3], "green")
JPEG = b"\xff\xd8\xff\xe0\0\x10JFIF\0" + bytes(8)
GIF = b"GIF89a" + bytes(10)
WEBP = b"RIFF\x10\0\0\0WEBPVP8 " + bytes(8)
BMP = b"BM\x3a\0\0\0" + bytes(4) + b"\x36\0\0\0" + bytes(8)
PDF = b"%PDF-1.4\n1 0 obj\n<<>>\nendobj\n%%EOF\n"
WAV = b"RIFF\x24\0\0\0WAVEfmt " + bytes(16)
MP3 = b"ID3\x04\0\0\0\0\0\0" + bytes(8)
MP4 = b"\0\0\0\x18ftypisom" + bytes(12)
WEBM = b"\x1aE\xdf\xa3" + bytes(12)
HEIC = b"\0\0\0\x18ftypheic" + bytes(12)
ZIP = b"PK\x03\x04" + bytes(26)
SVG = b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>"
HTML = b"<!doctype html><script>alert(1)</script>"
TEXT = "naïve text\n".encode()
CSV = b"quarter,sales\n1,12\n"
JSON = b'{"rows": [1, 2]}'
DOCX_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
