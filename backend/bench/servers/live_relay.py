"""The minimal live server: frames of audio between a socket and Google's own client."""

from __future__ import annotations

import asyncio
import contextlib
import os
from typing import TYPE_CHECKING

from google import genai
from google.genai import types
from starlette.applications import Starlette
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from bench.servers.live_api import API_URL, KEY, MODEL

if TYPE_CHECKING:
    from google.genai.live import AsyncSession
    from starlette.types import ASGIApp


def build() -> ASGIApp:
    """Return the application."""
    options = types.HttpOptions(base_url=os.environ[API_URL])
    client = genai.Client(api_key=KEY, http_options=options)
    config = types.LiveConnectConfig(
        response_modalities=[types.Modality.AUDIO],
        input_audio_transcription=types.AudioTranscriptionConfig(),
        output_audio_transcription=types.AudioTranscriptionConfig(),
    )

    async def live(socket: WebSocket) -> None:
        await socket.accept(subprotocol=socket.scope["subprotocols"][0])
        async with client.aio.live.connect(model=MODEL, config=config) as session:
            await socket.send_text('{"type":"ready"}')
            answering = asyncio.create_task(_answer(session, socket))
            with contextlib.suppress(WebSocketDisconnect):
                while True:
                    data = await socket.receive_bytes()
                    blob = types.Blob(data=data, mime_type="audio/pcm;rate=16000")
                    await session.send_realtime_input(audio=blob)
            answering.cancel()

    return Starlette(routes=[WebSocketRoute("/api/live", live)])


async def _answer(session: AsyncSession, socket: WebSocket) -> None:
    while True:
        async for message in session.receive():
            content = message.server_content
            turn = content and content.model_turn
            for part in (turn and turn.parts) or ():
                if part.inline_data is not None and part.inline_data.data is not None:
                    await socket.send_bytes(part.inline_data.data)
            if content is not None and content.turn_complete:
                await socket.send_text('{"type":"turn-complete"}')
