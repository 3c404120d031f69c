"""Talks live with a scripted agent through the real Runner."""

from __future__ import annotations

import asyncio
import math
from array import array
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager

from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.live_request_queue import LiveRequestQueue
from google.adk.agents.run_config import RunConfig
from google.adk.events.event import Event
from google.adk.runners import Runner
from google.adk.sessions.base_session_service import BaseSessionService
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.genai import types

from tests.engine.loop_time import EVENT_TIMEOUT

APP = "talks"
RATE = 16_000


def tone(hz: float, seconds: float = 0.5, rate: int = RATE, loudness: int = 8000) -> bytes:
    count = int(seconds * rate)
    samples = array(
        "h", (round(loudness * math.sin(2 * math.pi * hz * i / rate)) for i in range(count))
    )
    return samples.tobytes()


def silence(seconds: float, rate: int = RATE) -> bytes:
    return bytes(2 * int(seconds * rate))


class Talk:
    """One live run: input goes into the queue, ``until`` reads the events."""

    def __init__(self, events: AsyncGenerator[Event, None], queue: LiveRequestQueue) -> None:
        self._events = events
        self.queue = queue
        self.events: list[Event] = []

    def say(self, text: str) -> None:
        self.queue.send_content(types.Content(role="user", parts=[types.Part(text=text)]))

    def speak(self, pcm: bytes, rate: int = RATE) -> None:
        size = rate // 10
        for start in range(0, len(pcm), size):
            blob = types.Blob(data=pcm[start : start + size], mime_type=f"audio/pcm;rate={rate}")
            self.queue.send_realtime(blob)

    async def until(self, seen: Callable[[Event], object]) -> list[Event]:
        """The events up to the first that is ``seen``; earlier ones are in ``events`` too."""
        fresh: list[Event] = []
        async with asyncio.timeout(EVENT_TIMEOUT):
            async for event in self._events:
                fresh.append(event)
                if seen(event):
                    break
        self.events += fresh
        return fresh

    async def turn(self) -> list[Event]:
        """The events of one model turn."""
        return await self.until(lambda event: event.turn_complete)

    async def flush(self) -> list[Event]:
        """All that still comes before the run ends by itself."""
        return await self.until(lambda event: False)


@asynccontextmanager
async def talk(
    root: BaseAgent,
    config: RunConfig | None = None,
    *,
    sessions: BaseSessionService | None = None,
) -> AsyncIterator[Talk]:
    """Open a live run of an agent; without ``config`` it sends audio and transcripts."""
    runner = Runner(
        app_name=APP,
        agent=root,
        session_service=sessions or InMemorySessionService(),
        auto_create_session=True,
    )
    queue = LiveRequestQueue()
    config = config or RunConfig(response_modalities=[types.Modality.AUDIO])
    events = runner.run_live(
        user_id="user", session_id="chat", live_request_queue=queue, run_config=config
    )
    try:
        yield Talk(events, queue)
    finally:
        await events.aclose()


def summary_of(events: list[Event]) -> list[str]:
    """Each event as one short text, in order.

    Texts end in "…" while they are partial; audio counts its milliseconds.
    """
    return [word for event in events for word in _words(event)]


def _words(event: Event) -> list[str]:
    more = "…" if event.partial else ""
    words = []
    for part in (event.content.parts if event.content else None) or []:
        if part.text:
            text = f"({part.text})" if part.thought else part.text
            words.append(text + more + ("!" if event.interrupted else ""))
        elif part.inline_data and (part.inline_data.mime_type or "").startswith("audio/"):
            words.append(f"audio {len(part.inline_data.data or b'') // 48}")
        elif part.inline_data:
            words.append(str(part.inline_data.mime_type))
        elif part.function_call:
            words.append(f"call {part.function_call.name}")
        elif part.function_response:
            words.append(f"result {part.function_response.name}")
        elif part.executable_code or part.code_execution_result:
            words.append("code")
    if event.input_transcription:
        words.append(f"you: {event.input_transcription.text}{more}")
    if event.output_transcription:
        words.append(f"me: {event.output_transcription.text}{more}")
    return words + _marks(event)


def _marks(event: Event) -> list[str]:
    marks = {
        "usage": event.usage_metadata,
        "sources": event.grounding_metadata,
        "handle": event.live_session_resumption_update,
        "activity": event.voice_activity,
        "interrupted": event.interrupted and not event.content and not event.turn_complete,
        "complete": event.turn_complete,
    }
    return [name for name, given in marks.items() if given]
