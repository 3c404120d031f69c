"""Talk to a live model with a real key: connect, speak, get a card, approve, print what came back.

``python scripts/live_check.py [--wav FILE] [--model-script FILE]``; the key is ``GOOGLE_API_KEY``.
Without a recording the request is typed. A script takes the place of Google, to try the check
itself.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import re
import sys
import tempfile
import time
import urllib.request
import wave
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from google.adk.agents import LlmAgent
from google.adk.tools.function_tool import FunctionTool
from websockets.asyncio.client import connect
from websockets.typing import Subprotocol

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

NO_KEY: Final = "Set GOOGLE_API_KEY to a key of the Gemini API; without one nothing is connected."
SUBPROTOCOL: Final = Subprotocol("sluicegate.live.v1")
RATE: Final = 16_000
PIECE: Final = RATE * 2 // 25
"""Bytes of 40 ms of sound, as a page sends them."""
START: Final = 90.0
"""Seconds in which the server must serve."""
PATIENCE: Final = 60.0
"""Seconds in which the whole conversation must have been held."""


def pay(recipient: str, amount: float) -> dict[str, Any]:
    """Pay an amount in euros to a recipient."""
    return {"recipient": recipient, "paid": amount}


root_agent = LlmAgent(
    name="cashier",
    model="gemini-3.5-flash",
    instruction="You pay people with the tool pay. Answer in one short sentence.",
    tools=[FunctionTool(pay, require_confirmation=True)],
)


class Check:
    """One conversation over a live socket; prints each thing that it sees."""

    def __init__(self, socket: ClientConnection, url: str) -> None:
        self._socket = socket
        self._url = url
        self._begun = time.monotonic()
        self._audio = 0
        self._is_approved = False
        self._speaking: asyncio.Task[None] | None = None

    def saw(self, what: str) -> None:
        """Print what came, and when."""
        print(f"{time.monotonic() - self._begun:6.1f} s  {what}", flush=True)

    async def hold(self, sound: bytes | None) -> None:
        """Speak, or type, and answer what comes until the approved payment was reported."""
        async for message in self._socket:
            if isinstance(message, bytes):
                self._audio += len(message)
                continue
            frame = json.loads(message)
            if frame["type"] == "ready":
                self.saw(f"ready, {frame['inputRate']} Hz in, {frame['outputRate']} Hz out")
                await self._ask(sound)
            elif frame["type"] == "transcript" and frame["final"]:
                self.saw(f"transcript of the {frame['role']}: {frame['text']}")
            elif frame["type"] == "turn":
                await self._send("resume", body={"messageId": frame["messageId"]})
            elif frame["type"] == "chunk" and self._is_done(frame["chunk"]):
                return
            elif frame["type"] == "chunk":
                await self._decide(frame["chunk"])
            elif frame["type"] == "error":
                raise ConnectionError(frame["errorText"])

    async def end(self) -> None:
        """Stop speaking."""
        if self._speaking is not None:
            self._speaking.cancel()
            await asyncio.wait([self._speaking])

    async def _ask(self, sound: bytes | None) -> None:
        if sound is None:
            parts = [{"type": "text", "text": "Pay 5 euros to Ada."}]
            messages = [{"id": "user-1", "role": "user", "parts": parts}]
            await self._send("send", trigger="submit-message", messages=messages, body={})
            self.saw("typed: Pay 5 euros to Ada.")
        else:
            self._speaking = asyncio.create_task(self._speak(sound))

    async def _speak(self, sound: bytes) -> None:
        """Send the recording as fast as it is spoken, then silence, as a microphone does."""
        self.saw(f"speaking for {len(sound) / RATE / 2:.1f} seconds")
        while True:
            await self._socket.send(sound[:PIECE].ljust(PIECE, b"\0"))
            sound = sound[PIECE:]
            await asyncio.sleep(0.04)

    async def _decide(self, chunk: dict[str, Any]) -> None:
        if chunk["type"] == "tool-input-available":
            self.saw(f"call of {chunk['toolName']}: {json.dumps(chunk['input'])}")
        if chunk["type"] == "tool-approval-request" and not self._is_approved:
            self._is_approved = True
            self.saw("card: the call waits for an approval")
            await asyncio.to_thread(self._approve, chunk["approvalId"])
            self.saw("approved over HTTP")

    def _approve(self, approval_id: str) -> None:
        request = urllib.request.Request(
            f"{self._url}/api/approvals/{approval_id}",
            data=json.dumps({"approved": True}).encode(),
            headers={"content-type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=PATIENCE):
            pass

    def _is_done(self, chunk: dict[str, Any]) -> bool:
        if chunk["type"] == "tool-output-available":
            self.saw(f"result: {json.dumps(chunk['output'])}")
        if chunk["type"] == "text-delta":
            self.saw(f"answer: {chunk['delta']}")
        if not (self._is_approved and chunk["type"] == "finish"):
            return False
        if chunk["finishReason"] == "tool-calls":
            return False
        self.saw(f"finished; {self._audio / 48_000:.1f} seconds of sound were received")
        return True

    async def _send(self, kind: str, **fields: Any) -> None:
        request_id = f"{kind}-{time.monotonic_ns()}"
        frame = {"type": kind, "requestId": request_id, "id": "check", "headers": {}, **fields}
        await self._socket.send(json.dumps(frame))


def sound_of(path: str) -> bytes:
    """Return the samples of a recording: PCM16, mono, 16 kHz."""
    with wave.open(path, "rb") as file:
        if (file.getnchannels(), file.getsampwidth(), file.getframerate()) != (1, 2, RATE):
            raise SystemExit(f"{path} must be PCM16, mono, {RATE} Hz.")
        return file.readframes(file.getnframes())


async def url_of(output: asyncio.StreamReader) -> str:
    """Return the URL in the first line of the server."""
    try:
        line = await asyncio.wait_for(output.readline(), START)
    except TimeoutError:
        raise ConnectionError(f"the server does not serve within {START:g} s") from None
    url: str = re.findall(r"http://[\w.:]+", line.decode())[0]
    return url


async def check(options: argparse.Namespace, folder: str) -> None:
    """Serve the agent, and hold one conversation with it."""
    more = ["--model-script", options.model_script] if options.model_script else []
    server = await asyncio.create_subprocess_exec(
        *(Path(sys.executable).with_name("sluicegate"), "serve", f"{__file__}:root_agent"),
        *("--port", "0", "--no-page", "--log-level", "error"),
        *("--sessions", f"sqlite+aiosqlite:///{folder}/check.db"),
        *("--artifacts", f"file:{folder}/files", *more),
        stdout=asyncio.subprocess.PIPE,
    )
    assert server.stdout is not None
    try:
        url = await url_of(server.stdout)
        async with asyncio.timeout(PATIENCE):
            address = f"{url.replace('http', 'ws', 1)}/api/live?chat=check"
            async with connect(address, subprotocols=[SUBPROTOCOL], proxy=None) as socket:
                sound = sound_of(options.wav) if options.wav else None
                conversation = Check(socket, url)
                await conversation.hold(sound)
                await conversation.end()
    finally:
        with contextlib.suppress(ProcessLookupError):
            server.terminate()
        await server.wait()


def main() -> int:
    """Run the check; the exit code is 0 if the payment was approved and reported."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wav", help="a recording of a person who asks to pay somebody")
    parser.add_argument("--model-script", help="a script in place of Google's models")
    options = parser.parse_args()
    if not (options.model_script or os.environ.get("GOOGLE_API_KEY")):
        print(NO_KEY)
        return 0
    try:
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(check(options, folder))
    except (ConnectionError, TimeoutError) as error:
        print(f"The conversation did not end: {error or f'nothing more in {PATIENCE:g} s'}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
