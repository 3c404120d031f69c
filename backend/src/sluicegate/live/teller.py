"""What a live run has said goes out: audio at once, events to their turns, and transcripts."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from google.genai import types

from sluicegate.engine.start_turn import title_of
from sluicegate.live.sorter import has_media
from sluicegate.wire.live_frames import InterruptedFrame, TranscriptFrame, TurnCompleteFrame

if TYPE_CHECKING:
    from typing import Literal

    from google.adk.events.event import Event

    from sluicegate.live.exchange import LiveExchange
    from sluicegate.live.floor import Floor
    from sluicegate.live.hold import Hold
    from sluicegate.live.line import Line
    from sluicegate.live.sorter import Place, Sorter

DOUBT: Final = 5.0
"""Seconds after which a model that may have answered by its silence is taken to have done so."""


class Teller:
    """Takes the events of a run in the order in which they are stored."""

    def __init__(self, hold: Hold, sorter: Sorter, floor: Floor, line: Line) -> None:
        self._hold = hold
        self._sorter = sorter
        self._floor = floor
        self._line = line
        self._out = hold.out
        self._doubt: asyncio.TimerHandle | None = None

    def take(self, event: Event) -> None:
        """Tell an event, and those that waited for it."""
        for stored, place in self._sorter.arrived(event):
            self._tell(stored, place)

    def _tell(self, event: Event, place: Place) -> None:
        if has_media(event):
            self._play(event)
        exchange = place.exchange
        if exchange is not None:
            self._transcribe(exchange, "user", event.input_transcription)
            self._transcribe(exchange, "assistant", event.output_transcription)
        if place.feed is not None:
            place.feed.put(event)
        if event.interrupted:
            self._out.cut()
            self._out.frame(InterruptedFrame())
        if event.turn_complete:
            self._out.frame(TurnCompleteFrame())
        if place.ends is not None:
            place.ends.end(stopped=place.stopped)
        if exchange is not None:
            self._line.announce(exchange)
        self._wonder()

    def flush(self, exchange: LiveExchange) -> None:
        """Send what may be told by now."""
        kept: list[TranscriptFrame] = []
        for frame in exchange.frames:
            if self._may_tell(exchange, frame.role):
                self._out.frame(frame)
            else:
                kept.append(frame)
        exchange.frames = kept

    def close(self) -> None:
        """Nothing follows."""
        if self._doubt is not None:
            self._doubt.cancel()

    def _play(self, event: Event) -> None:
        for part in (event.content and event.content.parts) or ():
            blob = part.inline_data
            if blob is not None and blob.data and (blob.mime_type or "").startswith("audio/"):
                self._out.audio(blob.data)

    def _transcribe(
        self,
        exchange: LiveExchange,
        role: Literal["user", "assistant"],
        said: types.Transcription | None,
    ) -> None:
        if said is None or not said.text:
            return
        pieces = exchange.said.setdefault(role, [""])
        if said.finished:
            pieces[-1:] = [said.text, ""]
        else:
            pieces[-1] += said.text
        whole = "\n".join(piece for piece in pieces if piece)
        stamp = exchange.current.stamp
        name = stamp.user_message if role == "user" else stamp.message
        frame = TranscriptFrame(name, role, whole, bool(said.finished))
        exchange.frames = [each for each in exchange.frames if each.role != role or each.final]
        exchange.frames.append(frame)
        if frame.final and role == "user":
            exchange.is_heard = True
            title = title_of(types.Content(parts=[types.Part(text=whole)]))
            self._hold.soon(self._hold.parts.chats.touch(self._hold.chat, title=title))
        self.flush(exchange)

    def _may_tell(self, exchange: LiveExchange, role: str) -> bool:
        """Whether what was said in an exchange may be known: the model's words are text (D1)."""
        if exchange.phase == "over":
            return True
        if self._line.head is not exchange:
            return False
        if role == "user":
            return True
        return exchange.current.stamp.release == "progressive" and not exchange.is_paused

    def _wonder(self) -> None:
        """Some models say nothing to a result, and not even that they say nothing."""
        if self._doubt is not None:
            self._doubt.cancel()
            self._doubt = None
        if self._floor.is_doubtful:
            loop = asyncio.get_running_loop()
            self._doubt = loop.call_later(DOUBT, self._give_up)

    def _give_up(self) -> None:
        exchange = self._floor.give_up()
        if exchange is not None and not exchange.calls and not exchange.is_done:
            exchange.is_done = True
            exchange.current.feed.end()
