"""Scenarios that repeat the responses of the models in a recorded chat."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from google.adk.events.event import Event

from sluicegate.core.event_reading import ABORTED
from sluicegate.errors import RecordingError
from sluicegate.replay.provider_errors import http_status_of
from sluicegate.replay.scenario import parse_scenarios
from sluicegate.replay.script_position import user_text

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Sequence

    from google.genai import types

    from sluicegate.replay.recording import Recording
    from sluicegate.replay.scenario import Scenarios

_ADK_CALL_PREFIX: Final = "adk_request_"
_UNSPLIT: Final = 1_000_000


class Prompt(NamedTuple):
    """A user's text, sent for the nth time, that one agent answers."""

    text: str
    nth: int
    agent: str


def recorded_scenarios(recording: Recording) -> Scenarios:
    """Return scenarios that repeat the recorded responses, delta by delta.

    Agents that ADK runs outside the session, such as an agent used as a tool, are not recorded.

    Raises:
        RecordingError: It has no response of a model.
    """
    events = [Event.model_validate(body) for body in recording.of_kind("event")]
    live = {event.invocation_id for event in events if event.turn_complete}
    reader = _ResponseReader(live)
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


class _ResponseReader:
    """Collects the responses of each agent to each prompt.

    ``live`` are the ids of the live invocations.
    """

    def __init__(self, live: Container[str]) -> None:
        self.responses: dict[Prompt, list[dict[str, Any]]] = {}
        self._live = live
        self._text = ""
        self._times: Counter[str] = Counter()
        self._spoken: set[tuple[str, int]] = set()
        self._deltas: dict[str, _Deltas] = {}
        self._live_turns = _LiveTurns(self._add_live)

    def read(self, event: Event) -> None:
        if event.author == "user":
            self._read_prompt(event)
        elif event.error_code == ABORTED or _is_adk_request(event):
            return
        elif event.partial:
            self._deltas.setdefault(event.author, _Deltas()).add(event)
        elif event.invocation_id in self._live:
            deltas = self._take_deltas(event) if event.content else _Deltas()
            self._live_turns.read(event, self._prompt(event), _parts(event, deltas))
        elif event.error_code:
            code = http_status_of(event.error_code)
            error = {"code": code, "message": event.error_message or "Failed."}
            self._add(event, {"parts": self._take_deltas(event).parts(), "error": error})
        elif event.content is not None and event.content.role == "model":
            self._read_response(event)

    def _read_prompt(self, event: Event) -> None:
        speech = event.input_transcription
        if speech is not None:
            text = (speech.text or "") if speech.finished else ""
        else:
            text = user_text(event.content) if event.content is not None else ""
        if text:
            self._text = text
            self._times[text] += 1
            self._deltas.clear()
            self._live_turns.user_spoke()
            if speech is not None:
                self._spoken.add((text, self._times[text]))

    def _read_response(self, event: Event) -> None:
        deltas = self._take_deltas(event)
        if event.interrupted:
            # The turn was stopped here; the model waits until it is stopped again.
            self._add(event, {"parts": deltas.parts(), "hang": True})
            return
        parts = list(_parts(event, deltas))
        sizes = [len(part["text"]) for part in parts if "text" in part]
        sizes += [len(part["thought"]) for part in parts if "thought" in part]
        size = max([*deltas.argument_sizes, *sizes], default=_UNSPLIT) or _UNSPLIT
        response: dict[str, Any] = {"parts": parts, "delta_chars": size}
        if event.usage_metadata is not None:
            response["usage"] = _usage(event.usage_metadata)
        if event.finish_reason is not None:
            response["finish"] = event.finish_reason.name
        self._add(event, response)

    def _take_deltas(self, event: Event) -> _Deltas:
        return self._deltas.pop(event.author, _Deltas())

    def _add(self, event: Event, response: dict[str, Any]) -> None:
        self.responses.setdefault(self._prompt(event), []).append(response)

    def _add_live(self, prompt: Prompt, response: dict[str, Any]) -> None:
        responses = self.responses.setdefault(prompt, [])
        if not responses and (prompt.text, prompt.nth) in self._spoken:
            response["parts"].insert(0, {"heard": prompt.text})
        responses.append(response)

    def _prompt(self, event: Event) -> Prompt:
        return Prompt(self._text, self._times[self._text], event.author)


@dataclass(slots=True)
class _Deltas:
    """The deltas of one agent's response: texts, sizes of argument deltas, and images."""

    texts: list[tuple[bool, str]] = field(default_factory=list)
    argument_sizes: list[int] = field(default_factory=list)
    images: list[types.Blob] = field(default_factory=list)

    def add(self, event: Event) -> None:
        for part in (event.content and event.content.parts) or ():
            if part.text:
                self.texts.append((bool(part.thought), part.text))
            if part.function_call is not None:
                arguments = part.function_call.partial_args or ()
                self.argument_sizes += [len(each.string_value or "") for each in arguments]
            if part.inline_data is not None:
                self.images.append(part.inline_data)

    def take(self, text: str, *, thought: bool) -> list[str]:
        """Return the deltas of a text in order, or the text itself if they do not make it up."""
        deltas: list[str] = []
        while self.texts and self.texts[0][0] is thought and text.startswith("".join(deltas)):
            if "".join(deltas) == text:
                break
            deltas.append(self.texts.pop(0)[1])
        return deltas if "".join(deltas) == text else [text]

    def parts(self) -> list[dict[str, Any]]:
        """Return the texts as parts of a response."""
        return [{"thought" if thought else "text": text} for thought, text in self.texts]


@dataclass(slots=True)
class _LiveTurn:
    prompt: Prompt
    parts: list[dict[str, Any]] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)


class _LiveTurns:
    """Combines the events of live turns of models into responses, which ``add`` gets.

    A turn belongs to the prompt before its start; one that follows a result, to the prompt whose
    response has called the tool.
    """

    def __init__(self, add: Callable[[Prompt, dict[str, Any]], None]) -> None:
        self._add = add
        self._open: dict[str, _LiveTurn] = {}
        self._prompts_by_call: dict[str, Prompt] = {}
        self._prompts_by_agent: dict[str, Prompt] = {}

    def user_spoke(self) -> None:
        """Let further turns belong to the newest prompt."""
        self._prompts_by_agent.clear()

    def read(self, event: Event, prompt: Prompt, parts: Iterator[dict[str, Any]]) -> None:
        """Add an event that is not partial; ``parts`` are its parts."""
        results = event.get_function_responses()
        if results:
            called_by = self._prompts_by_call.get(results[-1].id or "", prompt)
            self._prompts_by_agent[event.author] = called_by
            return
        output = list(parts)
        speech = event.output_transcription
        if speech is not None and speech.finished and speech.text:
            output.append({"transcript": {"role": "model", "text": speech.text}})
        turn = self._open.get(event.author)
        if turn is None:
            if not (output or event.turn_complete or event.interrupted):
                return
            turn = _LiveTurn(self._prompts_by_agent.get(event.author, prompt))
            self._open[event.author] = turn
        turn.parts += output
        calls = event.get_function_calls()
        self._prompts_by_call.update((call.id or "", turn.prompt) for call in calls)
        if event.interrupted:
            turn.options["interrupted"] = True
        if event.turn_complete:
            del self._open[event.author]
            self._add(turn.prompt, {"parts": turn.parts, **turn.options})


def _is_adk_request(event: Event) -> bool:
    """Whether ADK itself has made the calls of an event, as requests to the user."""
    calls = event.get_function_calls()
    return bool(calls) and all((call.name or "").startswith(_ADK_CALL_PREFIX) for call in calls)


def _parts(event: Event, deltas: _Deltas) -> Iterator[dict[str, Any]]:
    parts: Sequence[types.Part] = (event.content and event.content.parts) or ()
    streamed = bool(deltas.argument_sizes)
    code: types.ExecutableCode | None = None
    for part in parts:
        if part.text:
            thought = bool(part.thought)
            for delta in deltas.take(part.text, thought=thought):
                yield {"thought" if thought else "text": delta}
        elif part.function_call is not None:
            call = part.function_call
            args = call.args or {}
            stream = streamed and bool(args)
            yield {"call": {"name": call.name, "args": args, "id": call.id, "stream": stream}}
        elif part.inline_data is not None:
            yield from _image(part.inline_data)
        elif part.file_data is not None and deltas.images:
            # The session has a reference; the bytes came with the delta.
            yield from _image(deltas.images.pop(0))
        elif part.executable_code is not None:
            code = part.executable_code
        elif part.code_execution_result is not None and code is not None:
            result = part.code_execution_result.output or ""
            yield {"code": {"code": code.code or "", "result": result}}
    yield from _sources(event)


def _image(blob: types.Blob) -> Iterator[dict[str, Any]]:
    if blob.data:
        yield {"image": {"media_type": blob.mime_type, "data": blob.data}}


def _sources(event: Event) -> Iterator[dict[str, Any]]:
    for chunk in (event.grounding_metadata and event.grounding_metadata.grounding_chunks) or ():
        source = chunk.web or chunk.retrieved_context
        if source is not None and source.uri:
            yield {"source": {"uri": source.uri, "title": source.title}}


def _usage(usage: types.GenerateContentResponseUsageMetadata) -> dict[str, int | None]:
    return {
        "prompt": usage.prompt_token_count or 0,
        "output": usage.candidates_token_count or 0,
        "reasoning": usage.thoughts_token_count,
        "cached": usage.cached_content_token_count,
    }
