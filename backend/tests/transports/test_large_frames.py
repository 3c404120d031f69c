"""The memory that a frame with one large attachment needs, beside that of an HTTP body."""

from __future__ import annotations

import asyncio
import base64
import gc
import json
import os
import struct
import tracemalloc
from typing import Any

from tests.server.exchange import PATIENCE, serving
from tests.server.fake_engine import FakeEngine, application
from tests.transports.socket_client import send_frame

MIB = 2**20
LARGE = 10 * MIB
PIECE = 64 * 1024
UPGRADE = (
    "GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
    "sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


def with_file(body: dict[str, Any]) -> bytes:
    """The body with a picture of 10 MiB in its message, and a message before it."""
    data = base64.b64encode(b"\x89PNG\r\n\x1a\n" + os.urandom(LARGE - 8)).decode()
    file = {"type": "file", "mediaType": "image/png", "url": f"data:image/png;base64,{data}"}
    message = {"id": "u1", "role": "user", "parts": [file]}
    earlier = {"id": "u0", "role": "user", "parts": [{"type": "text", "text": "Hi"}]}
    whole = {**body, "id": "c1", "trigger": "submit-message", "messages": [earlier, message]}
    return json.dumps(whole).encode()


def as_frame(payload: bytes) -> bytes:
    """A text message of a client, masked with zeros."""
    return b"\x81\xff" + struct.pack("!Q", len(payload)) + bytes(4) + payload


async def peak_of(path: str, head: bytes, sent: bytes, answer: bytes) -> tuple[float, float]:
    """MiB at the peak of a request, and those that an open connection keeps after the answer."""
    engine = FakeEngine()
    async with asyncio.timeout(PATIENCE), serving(application(engine)) as address:
        reader, writer = await asyncio.open_connection(*address)
        if path:
            writer.write(UPGRADE.format(path=path).encode())
            await reader.readuntil(b"\r\n\r\n")
        gc.collect()
        tracemalloc.start()
        try:
            before = tracemalloc.get_traced_memory()[0]
            writer.write(head)
            for start in range(0, len(sent), PIECE):
                writer.write(sent[start : start + PIECE])
                await writer.drain()
            await reader.readuntil(answer)
            peak = tracemalloc.get_traced_memory()[1] - before
            engine.calls.clear()
            kept = tracemalloc.get_traced_memory()[0] - before
        finally:
            tracemalloc.stop()
        writer.close()
    return peak / MIB, kept / MIB


async def test_a_frame_with_a_large_file_takes_no_more_memory_than_a_body() -> None:
    body = with_file({})
    head = (
        "POST /api/chat HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
        f"content-length: {len(body)}\r\n\r\n"
    )
    over_http, _ = await peak_of("", head.encode(), body, b"[DONE]")
    frame = as_frame(with_file(send_frame()))
    over_socket, kept = await peak_of("/api/chat/ws", b"", frame, b'"end"')
    assert over_socket < over_http + 4
    assert kept < 1
