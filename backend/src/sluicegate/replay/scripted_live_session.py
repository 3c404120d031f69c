"""A scripted live session, behind ADK's own connection for live models."""

from __future__ import annotations

import asyncio
import base64
import binascii
import re
import uuid
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from google.adk.models.gemini_llm_connection import GeminiLlmConnection
from google.genai import errors, types
from pydantic import BaseModel, ConfigDict, ValidationError

from sluicegate.adk_private import is_gemini_3_live
from sluicegate.replay.provider_errors import provider_error
from sluicegate.replay.scenario import sentence_response
from sluicegate.replay.script_position import read_contents, user_text
from sluicegate.replay.scripted_live_messages import (
    OutputOptions,
    end_messages,
    response_messages,
    transcript_messages,
)
from sluicegate.replay.speech_detection import SpeechBoundary, SpeechDetector

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
    from typing import TypeAlias, TypedDict, Unpack

    from google.adk.models.llm_request import LlmRequest
    from google.genai.live import AsyncSession

    from sluicegate.replay.scenario import ScriptedResponse
    from sluicegate.replay.scenarios_of_agent import AgentScript
    from sluicegate.replay.script_position import AgentContent

    CountResponses: TypeAlias = Callable[[str, Sequence[AgentContent]], int]
    """Counts how many responses to a text these contents of the agent represent."""

    class _RealtimeInput(TypedDict, total=False):
        media: types.Blob
        audio: types.Blob
        video: types.Blob
        text: str
        activity_start: types.ActivityStart
        activity_end: types.ActivityEnd
        audio_stream_end: bool


_RATE: Final = re.compile(r"rate=(\d+)")
_RATES: Final = range(4_000, 192_001)


class PendingCalls(BaseModel):
    """The calls of response ``number`` to ``text``; ``open`` maps call ids to tool names."""

    model_config = ConfigDict(extra="forbid")

    text: str
    number: int
    open: dict[str, str]


class SessionState(BaseModel):
    """The state of a session, small enough for a resumption handle.

    It holds the last user text, the count of responses to it, and the calls without a result.
    """

    model_config = ConfigDict(extra="forbid")

    text: str = ""
    answered: int = 0
    pending: list[PendingCalls] = []

    def restore(self, contents: Sequence[types.Content], count_responses: CountResponses) -> None:
        """Restore the state from a history."""
        results = {
            part.function_response.id
            for content in contents
            for part in content.parts or []
            if part.function_response
        }
        for index, content in enumerate(contents):
            calls = [part.function_call for part in content.parts or [] if part.function_call]
            waiting = {call.id or "": call.name or "" for call in calls if call.id not in results}
            if content.role == "model" and waiting:
                text, answer = read_contents(contents[: index + 1])
                number = max(0, count_responses(text, answer) - 1)
                self.pending.append(PendingCalls(text=text, number=number, open=waiting))
        self.text, answer = read_contents(contents)
        self.answered = count_responses(self.text, answer)

    def find_calls(self, result: types.FunctionResponse) -> PendingCalls | None:
        """Return the newest pending calls that a result belongs to, or None."""
        for calls in reversed(self.pending):
            if result.id in calls.open or (not result.id and result.name in calls.open.values()):
                return calls
        return None

    def add_result(self, result: types.FunctionResponse) -> PendingCalls | None:
        """Note a result; return its calls if all of them have one."""
        calls = self.find_calls(result)
        if calls is None:
            return None
        by_name = (id for id, name in calls.open.items() if name == result.name)
        del calls.open[result.id if result.id in calls.open else next(by_name)]
        if calls.open:
            return None
        self.pending.remove(calls)
        return calls

    @property
    def handle(self) -> str:
        """The resumption handle."""
        return base64.urlsafe_b64encode(self.model_dump_json().encode()).decode()

    @classmethod
    def from_handle(cls, handle: str) -> SessionState | None:
        """Return the state in a resumption handle, None if the handle is not of a script."""
        try:
            return cls.model_validate_json(base64.urlsafe_b64decode(handle))
        except (binascii.Error, ValidationError, ValueError):
            return None


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """How the session takes turns.

    ``silence_ms`` end the user's speech. ``barge_in``: speech interrupts the model.
    ``continues_turn``: a turn with calls continues with their results, as with Gemini 3.
    ``resumable``: the session sends resumption handles. ``reports_activity``: it reports the start
    and the end of speech.
    """

    output: OutputOptions
    silence_ms: int = 500
    barge_in: bool = True
    continues_turn: bool = False
    resumable: bool = False
    reports_activity: bool = False

    @classmethod
    def of(cls, config: types.LiveConnectConfig, model: str) -> SessionOptions:
        """Return the options that a request's ``live_connect_config`` asks for."""
        output = OutputOptions(
            audio=types.Modality.AUDIO in (config.response_modalities or [types.Modality.AUDIO]),
            input_transcripts=config.input_audio_transcription is not None,
            output_transcripts=config.output_audio_transcription is not None,
        )
        realtime = config.realtime_input_config or types.RealtimeInputConfig()
        detection = realtime.automatic_activity_detection or types.AutomaticActivityDetection()
        silence = detection.silence_duration_ms
        return cls(
            output=output,
            silence_ms=500 if silence is None else silence,
            barge_in=realtime.activity_handling is not types.ActivityHandling.NO_INTERRUPTION,
            # ADK: it reads from the model's name in which order calls and the end of a turn come.
            continues_turn=is_gemini_3_live(model),
            resumable=config.session_resumption is not None,
            reports_activity=bool(config.explicit_vad_signal),
        )


def live_connection(
    script: AgentScript,
    model: str,
    sleep: Callable[[float], Awaitable[object]],
    request: LlmRequest,
) -> GeminiLlmConnection:
    """Open a connection with the request's ``live_connect_config``; ``sleep`` takes seconds.

    Raises:
        google.genai.errors.ClientError: The resumption handle is not of a script.
    """
    config = request.live_connect_config or types.LiveConnectConfig()
    resumption = config.session_resumption
    state = SessionState()
    if resumption is not None and resumption.handle:
        restored = SessionState.from_handle(resumption.handle)
        if restored is None:
            raise errors.ClientError(400, {"message": "The session handle is not a script's."})
        state = restored
    session = ScriptedLiveSession(script, SessionOptions.of(config, model), state, sleep)
    return GeminiLlmConnection(cast("AsyncSession", session), model_version=model)


@dataclass(frozen=True, slots=True)
class _Turn:
    """Response ``number`` to a text; ``transcript`` is the text if it was spoken."""

    text: str
    number: int
    transcript: str | None = None
    response: ScriptedResponse | None = None


@dataclass(slots=True)
class _Playback:
    response: ScriptedResponse
    messages: Iterator[types.LiveServerMessage]
    calls: PendingCalls
    has_started: bool = False


class ScriptedLiveSession:
    """Plays a script to one live connection, and takes input meanwhile.

    Messages are created when they are received, so no task runs beside the reader. The user's text,
    the start of speech, and a result that may interrupt end the response that is playing.
    """

    def __init__(
        self,
        script: AgentScript,
        options: SessionOptions,
        state: SessionState,
        sleep: Callable[[float], Awaitable[object]],
    ) -> None:
        self.session_id = f"scripted-{uuid.uuid4()}"
        self._script = script
        self._options = options
        self._state = state
        self._sleep = sleep
        self._speech = SpeechDetector(options.silence_ms)
        self._changed = asyncio.Event()
        self._ready: deque[types.LiveServerMessage] = deque()
        self._turns: deque[_Turn] = deque()
        self._typed: list[str] = []
        self._images = 0
        self._playback: _Playback | None = None
        self._is_closed = False

    async def send_client_content(
        self, *, turns: Sequence[types.Content], turn_complete: bool
    ) -> None:
        """Receive the history; a complete last user turn is answered, except by a Gemini 3."""
        self._state.restore(self._script.own_contents(turns), self._script.count_responses)
        ends_with_user = bool(turns) and turns[-1].role == "user"
        if turn_complete and ends_with_user and not self._options.continues_turn:
            self._queue(_Turn(self._state.text, self._state.answered))

    async def send(self, *, input: types.LiveClientContent) -> None:
        """Receive typed contents, which interrupt; the last one of a turn is answered."""
        self._interrupt()
        self._typed += [text for content in input.turns or () if (text := user_text(content))]
        if input.turn_complete:
            self._answer("\n".join(self._typed))
            self._typed = []

    async def send_realtime_input(self, **given: Unpack[_RealtimeInput]) -> None:
        """Receive audio, images, typed text, and the client's activity marks."""
        blob = given.get("media") or given.get("audio") or given.get("video")
        if blob is not None:
            self._receive_media(blob)
        elif "text" in given:
            # ADK: this text requests an answer to the history.
            self._answer("" if given["text"] == "." else given["text"])
        elif "activity_start" in given:
            if self._speech.start_activity():
                self._speech_started()
        elif self._speech.end_activity():
            self._speech_ended()

    async def send_tool_response(
        self, *, function_responses: Sequence[types.FunctionResponse]
    ) -> None:
        """Receive results; when all calls of a response have one, the next response is played."""
        for result in function_responses:
            if self._state.find_calls(result) is None:
                self._report_unknown_call(result.name)
            if result.will_continue:
                continue
            scheduling = result.scheduling
            if scheduling is types.FunctionResponseScheduling.INTERRUPT:
                self._interrupt()
            calls = self._state.add_result(result)
            if calls and scheduling is not types.FunctionResponseScheduling.SILENT:
                self._queue(_Turn(calls.text, calls.number + 1))

    async def receive(self) -> AsyncIterator[types.LiveServerMessage]:
        """Yield the messages of the session.

        Raises:
            google.genai.errors.APIError: The session is closed (code 1000), or the script holds an
                error of the provider.
        """
        while True:
            yield await self._next_message()

    async def close(self) -> None:
        """Close the session, which `receive` reports."""
        self._is_closed = True
        self._changed.set()

    async def _next_message(self) -> types.LiveServerMessage:
        while True:
            self._changed.clear()
            if self._is_closed:
                raise errors.APIError(1000, {"message": "The session is closed."})
            if self._ready:
                return self._ready.popleft()
            if self._playback is None and self._turns:
                self._start(self._turns.popleft())
            elif self._playback is not None:
                await self._advance(self._playback)
            else:
                await self._changed.wait()

    def _start(self, turn: _Turn) -> None:
        response = turn.response or self._script.response(turn.text, turn.number)
        calls = [
            types.FunctionCall(
                id=part.call.id or f"call-{uuid.uuid4()}",
                name=part.call.name,
                args=dict(part.call.args),
            )
            for part in response.parts
            if part.call is not None
        ]
        self._state.text, self._state.answered = turn.text, turn.number + 1
        if turn.transcript is not None and self._options.output.input_transcripts:
            # ADK: each transcript of a Gemini 3 is a complete one.
            size = 10_000 if self._options.continues_turn else response.delta_chars
            self._ready.extend(transcript_messages(turn.transcript, size))
        messages = response_messages(response, calls, self._options.output)
        pending = PendingCalls(text=turn.text, number=turn.number, open={})
        self._playback = _Playback(response, messages, pending)

    async def _advance(self, playback: _Playback) -> None:
        response = playback.response
        if playback.has_started:
            await self._pause(response.delay_ms)
        elif response.wait_ms:
            await self._pause(response.wait_ms)
        playback.has_started = True
        if self._playback is not playback:
            return
        message = next(playback.messages, None)
        if message is None:
            await self._finish(playback)
            return
        for call in (message.tool_call and message.tool_call.function_calls) or ():
            playback.calls.open[call.id or ""] = call.name or ""
            if playback.calls not in self._state.pending:
                self._state.pending.append(playback.calls)
        self._ready.append(message)

    async def _pause(self, milliseconds: float) -> None:
        if not milliseconds:
            await self._sleep(0)
            return
        pause = asyncio.ensure_future(self._sleep(milliseconds / 1000))
        interruption = asyncio.ensure_future(self._wait_interrupted())
        try:
            await asyncio.wait([pause, interruption], return_when=asyncio.FIRST_COMPLETED)
        finally:
            pause.cancel()
            interruption.cancel()

    async def _wait_interrupted(self) -> None:
        while self._playback is not None and not self._is_closed:
            self._changed.clear()
            await self._changed.wait()

    async def _finish(self, playback: _Playback) -> None:
        response = playback.response
        if response.error is not None:
            self._playback = None
            raise provider_error(response.error)
        if response.hang:
            await self._changed.wait()
            return
        self._end(interrupted=response.interrupted)
        if response.go_away:
            go_away = types.LiveServerGoAway(time_left="10s")
            self._ready.append(types.LiveServerMessage(go_away=go_away))

    def _end(self, *, interrupted: bool) -> None:
        playback, self._playback = self._playback, None
        if playback is None:
            return
        complete = not (self._options.continues_turn and playback.calls.open)
        self._ready.extend(
            end_messages(playback.response, interrupted=interrupted, complete=complete)
        )
        if self._options.resumable:
            update = types.LiveServerSessionResumptionUpdate(
                new_handle=self._state.handle, resumable=True
            )
            self._ready.append(types.LiveServerMessage(session_resumption_update=update))

    def _interrupt(self) -> None:
        if self._playback is not None:
            self._end(interrupted=True)
            self._changed.set()

    def _queue(self, turn: _Turn) -> None:
        self._turns.append(turn)
        self._changed.set()

    def _report_unknown_call(self, tool: str | None) -> None:
        response = sentence_response(f"The model got a result of {tool}, which it had not called.")
        self._queue(_Turn(self._state.text, self._state.answered - 1, response=response))

    def _answer(self, text: str) -> None:
        self._interrupt()
        self._images = 0
        self._queue(_Turn(text, 0) if text else _Turn(self._state.text, self._state.answered))

    def _receive_media(self, blob: types.Blob) -> None:
        media_type = blob.mime_type or ""
        if media_type.startswith("image/"):
            self._images += 1
            return
        match = _RATE.search(media_type)
        rate = int(match[1]) if match else 16_000
        if rate not in _RATES:
            raise errors.ClientError(400, {"message": f"Audio of {rate} Hz is not supported."})
        for boundary in self._speech.detect(blob.data or b"", rate):
            if boundary is SpeechBoundary.START:
                self._speech_started()
            else:
                self._speech_ended()

    def _speech_started(self) -> None:
        self._report_activity(types.VoiceActivityType.ACTIVITY_START)
        if self._options.barge_in:
            self._interrupt()

    def _speech_ended(self) -> None:
        self._report_activity(types.VoiceActivityType.ACTIVITY_END)
        words = self._script.transcribe(self._describe_input)
        self._images = 0
        self._queue(_Turn(words, 0, transcript=words))

    def _describe_input(self) -> str:
        pictures = {0: "", 1: " and 1 picture"}.get(self._images, f" and {self._images} pictures")
        return self._speech.describe() + pictures

    def _report_activity(self, kind: types.VoiceActivityType) -> None:
        if self._options.reports_activity:
            activity = types.VoiceActivity(voice_activity_type=kind)
            self._ready.append(types.LiveServerMessage(voice_activity=activity))
            self._changed.set()
