"""What one agent said live: the events of a model turn as one response of a script."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from google.adk.events.event import Event


class Asked(NamedTuple):
    """A user's text, said for the nth time, as one agent is to answer it."""

    text: str
    nth: int
    agent: str


@dataclass(slots=True)
class _Turn:
    asked: Asked
    parts: list[dict[str, Any]] = field(default_factory=list)
    more: dict[str, Any] = field(default_factory=dict)


class LiveTurns:
    """Puts the events of model turns together.

    A turn belongs to the text that was said before it began; one that follows a result, to the
    text whose answer had called the tool.
    """

    def __init__(self, add: Callable[[Asked, dict[str, Any]], None]) -> None:
        """Take what is told each response."""
        self._add = add
        self._open: dict[str, _Turn] = {}
        self._called: dict[str, Asked] = {}
        self._now: dict[str, Asked] = {}

    def heard(self) -> None:
        """The user has said something: what is said from now on answers that."""
        self._now.clear()

    def read(self, event: Event, asked: Asked, parts: Iterator[dict[str, Any]]) -> None:
        """Take an event that is not partial; ``parts`` are what it says."""
        results = event.get_function_responses()
        if results:
            self._now[event.author] = self._called.get(results[-1].id or "", asked)
            return
        said = list(parts)
        transcript = event.output_transcription
        if transcript is not None and transcript.finished and transcript.text:
            said.append({"transcript": {"role": "model", "text": transcript.text}})
        turn = self._open.get(event.author)
        if turn is None:
            if not (said or event.turn_complete or event.interrupted):
                return
            turn = self._open[event.author] = _Turn(self._now.get(event.author, asked))
        turn.parts += said
        self._called.update((call.id or "", turn.asked) for call in event.get_function_calls())
        if event.interrupted:
            turn.more["interrupted"] = True
        if event.turn_complete:
            del self._open[event.author]
            self._add(turn.asked, {"parts": turn.parts, **turn.more})
