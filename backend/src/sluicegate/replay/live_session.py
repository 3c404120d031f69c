"""What a scripted live session remembers, small enough to travel in a resumption handle."""

from __future__ import annotations

import asyncio
import base64
import binascii
import re
import uuid
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from google.genai import errors, types
from pydantic import BaseModel, ConfigDict, ValidationError

from sluicegate.replay.scenario import saying
from sluicegate.replay.script_position import read_contents, user_text
from sluicegate.replay.speech import Heard, SpeechDetector, ended, heard, spoken

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sluicegate.replay.scenario import ScriptedResponse
    from sluicegate.replay.script_position import Said
    from sluicegate.replay.speech import Ways

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sluicegate.replay.script_position import Said

    Answered = Callable[[str, Sequence[Said]], int]


class Asked(BaseModel):
    """The calls of one response: response ``number`` to ``text``; ``open`` maps id to tool name."""

    model_config = ConfigDict(extra="forbid")

    text: str
    number: int
    open: dict[str, str]


class Memory(BaseModel):
    """The last user text, the count of responses to it, and the calls that have no result yet."""

    model_config = ConfigDict(extra="forbid")

    text: str = ""
    answered: int = 0
    asked: list[Asked] = []

    def learn(self, contents: Sequence[types.Content], answered: Answered) -> None:
        """Take over a conversation; ``answered`` counts the responses to a text."""
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
                text, said = read_contents(contents[: index + 1])
                number = max(0, answered(text, said) - 1)
                self.asked.append(Asked(text=text, number=number, open=waiting))
        self.text, said = read_contents(contents)
        self.answered = answered(self.text, said)

    def asking(self, response: types.FunctionResponse) -> Asked | None:
        """The calls among which the result's own is open, the newest first; None for no call."""
        for asked in reversed(self.asked):
            if response.id in asked.open or (
                not response.id and response.name in asked.open.values()
            ):
                return asked
        return None

    def settle(self, response: types.FunctionResponse) -> Asked | None:
        """Note a result; its calls when none of them is open any more."""
        asked = self.asking(response)
        if asked is None:
            return None
        named = (id for id, name in asked.open.items() if name == response.name)
        del asked.open[response.id if response.id in asked.open else next(named)]
        if asked.open:
            return None
        self.asked.remove(asked)
        return asked

    @property
    def handle(self) -> str:
        """All of it as one word."""
        return base64.urlsafe_b64encode(self.model_dump_json().encode()).decode()

    @classmethod
    def from_handle(cls, handle: str) -> Memory | None:
        """What ``handle`` has held, None when it is no handle of a script."""
        try:
            return cls.model_validate_json(base64.urlsafe_b64decode(handle))
        except (binascii.Error, ValidationError, ValueError):
            return None


class Script(Protocol):
    """Chooses what is said, for one agent."""

    def response(self, text: str, number: int) -> ScriptedResponse:
        """Response ``number`` (from 0) to a user text."""
        ...

    def answered(self, text: str, said: Sequence[Said]) -> int:
        """How many responses to a user text the agent's contents amount to."""
        ...

    def own(self, contents: Sequence[types.Content]) -> list[types.Content]:
        """A history, with what the agent itself did as its own."""
        ...

    def hear(self, sound: Callable[[], str]) -> str:
        """The words of audio that sounded so."""
        ...

    def failure(self, response: ScriptedResponse) -> errors.APIError | None:
        """How the provider fails after the response, if it does."""
        ...


@dataclass(frozen=True, slots=True)
class Manners:
    """How the session takes turns.

    ``ways`` of speaking; ``silence_ms`` end what the user says; ``barge_in``: speech interrupts the
    model; ``waits_for_results``: a model turn with calls goes on when their results are there, as
    with Gemini 3; ``resumable``: handles are given; ``tells_activity``: speech is announced.
    """

    ways: Ways
    silence_ms: int = 500
    barge_in: bool = True
    waits_for_results: bool = False
    resumable: bool = False
    tells_activity: bool = False


if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
    from typing import TypedDict, Unpack

    from sluicegate.replay.live_session import Manners, Script
    from sluicegate.replay.scenario import ScriptedResponse

    class _Realtime(TypedDict, total=False):
        media: types.Blob
        audio: types.Blob
        video: types.Blob
        text: str
        activity_start: types.ActivityStart
        activity_end: types.ActivityEnd
        audio_stream_end: bool


_RATE: Final = re.compile(r"rate=(\d+)")
_RATES: Final = range(4_000, 192_001)


@dataclass(frozen=True, slots=True)
class _Turn:
    text: str
    number: int
    heard: str | None = None
    response: ScriptedResponse | None = None


@dataclass(slots=True)
class _Playing:
    response: ScriptedResponse
    messages: Iterator[types.LiveServerMessage]
    asked: Asked
    started: bool = False


class ScriptedLiveSession:
    """Plays a script to one live connection and listens meanwhile.

    Messages are made when they are received, so nothing runs beside the reader. The user's text,
    speech that begins, and a result that may interrupt end what is playing.
    """

    def __init__(
        self,
        script: Script,
        manners: Manners,
        memory: Memory,
        sleep: Callable[[float], Awaitable[object]],
    ) -> None:
        self.session_id = f"scripted-{uuid.uuid4()}"
        self._script = script
        self._manners = manners
        self._memory = memory
        self._sleep = sleep
        self._ear = SpeechDetector(manners.silence_ms)
        self._news = asyncio.Event()
        self._ready: deque[types.LiveServerMessage] = deque()
        self._turns: deque[_Turn] = deque()
        self._typed: list[str] = []
        self._images = 0
        self._playing: _Playing | None = None
        self._closed = False

    async def send_client_content(
        self, *, turns: Sequence[types.Content], turn_complete: bool
    ) -> None:
        """Take the history; a user's content at its end is answered."""
        self._memory.learn(self._script.own(turns), self._script.answered)
        if turn_complete and not self._manners.waits_for_results:
            self._ask(_Turn(self._memory.text, self._memory.answered))

    async def send(self, *, input: types.LiveClientContent) -> None:
        """Take typed contents, which interrupt; the last of a turn is answered."""
        self._interrupt()
        self._typed += [text for content in input.turns or () if (text := user_text(content))]
        if input.turn_complete:
            self._answer("\n".join(self._typed))
            self._typed = []

    async def send_realtime_input(self, **given: Unpack[_Realtime]) -> None:
        """Take audio, pictures, typed words, and the client's marks of activity."""
        blob = given.get("media") or given.get("audio") or given.get("video")
        if blob is not None:
            self._perceive(blob)
        elif "text" in given:
            # ADK: this one word asks for an answer to the history.
            self._answer("" if given["text"] == "." else given["text"])
        elif "activity_start" in given:
            if self._ear.hold():
                self._speech_begins()
        elif self._ear.release():
            self._speech_ends()

    async def send_tool_response(
        self, *, function_responses: Sequence[types.FunctionResponse]
    ) -> None:
        """Take results; when all calls of a response have theirs, the next one is played."""
        for response in function_responses:
            if self._memory.asking(response) is None:
                self._wonder(response.name)
            if response.will_continue:
                continue
            scheduling = response.scheduling
            if scheduling is types.FunctionResponseScheduling.INTERRUPT:
                self._interrupt()
            asked = self._memory.settle(response)
            if asked and scheduling is not types.FunctionResponseScheduling.SILENT:
                self._ask(_Turn(asked.text, asked.number + 1))

    async def receive(self) -> AsyncIterator[types.LiveServerMessage]:
        """Yield the messages of the session as they come.

        Raises:
            google.genai.errors.APIError: The session is closed (code 1000), or the script says
                that the provider fails.
        """
        while True:
            yield await self._next()

    async def close(self) -> None:
        """End the session; who receives is told so."""
        self._closed = True
        self._news.set()

    async def _next(self) -> types.LiveServerMessage:
        while True:
            self._news.clear()
            if self._closed:
                raise errors.APIError(1000, {"message": "The session is closed."})
            if self._ready:
                return self._ready.popleft()
            if self._playing is None and self._turns:
                self._begin(self._turns.popleft())
            elif self._playing is not None:
                await self._step(self._playing)
            else:
                await self._news.wait()

    def _begin(self, turn: _Turn) -> None:
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
        asked = Asked(text=turn.text, number=turn.number, open={})
        self._memory.text, self._memory.answered = turn.text, turn.number + 1
        if turn.heard is not None and self._manners.ways.tells_input:
            # ADK: each transcript of a Gemini 3 is a whole one.
            size = 10_000 if self._manners.waits_for_results else response.delta_chars
            self._ready.extend(heard(turn.heard, size))
        messages = spoken(response, calls, self._manners.ways)
        self._playing = _Playing(response, messages, asked)

    async def _step(self, playing: _Playing) -> None:
        response = playing.response
        if playing.started:
            await self._pause(response.delay_ms)
        elif response.wait_ms:
            await self._pause(response.wait_ms)
        playing.started = True
        if self._playing is not playing:
            return
        message = next(playing.messages, None)
        if message is None:
            await self._finish(playing)
            return
        for call in (message.tool_call and message.tool_call.function_calls) or ():
            playing.asked.open[call.id or ""] = call.name or ""
            if playing.asked not in self._memory.asked:
                self._memory.asked.append(playing.asked)
        self._ready.append(message)

    async def _pause(self, milliseconds: float) -> None:
        if not milliseconds:
            await self._sleep(0)
            return
        pause = asyncio.ensure_future(self._sleep(milliseconds / 1000))
        cut = asyncio.ensure_future(self._silenced())
        try:
            await asyncio.wait([pause, cut], return_when=asyncio.FIRST_COMPLETED)
        finally:
            pause.cancel()
            cut.cancel()

    async def _silenced(self) -> None:
        while self._playing is not None and not self._closed:
            self._news.clear()
            await self._news.wait()

    async def _finish(self, playing: _Playing) -> None:
        response = playing.response
        failure = self._script.failure(response)
        if failure is not None:
            self._playing = None
            raise failure
        if response.hang:
            await self._news.wait()
            return
        self._end(interrupted=response.interrupted)
        if response.go_away:
            going = types.LiveServerGoAway(time_left="10s")
            self._ready.append(types.LiveServerMessage(go_away=going))

    def _end(self, *, interrupted: bool) -> None:
        playing, self._playing = self._playing, None
        if playing is None:
            return
        complete = not (self._manners.waits_for_results and playing.asked.open)
        self._ready.extend(ended(playing.response, interrupted=interrupted, complete=complete))
        if self._manners.resumable:
            update = types.LiveServerSessionResumptionUpdate(
                new_handle=self._memory.handle, resumable=True
            )
            self._ready.append(types.LiveServerMessage(session_resumption_update=update))

    def _interrupt(self) -> None:
        if self._playing is not None:
            self._end(interrupted=True)
            self._news.set()

    def _ask(self, turn: _Turn) -> None:
        self._turns.append(turn)
        self._news.set()

    def _wonder(self, name: str | None) -> None:
        sentence = f"The model got a result of {name}, which it had not called."
        memory = self._memory
        self._ask(_Turn(memory.text, memory.answered - 1, response=saying(sentence)))

    def _answer(self, text: str) -> None:
        self._interrupt()
        self._images = 0
        memory = self._memory
        self._ask(_Turn(text, 0) if text else _Turn(memory.text, memory.answered))

    def _perceive(self, blob: types.Blob) -> None:
        kind = blob.mime_type or ""
        if kind.startswith("image/"):
            self._images += 1
            return
        named = _RATE.search(kind)
        rate = int(named[1]) if named else 16_000
        if rate not in _RATES:
            raise errors.ClientError(400, {"message": f"Nobody can hear audio of {rate} Hz."})
        for boundary in self._ear.hear(blob.data or b"", rate):
            if boundary is Heard.START:
                self._speech_begins()
            else:
                self._speech_ends()

    def _speech_begins(self) -> None:
        self._tell_activity(types.VoiceActivityType.ACTIVITY_START)
        if self._manners.barge_in:
            self._interrupt()

    def _speech_ends(self) -> None:
        self._tell_activity(types.VoiceActivityType.ACTIVITY_END)
        words = self._script.hear(self._sound)
        self._images = 0
        self._ask(_Turn(words, 0, heard=words))

    def _sound(self) -> str:
        pictures = {0: "", 1: " and 1 picture"}.get(self._images, f" and {self._images} pictures")
        return self._ear.sound() + pictures

    def _tell_activity(self, kind: types.VoiceActivityType) -> None:
        if self._manners.tells_activity:
            activity = types.VoiceActivity(voice_activity_type=kind)
            self._ready.append(types.LiveServerMessage(voice_activity=activity))
            self._news.set()
