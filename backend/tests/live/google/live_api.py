"""A Live API on the wire, which Google's own client connects to, and which accepts no violation.

It does what the documentation, and where that is silent public reports, say of each model family.
A rule that a client breaks is noted in `LiveApi.violations`; where the server is known to close the
connection for it, it is closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from google.genai import types
from websockets.asyncio.server import ServerConnection, serve

from tests.live.google.certificates import Certificates

LIMIT: Final = 30.0
"""Seconds after which a test fails that waits for an event."""

SOUND: Final = bytes(480)
"""The audio of each word of the model."""

HISTORY: Final = "history"
UNASKED: Final = "As I said."
"""What a model says that answers its history."""

BargeIn = Literal["answer", "queue", "cancel"]
"""Input while a call is open: it is answered at once, it waits for the result of the call, or it
cancels the call and is answered."""


@dataclass(frozen=True)
class Family:
    """What a family of models takes and does.

    ``non_blocking``: it honours NON_BLOCKING. ``content_later``: it takes clientContent after the
    start. ``completes_at_call``: a turn ends with its calls. ``pieces``: it transcribes in pieces.
    """

    model: str
    non_blocking: bool
    content_later: bool
    completes_at_call: bool
    pieces: bool
    is_3: bool
    barge_in: BargeIn


GEMINI_2_5 = Family(
    "gemini-2.5-flash-native-audio-preview-12-2025",
    non_blocking=True,
    content_later=True,
    completes_at_call=True,
    pieces=True,
    is_3=False,
    barge_in="answer",
)
GEMINI_3_1 = Family(
    "gemini-3.1-flash-live-preview",
    non_blocking=False,
    content_later=False,
    completes_at_call=False,
    pieces=False,
    is_3=True,
    barge_in="queue",
)
GEMINI_3_8 = Family(
    "gemini-3.8-live",
    non_blocking=True,
    content_later=True,
    completes_at_call=False,
    pieces=False,
    is_3=True,
    barge_in="answer",
)


@dataclass(frozen=True)
class Say:
    """The model speaks."""

    text: str


@dataclass(frozen=True)
class Call:
    """The model calls a tool."""

    name: str
    args: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class Pause:
    """The model stops in the middle until the test goes on."""

    reached: asyncio.Event = field(default_factory=asyncio.Event)
    may_go_on: asyncio.Event = field(default_factory=asyncio.Event)

    async def stop(self) -> None:
        """Stop until the test goes on."""
        self.reached.set()
        await self.may_go_on.wait()


Step = Say | Call | Pause
Script = Mapping[str, Sequence[Step]]
"""The model's responses, by a text that is looked for in its input: what is typed or said, or
``NAME -> {json}`` for results. The first one that fits is played."""


def speech(words: str) -> bytes:
    """Audio of one utterance, as the double understands it."""
    return words.encode("utf-16-le")


class LiveApi:
    """The server: its sessions, and what it has seen."""

    def __init__(self, family: Family, script: Script, *, barge_in: BargeIn | None = None) -> None:
        self.family = replace(family, barge_in=barge_in or family.barge_in)
        self.script = script
        self.url = ""
        self.late_transcripts = False
        """Whether what the user said is transcribed after the answer has begun."""
        self.transcript_pause: Pause | None = None
        """Where the transcript of what the user said stops, before its last piece; the model does
        not speak meanwhile."""
        self.answers_history = False
        """Whether the model answers a history, as Gemini 2.5 may."""
        self.unasked_pause: Pause | None = None
        """Where the model stops after that."""
        self.sends_handles = True
        self.may_set_up = asyncio.Event()
        """Whether a setup is completed at once."""
        self.may_set_up.set()
        self.context_limit: int | None = None
        """Words that a session without compression holds."""
        self.violations: list[str] = []
        self.inputs: list[str] = []
        """What the model has received, in words: ``typed: …``, ``said: …``, ``NAME -> {json}``."""
        self.connections: list[Connection] = []
        self.handles: dict[str, list[str]] = {}
        """The conversations that can be resumed."""
        self._changed = asyncio.Event()

    @property
    def last(self) -> Connection:
        """The newest connection."""
        return self.connections[-1]

    def violated(self, rule: str) -> None:
        """Note that the client has broken a rule."""
        self.violations.append(rule)
        self.changed()

    def changed(self) -> None:
        """Wake the tests that wait."""
        self._changed.set()

    async def until(self, found: Callable[[], object]) -> None:
        """Wait until something is so."""
        async with asyncio.timeout(LIMIT):
            while not found():
                self._changed.clear()
                await self._changed.wait()

    async def received(self, text: str, count: int = 1) -> None:
        """Wait until the model has received a text so often."""
        await self.until(lambda: sum(text in each for each in self.inputs) >= count)

    async def serve_one(self, socket: ServerConnection) -> None:
        """Serve one connection."""
        connection = Connection(self, socket)
        self.connections.append(connection)
        await connection.run()
        self.changed()

    def steps(self, text: str) -> Sequence[Step]:
        """Return the response to an input."""
        if text == HISTORY:
            return [Say(UNASKED), *([self.unasked_pause] if self.unasked_pause else [])]
        for key, steps in self.script.items():
            if key in text:
                return steps
        self.violated(f"unscripted input: {text}")
        return ()


class Setup(types.LiveClientSetup):
    """The first message; the class of the client lacks a member that the client sends."""

    realtime_input_config: types.RealtimeInputConfig | None = None


class ClientMessage(types.LiveClientMessage):
    """A message of the client."""

    setup: Setup | None = None


class Refused(Exception):
    """The server closes the connection; ``code`` is that of the closing frame."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class Connection:
    """One connection, with the session that it began or resumed."""

    def __init__(self, api: LiveApi, socket: ServerConnection) -> None:
        self.api = api
        self.family = api.family
        self.socket = socket
        self.setup: Setup | None = None
        self.context: list[str] = []
        """What the model knows of the conversation."""
        self.open_calls: dict[str, str] = {}
        self.cancelled: set[str] = set()
        self.is_over = False
        self._blocking: set[str] = set()
        self._declared: dict[str, types.FunctionDeclaration] = {}
        self._takes_history = False
        self._waiting: list[str] = []
        self._heard: str | None = None
        self._untranscribed: str | None = None
        self._transcribing: asyncio.Task[None] | None = None
        self._generating: asyncio.Task[None] | None = None
        self._in_turn = False
        self._calls = 0

    @property
    def is_generating(self) -> bool:
        """Whether the model generates."""
        return self._generating is not None and not self._generating.done()

    @property
    def is_working(self) -> bool:
        """Whether the model generates, or has calls or input to finish."""
        busy = self.is_generating or self.open_calls or self._waiting
        return not self.is_over and bool(busy)

    @property
    def _queues_speech(self) -> bool:
        """Whether speech waits until the model has spoken."""
        realtime = self.setup and self.setup.realtime_input_config
        handling = realtime and realtime.activity_handling
        return self.is_generating and handling is types.ActivityHandling.NO_INTERRUPTION

    async def run(self) -> None:
        """Serve it until one side closes it."""
        try:
            async for data in self.socket:
                await self._receive(data)
        except Refused as refusal:
            self.api.violated(str(refusal))
            await self.socket.close(refusal.code, str(refusal)[:100])
        finally:
            self.is_over = True
            for task in (self._generating, self._transcribing):
                if task is not None:
                    task.cancel()

    # What a test does.

    async def drop(self, code: int) -> None:
        """End the connection; 1006 cuts the line."""
        self.is_over = True
        if self._generating is not None:
            self._generating.cancel()
        if code == 1006:
            self.socket.transport.abort()
        else:
            await self.socket.close(code, "as the test wants it")

    async def go_away(self, time_left: str = "10s") -> None:
        """Announce the end of the connection."""
        await self._send(go_away=types.LiveServerGoAway(time_left=time_left))

    async def cancel_calls(self) -> None:
        """Cancel the open calls."""
        ids = list(self.open_calls)
        self.cancelled.update(ids)
        self.open_calls.clear()
        self._blocking.clear()
        self._in_turn = False
        await self._send(tool_call_cancellation=types.LiveServerToolCallCancellation(ids=ids))

    async def update_handle(self) -> None:
        """Send a handle of the session, or the empty one while it cannot be resumed."""
        if self.setup is None or self.setup.session_resumption is None:
            return
        update = types.LiveServerSessionResumptionUpdate()
        if self.api.sends_handles and not (self.open_calls or self.is_generating):
            handle = f"handle-{len(self.api.handles) + 1}"
            self.api.handles[handle] = [*self.context]
            update = types.LiveServerSessionResumptionUpdate(new_handle=handle, resumable=True)
        await self._send(session_resumption_update=update)

    # What the client sends.

    async def _receive(self, data: str | bytes) -> None:
        try:
            message = ClientMessage.model_validate_json(data)
        except ValueError as error:
            raise Refused(1007, f"unknown field: {error}") from None
        kinds = message.model_dump(exclude_none=True).keys()
        if len(kinds) != 1:
            raise Refused(1007, f"a message of {sorted(kinds)}")
        if (message.setup is None) != (self.setup is not None):
            raise Refused(1007, "setup is the first message, and no other")
        if message.setup is not None:
            await self._set_up(message.setup)
        elif message.client_content is not None:
            await self._content(message.client_content)
        elif message.realtime_input is not None:
            await self._realtime(message.realtime_input)
        elif message.tool_response is not None:
            await self._results(message.tool_response.function_responses or [])
        self.api.changed()

    async def _set_up(self, setup: Setup) -> None:
        self.setup = setup
        self.api.changed()
        await self.api.may_set_up.wait()
        if setup.model != f"models/{self.family.model}":
            raise Refused(1008, f"{setup.model} is not found")
        for tool in setup.tools or []:
            for declared in (isinstance(tool, types.Tool) and tool.function_declarations) or ():
                self._declared[declared.name or ""] = declared
                if declared.behavior is not None and not self.family.non_blocking:
                    raise Refused(1007, "behavior is not supported")
        others = [each for each in self.api.connections if each is not self]
        resumption = setup.session_resumption
        if resumption is not None and resumption.handle:
            if resumption.handle not in self.api.handles:
                raise Refused(1007, "the handle is not one of this server")
            if any(not each.is_over for each in others):
                raise Refused(1011, "the session is in use")
            self.context = [*self.api.handles[resumption.handle]]
        history = setup.history_config
        self._takes_history = bool(history and history.initial_history_in_client_content)
        await self._send(setup_complete=types.LiveServerSetupComplete(session_id="s"))

    async def _content(self, content: types.LiveClientContent) -> None:
        parts = [part for turn in content.turns or [] for part in turn.parts or []]
        if any(part.function_call or part.function_response for part in parts):
            raise Refused(1007, "calls and results are not allowed in clientContent")
        turns = content.turns or []
        lines = [f"{turn.role}: {_text(turn)}" for turn in turns]
        if self._takes_history:
            if content.turn_complete:
                self._takes_history = False
                if not self.family.is_3 and turns and turns[-1].role != "user":
                    self.api.violated("a history of 2.5 ends with the user")
            await self._add(*lines)
            if content.turn_complete and self.api.answers_history:
                self._generate(HISTORY)
            return
        if not self.family.content_later:
            raise Refused(1007, "clientContent is allowed as initial history only")
        if any(turn.role not in ("user", "model") for turn in turns):
            raise Refused(1007, "a turn has the role user or model")
        await self._interrupt()
        await self._add(*lines)
        if content.turn_complete:
            await self._input("typed", _text(turns[-1]) if turns else "", in_context=True)

    async def _realtime(self, given: types.LiveClientRealtimeInput) -> None:
        if self._takes_history:
            raise Refused(1007, "realtime input before the end of the initial history")
        if given.media_chunks and self.family.is_3:
            raise Refused(1007, "mediaChunks is deprecated")
        detection = self._detection()
        if (given.activity_start or given.activity_end) and not detection.disabled:
            raise Refused(1007, "activity marks while detection is automatic")
        if given.activity_start:
            self._heard = ""
            await self._interrupt()
        for blob in (given.audio, given.video, *(given.media_chunks or ())):
            if isinstance(blob, types.Blob):
                await self._media(blob, by_client=bool(detection.disabled))
        if given.activity_end and self._heard is not None:
            heard, self._heard = self._heard, None
            await self._said(heard)
        if given.text is not None:
            await self._input("typed", given.text)

    async def _media(self, blob: types.Blob, *, by_client: bool) -> None:
        if not (blob.mime_type or "").startswith("audio/"):
            self.api.inputs.append(f"seen: {blob.mime_type} of {len(blob.data or b'')} bytes")
            await self._add(f"user: [{blob.mime_type}]")
            return
        words = (blob.data or b"").decode("utf-16-le").strip("\0")
        if by_client:
            self._heard = (self._heard or "") + words
        elif words:
            if not self._queues_speech:
                await self._interrupt()
            await self._said(words)

    async def _said(self, words: str) -> None:
        await self._transcribe_late()
        self._untranscribed = words
        if not self.api.late_transcripts:
            await self._transcribe_late()
        await self._input("said", words)

    async def _transcribe_late(self) -> None:
        if self._untranscribed is not None:
            words, self._untranscribed = self._untranscribed, None
            await self._transcribe(words)

    async def _transcribe(self, words: str) -> None:
        pieces = words.split(" ") if self.family.pieces else [words]
        for index, piece in enumerate(pieces):
            text = piece if index == 0 else f" {piece}"
            pause = self.api.transcript_pause
            if pause is not None and index == len(pieces) - 1:
                # What the client sends meanwhile is received.
                self._transcribing = asyncio.create_task(self._heard_after(pause, text))
            else:
                await self._heard_as(text)

    async def _heard_after(self, pause: Pause, text: str) -> None:
        await pause.stop()
        await self._heard_as(text)

    async def _heard_as(self, text: str) -> None:
        await self._content_of(input_transcription=types.Transcription(text=text))

    async def _results(self, results: Sequence[types.FunctionResponse]) -> None:
        lines: list[str] = []
        silent = True
        for result in results:
            name = self.open_calls.pop(result.id or "", None)
            if name is None:
                kind = "cancelled" if result.id in self.cancelled else "unknown"
                raise Refused(1008, f"a response for the {kind} call {result.id}")
            if name != result.name:
                self.api.violated(f"a response of {result.name} for a call of {name}")
            self._blocking.discard(result.id or "")
            lines.append(f"{name} -> {json.dumps(result.response)}")
            if result.will_continue:
                if not self.family.non_blocking:
                    self.api.violated("a response before the result of a call that blocks")
                self.open_calls[result.id or ""] = name
            is_silent = result.scheduling is types.FunctionResponseScheduling.SILENT
            silent = silent and is_silent and self.family.non_blocking
        self.api.inputs += lines
        await self._add(*lines)
        if silent or self._blocking:
            await self._answer_waiting()
        else:
            self._generate(" ".join(lines))

    # What the model does.

    async def _input(self, kind: str, text: str, *, in_context: bool = False) -> None:
        self.api.inputs.append(f"{kind}: {text}")
        if not in_context:
            await self._add(f"user: {text}")
        if self.open_calls and self.family.barge_in == "cancel":
            await self.cancel_calls()
        is_queued = kind == "said" and self._queues_speech
        if is_queued or self._blocking or (self.open_calls and self.family.barge_in == "queue"):
            self._waiting.append(f"{kind}: {text}")
            return
        await self._interrupt()
        self._generate(f"{kind}: {text}")

    async def _interrupt(self) -> None:
        task = self._generating
        if task is None or task.done() or task is asyncio.current_task():
            return
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        self._in_turn = False
        await self._content_of(interrupted=True)
        await self._transcribe_late()
        await self._content_of(turn_complete=True)
        await self.update_handle()

    def _generate(self, text: str) -> None:
        previous = self._generating
        self._generating = asyncio.create_task(self._respond(text, previous))

    async def _respond(self, text: str, previous: asyncio.Task[None] | None) -> None:
        if previous is not None:
            await asyncio.wait([previous])
        if self._transcribing is not None:
            await asyncio.wait([self._transcribing])
        await self.update_handle()
        called = False
        self._in_turn = True
        for step in self.api.steps(text):
            if isinstance(step, Pause):
                await step.stop()
            elif isinstance(step, Say):
                called = False
                await self._say(step.text)
            else:
                called = True
                await self._call(step)
        await self._transcribe_late()
        if not (called and self._blocking and not self.family.completes_at_call):
            self._in_turn = False
            if not called:
                await self._content_of(generation_complete=True)
            await self._content_of(turn_complete=True)
        self._generating = None
        await self.update_handle()
        await self._answer_waiting()
        self.api.changed()

    async def _answer_waiting(self) -> None:
        if self._waiting and not self._blocking:
            self._generate(self._waiting.pop(0))

    async def _say(self, text: str) -> None:
        for index, word in enumerate(text.split(" ")):
            blob = types.Blob(data=SOUND, mime_type="audio/pcm;rate=24000")
            turn = types.Content(role="model", parts=[types.Part(inline_data=blob)])
            await self._content_of(model_turn=turn)
            said = word if index == 0 else f" {word}"
            await self._content_of(output_transcription=types.Transcription(text=said))
        await self._add(f"model: {text}")

    async def _call(self, step: Call) -> None:
        self._calls += 1
        call_id = f"{step.name}-{len(self.api.connections)}-{self._calls}"
        self.open_calls[call_id] = step.name
        declared = self._declared.get(step.name)
        if declared is None:
            self.api.violated(f"{step.name} is not declared")
        elif not self.family.non_blocking or (
            declared.behavior is not types.Behavior.NON_BLOCKING and self.family is not GEMINI_3_8
        ):
            self._blocking.add(call_id)
        call = types.FunctionCall(id=call_id, name=step.name, args=dict(step.args))
        await self._add(f"call: {step.name}")
        await self._send(tool_call=types.LiveServerToolCall(function_calls=[call]))

    async def _add(self, *lines: str) -> None:
        self.context += lines
        self.api.changed()
        limit = self.api.context_limit
        words = sum(len(line.split()) for line in self.context)
        if limit is None or words <= limit:
            return
        compression = self.setup.context_window_compression if self.setup is not None else None
        if compression is None or compression.sliding_window is None:
            raise Refused(1011, "the context is full")
        while sum(len(line.split()) for line in self.context) > limit // 2:
            del self.context[0]

    def _detection(self) -> types.AutomaticActivityDetection:
        realtime = self.setup and self.setup.realtime_input_config
        detection = realtime and realtime.automatic_activity_detection
        return detection or types.AutomaticActivityDetection()

    async def _content_of(self, **members: Any) -> None:
        await self._send(server_content=types.LiveServerContent(**members))

    async def _send(self, **members: Any) -> None:
        message = types.LiveServerMessage(**members)
        await self.socket.send(message.model_dump_json(by_alias=True, exclude_none=True))


def _text(content: types.Content) -> str:
    return " ".join(
        part.text or f"[{part.inline_data.mime_type if part.inline_data else 'a part'}]"
        for part in content.parts or []
    )


@contextlib.asynccontextmanager
async def serving_live_api(api: LiveApi, certificates: Certificates) -> AsyncIterator[LiveApi]:
    """Serve a Live API on a free port over TLS."""
    context = certificates.server_context()
    async with serve(api.serve_one, "localhost", 0, ssl=context, max_size=None) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        api.url = f"https://localhost:{port}"
        yield api
        for connection in api.connections:
            await connection.drop(1006)
