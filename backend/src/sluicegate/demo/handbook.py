"""The demo's handbook as text and PDF."""

from __future__ import annotations

from typing import Final

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
