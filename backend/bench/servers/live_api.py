"""A Live API over TLS that answers at once: ``python -m bench.servers.live_api FOLDER``.

The folder holds the certificate. It prints its URL, and a line with the time for each call and
each result.

* Audio comes back as it is. Its first bytes are a `HEAD`: a frame of the kind `LAST` ends the turn.
* Text gets a call of ``pay``, and its result one word.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import json
import struct
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from websockets.asyncio.server import serve
from websockets.exceptions import ConnectionClosed

from tests.live.google.certificates import Certificates

if TYPE_CHECKING:
    from websockets.asyncio.server import ServerConnection

API_URL: Final = "BENCH_LIVE_API"
"""The variable that holds the URL."""
MODEL: Final = "gemini-3.8-live"
KEY: Final = "of-the-benchmark"
HEAD: Final = struct.Struct("<di")
"""The time at which a frame was sent, by the clock that all processes share, and its kind."""
MORE, LAST = 0, 1

_HEAD_TEXT: Final = (HEAD.size + 2) // 3 * 4
_FRAMES_PER_WORD: Final = 10
_CALLS: Final = itertools.count(1)


async def _serve_one(socket: ServerConnection) -> None:
    session = _Session(socket)
    with contextlib.suppress(ConnectionClosed):
        async for data in socket:
            await session.receive(json.loads(data))


class _Session:
    """One connection."""

    def __init__(self, socket: ServerConnection) -> None:
        self._socket = socket
        self._frames = 0

    async def receive(self, message: dict[str, Any]) -> None:
        if "setup" in message:
            await self._send({"setupComplete": {}})
            return
        given = message.get("realtime_input") or message.get("realtimeInput") or {}
        if "audio" in given:
            await self._answer(given["audio"]["data"])
        elif "text" in given or "client_content" in message or "clientContent" in message:
            await self._call()
        results = message.get("tool_response") or message.get("toolResponse")
        if results is not None:
            print("answered", time.perf_counter(), flush=True)
            await self._content({"outputTranscription": {"text": "Paid."}})
            await self._complete()

    async def _answer(self, data: str) -> None:
        if self._frames == 0:
            await self._content({"inputTranscription": {"text": "Go on."}})
        blob = {"mimeType": "audio/pcm;rate=24000", "data": data}
        await self._content({"modelTurn": {"role": "model", "parts": [{"inlineData": blob}]}})
        if self._frames % _FRAMES_PER_WORD == 0:
            await self._content({"outputTranscription": {"text": " word"}})
        self._frames += 1
        _, kind = HEAD.unpack(base64.urlsafe_b64decode(data[:_HEAD_TEXT])[: HEAD.size])
        if kind == LAST:
            self._frames = 0
            await self._complete()

    async def _call(self) -> None:
        call = {"id": f"call-{next(_CALLS)}", "name": "pay", "args": {"amount": 5}}
        print("called", time.perf_counter(), flush=True)
        await self._send({"toolCall": {"functionCalls": [call]}})

    async def _complete(self) -> None:
        await self._content({"generationComplete": True})
        await self._content({"turnComplete": True})

    async def _content(self, content: dict[str, Any]) -> None:
        await self._send({"serverContent": content})

    async def _send(self, message: dict[str, Any]) -> None:
        await self._socket.send(json.dumps(message))


async def _main(folder: Path) -> None:
    files = Certificates(folder / "authority.pem", folder / "server.pem", folder / "key.pem")
    context = files.server_context()
    async with serve(_serve_one, "localhost", 0, ssl=context, compression=None) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        print(f"https://localhost:{port}", flush=True)
        await server.serve_forever()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_main(Path(sys.argv[1])))
