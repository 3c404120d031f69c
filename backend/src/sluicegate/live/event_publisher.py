"""Publishes the events of a live run: audio at once, events to their turns, and transcripts."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from google.genai import types

from sluicegate.engine.chat_titles import title_of
from sluicegate.live.output_audio_fast_lane import audio_of
from sluicegate.wire.live_frames import InterruptedFrame, TranscriptFrame, TurnCompleteFrame

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Literal, TypeAlias

    from google.adk.events.event import Event

    from sluicegate.live.context import LiveContext
    from sluicegate.live.event_router import EventRouter, Route
    from sluicegate.live.exchange import LiveExchange
    from sluicegate.live.exchange_queue import ExchangeQueue
    from sluicegate.live.output_audio_fast_lane import AudioLane

    Heard: TypeAlias = Callable[[LiveExchange, Literal["user", "assistant"], str, bool], None]


class EventPublisher:
    """Publishes the events of a run: audio at once, events to their turns, and transcripts."""

    def __init__(
        self,
        context: LiveContext,
        router: EventRouter,
        exchange_queue: ExchangeQueue,
        heard: Heard,
        lane: AudioLane,
    ) -> None:
        """``heard`` gets what is said: the words of an utterance so far, and whether it is over."""
        self._heard = heard
        self._lane = lane
        self._context = context
        self._router = router
        self._publisher = exchange_queue
        self._silence: asyncio.TimerHandle | None = None

    def publish(self, event: Event) -> None:
        """Publish a stored event, and those that were to follow it."""
        for stored, route in self._router.stored(event):
            self._publish(stored, route)

    def close(self) -> None:
        """Publish nothing more."""
        if self._silence is not None:
            self._silence.cancel()

    def _publish(self, event: Event, route: Route) -> None:
        outbox, exchange = self._context.outbox, route.exchange
        has_audio = self._play(event)
        if exchange is not None:
            if has_audio or route.feed is not None:
                exchange.has_begun.set()
            self._transcribe(exchange, "user", event.input_transcription)
            self._transcribe(exchange, "assistant", event.output_transcription)
        if route.feed is not None:
            route.feed.put(event)
        if event.interrupted:
            outbox.discard_audio()
            outbox.send(InterruptedFrame())
        if event.turn_complete:
            outbox.send(TurnCompleteFrame())
        if route.ends is not None:
            route.ends.end(stopped=route.stopped)
        if exchange is not None:
            self._publisher.announce(exchange)
        self._watch_silence()

    def _play(self, event: Event) -> bool:
        """Return whether the event has audio."""
        blobs = list(audio_of(event.content))
        for blob in blobs:
            self._context.outbox.send_audio(blob.data or b"")
        if blobs:
            self._lane.left_runner()
        return bool(blobs)

    def _transcribe(
        self,
        exchange: LiveExchange,
        role: Literal["user", "assistant"],
        transcription: types.Transcription | None,
    ) -> None:
        if transcription is None or not transcription.text:
            return
        texts = exchange.transcripts.setdefault(role, [""])
        said = transcription.text if transcription.finished else texts[-1] + transcription.text
        texts[-1:] = [said, ""] if transcription.finished else [said]
        self._heard(exchange, role, said, bool(transcription.finished))
        text = "\n".join(each for each in texts if each)
        stamp = exchange.current.stamp
        message = stamp.user_message if role == "user" else stamp.message
        frame = TranscriptFrame(message, role, text, bool(transcription.finished))
        held = exchange.held_transcripts
        exchange.held_transcripts = [each for each in held if each.role != role or each.final]
        exchange.held_transcripts.append(frame)
        if frame.final and role == "user":
            exchange.is_transcribed = True
            title = title_of(types.Content(parts=[types.Part(text=text)]))
            self._publisher.touch(exchange, title=title)
        self._publisher.release_transcripts(exchange)

    def _watch_silence(self) -> None:
        """Some models answer a result with nothing, not even with the end of a turn."""
        if self._silence is not None:
            self._silence.cancel()
            self._silence = None
        if self._publisher.utterances.is_uncertain:
            delay = self._context.timings.silent_answer
            self._silence = asyncio.get_running_loop().call_later(delay, self._end_silence)

    def _end_silence(self) -> None:
        exchange = self._publisher.utterances.assume_answered()
        if exchange is not None and not exchange.open_calls and not exchange.is_done:
            exchange.is_done = True
            exchange.current.feed.end()
