"""What one agent said live: the events of a model turn as one response of a script."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from google.adk.events.event import Event

from sluicegate.core.events import ABORTED
from sluicegate.errors import RecordingError
from sluicegate.replay.deltas import code_of
from sluicegate.replay.scenario import parse_scenarios
from sluicegate.replay.script_position import user_text

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Sequence

    from google.genai import types

    from sluicegate.replay.recording import Recording
    from sluicegate.replay.scenario import Scenarios


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


_OF_ADK: Final = "adk_request_"
_WHOLE: Final = 1_000_000


@dataclass(slots=True)
class _Speech:
    """What one agent has said so far of a response, piece by piece; sizes of argument pieces."""

    pieces: list[tuple[bool, str]] = field(default_factory=list)
    argument_pieces: list[int] = field(default_factory=list)
    pictures: list[types.Blob] = field(default_factory=list)

    def hear(self, event: Event) -> None:
        for part in (event.content and event.content.parts) or ():
            if part.text:
                self.pieces.append((bool(part.thought), part.text))
            if part.function_call is not None:
                found = part.function_call.partial_args or ()
                self.argument_pieces += [len(each.string_value or "") for each in found]
            if part.inline_data is not None:
                self.pictures.append(part.inline_data)

    def take(self, text: str, *, thought: bool) -> list[str]:
        """The pieces of a whole text, in order; the text itself where they do not make it up."""
        found: list[str] = []
        while self.pieces and self.pieces[0][0] is thought and text.startswith("".join(found)):
            if "".join(found) == text:
                break
            found.append(self.pieces.pop(0)[1])
        return found if "".join(found) == text else [text]


class _Reader:
    """Collects the responses of each agent to each user text, as often as it was said."""

    def __init__(self, live: Container[str]) -> None:
        """Take the invocations that were live."""
        self.responses: dict[Asked, list[dict[str, Any]]] = {}
        self._live = live
        self._text = ""
        self._times: Counter[str] = Counter()
        self._was_spoken: set[tuple[str, int]] = set()
        self._speech: dict[str, _Speech] = {}
        self._live_turns = LiveTurns(self._add_live)

    def read(self, event: Event) -> None:
        if event.author == "user":
            self._ask(event)
        elif event.error_code == ABORTED or _is_of_adk(event):
            return
        elif event.partial:
            self._speech_of(event.author).hear(event)
        elif event.invocation_id in self._live:
            speech = self._speech.pop(event.author, _Speech()) if event.content else _Speech()
            self._live_turns.read(event, self._asked(event), _parts(event, speech))
        elif event.error_code:
            error = {"code": code_of(event.error_code), "message": event.error_message or "Failed."}
            self._add(event, {"parts": self._said_so_far(event.author), "error": error})
        elif event.content is not None and event.content.role == "model":
            self._answer(event)

    def _ask(self, event: Event) -> None:
        spoken = event.input_transcription
        if spoken is not None:
            text = (spoken.text or "") if spoken.finished else ""
        else:
            text = user_text(event.content) if event.content is not None else ""
        if text:
            self._text = text
            self._times[text] += 1
            self._speech.clear()
            self._live_turns.heard()
            if spoken is not None:
                self._was_spoken.add((text, self._times[text]))

    def _answer(self, event: Event) -> None:
        if event.interrupted:
            # The turn was stopped here; the model waits until it is stopped again.
            self._add(event, {"parts": self._said_so_far(event.author), "hang": True})
            return
        speech = self._speech.pop(event.author, _Speech())
        parts = list(_parts(event, speech))
        sizes = [len(part["text"]) for part in parts if "text" in part]
        sizes += [len(part["thought"]) for part in parts if "thought" in part]
        size = max([*speech.argument_pieces, *sizes], default=_WHOLE) or _WHOLE
        response: dict[str, Any] = {"parts": parts, "delta_chars": size}
        if event.usage_metadata is not None:
            response["usage"] = _usage(event.usage_metadata)
        if event.finish_reason is not None:
            response["finish"] = event.finish_reason.name
        self._add(event, response)

    def _speech_of(self, author: str) -> _Speech:
        return self._speech.setdefault(author, _Speech())

    def _said_so_far(self, author: str) -> list[dict[str, Any]]:
        pieces = self._speech.pop(author, _Speech()).pieces
        return [{"thought" if thought else "text": text} for thought, text in pieces]

    def _add(self, event: Event, response: dict[str, Any]) -> None:
        self.responses.setdefault(self._asked(event), []).append(response)

    def _add_live(self, asked: Asked, response: dict[str, Any]) -> None:
        responses = self.responses.setdefault(asked, [])
        if not responses and (asked.text, asked.nth) in self._was_spoken:
            response["parts"].insert(0, {"heard": asked.text})
        responses.append(response)

    def _asked(self, event: Event) -> Asked:
        return Asked(self._text, self._times[self._text], event.author)


def recorded_scenarios(recording: Recording) -> Scenarios:
    """The scenarios that say again what the recorded models said, piece by piece.

    What agents said that ADK runs beside the session, as an agent that is a tool, is not recorded.

    Raises:
        RecordingError: It holds nothing that a model said.
    """
    events = [Event.model_validate(body) for body in recording.of_kind("event")]
    live = {event.invocation_id for event in events if event.turn_complete}
    reader = _Reader(live)
    for event in events:
        reader.read(event)
    scenarios = [
        {"said": text, "nth": times, "agent": agent, "responses": responses}
        for (text, times, agent), responses in reader.responses.items()
    ]
    if not scenarios:
        raise RecordingError(
            f"The recording of chat {recording.header.chat} holds nothing that a model said."
        )
    return parse_scenarios({"scenarios": scenarios}, name="the recording")


def _is_of_adk(event: Event) -> bool:
    """Whether ADK itself made the calls of an event, to ask the user."""
    calls = event.get_function_calls()
    return bool(calls) and all((call.name or "").startswith(_OF_ADK) for call in calls)


def _parts(event: Event, speech: _Speech) -> Iterator[dict[str, Any]]:
    parts: Sequence[types.Part] = (event.content and event.content.parts) or ()
    streamed = bool(speech.argument_pieces)
    code: types.ExecutableCode | None = None
    for part in parts:
        if part.text:
            thought = bool(part.thought)
            for piece in speech.take(part.text, thought=thought):
                yield {"thought" if thought else "text": piece}
        elif part.function_call is not None:
            call = part.function_call
            args = call.args or {}
            stream = streamed and bool(args)
            yield {"call": {"name": call.name, "args": args, "id": call.id, "stream": stream}}
        elif part.inline_data is not None:
            yield from _picture(part.inline_data)
        elif part.file_data is not None and speech.pictures:
            # The session holds a reference; the bytes came with the piece.
            yield from _picture(speech.pictures.pop(0))
        elif part.executable_code is not None:
            code = part.executable_code
        elif part.code_execution_result is not None and code is not None:
            result = part.code_execution_result.output or ""
            yield {"code": {"code": code.code or "", "result": result}}
    yield from _sources(event)


def _picture(blob: types.Blob) -> Iterator[dict[str, Any]]:
    if blob.data:
        yield {"image": {"media_type": blob.mime_type, "data": blob.data}}


def _sources(event: Event) -> Iterator[dict[str, Any]]:
    for chunk in (event.grounding_metadata and event.grounding_metadata.grounding_chunks) or ():
        found = chunk.web or chunk.retrieved_context
        if found is not None and found.uri:
            yield {"source": {"uri": found.uri, "title": found.title}}


def _usage(usage: types.GenerateContentResponseUsageMetadata) -> dict[str, int | None]:
    return {
        "prompt": usage.prompt_token_count or 0,
        "output": usage.candidates_token_count or 0,
        "reasoning": usage.thoughts_token_count,
        "cached": usage.cached_content_token_count,
    }
