"""Valid and invalid frames of RFC 6455 as bytes, and the replies of a server."""

from __future__ import annotations

import asyncio
import json

from tests.server.exchange import PATIENCE, RawConnection

HEAD = (
    b"GET /api/chat/ws HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\n"
    b"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
CONTINUATION, TEXT, BINARY = 0x0, 0x1, 0x2
CLOSE, PING, PONG = 0x8, 0x9, 0xA
MASK = bytes.fromhex("37fa213d")


def frame(
    opcode: int, payload: bytes = b"", *, fin: bool = True, rsv: int = 0, mask: bytes | None = MASK
) -> bytes:
    """A frame of a client with the shortest length; ``rsv`` are the three reserved bits."""
    size = len(payload)
    if size < 126:
        length = bytes([size])
    elif size < 65536:
        length = b"\x7e" + size.to_bytes(2, "big")
    else:
        length = b"\x7f" + size.to_bytes(8, "big")
    return with_length(opcode | fin << 7 | rsv << 4, length, payload, mask)


def with_length(first: int, length: bytes, payload: bytes, mask: bytes | None = MASK) -> bytes:
    """A frame with the given first byte and length, whether they are correct or not."""
    if mask is None:
        return bytes([first]) + length + payload
    masked = bytes(byte ^ mask[index % 4] for index, byte in enumerate(payload))
    return bytes([first, length[0] | 0x80]) + length[1:] + mask + masked


def cut(opcode: int, *pieces: bytes) -> list[bytes]:
    """A fragmented message."""
    last = len(pieces) - 1
    return [
        frame(opcode if index == 0 else CONTINUATION, piece, fin=index == last)
        for index, piece in enumerate(pieces)
    ]


def close(code: int, reason: bytes = b"") -> bytes:
    """A close frame."""
    return frame(CLOSE, code.to_bytes(2, "big") + reason)


def question(request_id: str, padding: str = "") -> bytes:
    """A message without effect that the server answers with an error and its id."""
    text = {"type": "ping", "requestId": request_id, "padding": padding}
    return json.dumps(text, ensure_ascii=False).encode()


async def read_replies(raw: RawConnection, *, until: str) -> list[str]:
    """One word for each frame of the server, up to ``until`` or to the end of the connection.

    A close is answered with one: only then does the server end the connection.
    """
    words: list[str] = []
    async with asyncio.timeout(PATIENCE):
        while until not in words:
            try:
                words.append(await _describe(raw.reader))
                if words[-1].startswith("close"):
                    await raw.write(frame(CLOSE))
            except (asyncio.IncompleteReadError, ConnectionError):
                return [*words, "gone"]
    return words


async def _describe(reader: asyncio.StreamReader) -> str:
    first, length = await reader.readexactly(2)
    assert first & 0x70 == 0, "a server sets no reserved bit"
    assert length & 0x80 == 0, "a server masks nothing"
    if length >= 126:
        length = int.from_bytes(await reader.readexactly(2 if length == 126 else 8), "big")
    payload = await reader.readexactly(length)
    match first & 0x0F:
        case 0x1:
            return "answer " + str(json.loads(payload)["requestId"])
        case 0x8:
            return f"close {int.from_bytes(payload[:2], 'big')}" if payload else "close"
        case 0xA:
            return f"pong {payload.decode()}".strip()
        case other:
            return f"opcode {other}"
