"""The connection of a live run to its model.

`LiveConnection` stands between ADK and the model's own connection: it can interrupt or mute the
model, renames calls, and keeps the text of a provider's errors out of spans and sessions.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from google.adk.models.llm_response import LlmResponse
from google.genai import errors, types
from websockets.exceptions import ConnectionClosed

from sluicegate.adk_private import (
    PartialContentConnection,
    continues_after_result,
    observe_live_messages,
)
from sluicegate.engine.guard.refuse_reserved_calls import refuse_reserved
from sluicegate.engine.models.intercept_model_calls import ModelFailed
from sluicegate.live.drop_answers_to_history import AnswerToHistory
from sluicegate.live.model_content_sender import GO_ON, CallNames, ModelContentSender

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Container, Sequence
    from typing import TypeAlias

    from google.adk.models.base_llm_connection import BaseLlmConnection, RealtimeInput
    from google.adk.models.llm_request import LlmRequest

    from sluicegate.engine.guard.guard import Connecting
    from sluicegate.live.model_input_rules import LiveModelRules
    from sluicegate.live.output_audio_fast_lane import AudioLane

    Shape: TypeAlias = Callable[[list[types.Content]], Awaitable[list[types.Content]]]
    """Puts the files that contents refer to into the form that the model reads."""

_RECONNECTS: Final = (1000, 1006, 1011)
"""ADK: after errors with these codes it connects again, if the model gave it a handle."""

_MARGIN: Final = 10.0
"""Seconds before the end of a connection in which the model's answer is not waited for any more."""

_END: Final = object()


@dataclass(frozen=True, slots=True)
class Again:
    """How a connection continues an earlier one.

    ``history`` is what was said before the first connection. ``resumes``: the session is resumed.
    ``sends_history``: a new session gets the history, which ADK does not send.
    """

    history: list[types.Content]
    resumes: bool = False
    sends_history: bool = False


class ConnectionOwner(CallNames, Protocol):
    """What a connection needs of its run."""

    @property
    def is_first_connection(self) -> bool:
        """Whether the run has not been connected before."""

    @property
    def audio_lane(self) -> AudioLane | None:
        """What plays audio that bypasses ADK; None if something observes it there."""

    def connected(self, connection: LiveConnection) -> None:
        """Use a connection from now on."""

    def going_away(self) -> None:
        """The model will end the connection; ADK opens the next one."""

    def failed(self, error: Exception) -> None:
        """Note the error of a connection."""

    async def before_end(self, *, reconnects: bool) -> None:
        """Prepare for the end of the run, or of the connection if ADK ``reconnects``."""

    def delivered(self) -> None:
        """Note that the input which ADK took last has reached the connection."""

    def is_whole(self, content: types.Content) -> bool:
        """Whether a content that ADK takes for a part of a message is a whole one."""

    def chat_call_id(self, call_id: str) -> str:
        """Return the chat's id for a call that the model has named."""

    def calls_cancelled(self, call_ids: Sequence[str]) -> None:
        """Note that the model has cancelled calls of the chat."""


@asynccontextmanager
async def open_connection(
    connect: Callable[[LlmRequest], Connecting],
    request: LlmRequest,
    owner: ConnectionOwner,
    shape: Shape,
    protocol: LiveModelRules,
    again: Again | None = None,
) -> AsyncGenerator[BaseLlmConnection, None]:
    """Connect to the model, which has the rules of ``protocol``.

    ``again``: the connection continues an earlier one of the same run.

    Raises:
        ModelFailed: The model refuses the connection.
    """
    async with AsyncExitStack() as stack:
        try:
            inner = await stack.enter_async_context(connect(request))
        except Exception as error:  # noqa: BLE001 - any exception of a provider has words
            raise _redacted(error, owner) from None
        connection = LiveConnection(inner, owner, shape, protocol, request.tools_dict)
        connection.again = again
        owner.connected(connection)
        await connection.catch_up()
        yield connection


class LiveConnection(PartialContentConnection):
    """Passes on what ADK sends, and what the model says until it is interrupted."""

    def __init__(
        self,
        inner: BaseLlmConnection,
        owner: ConnectionOwner,
        shape: Shape,
        protocol: LiveModelRules,
        declared: Container[str] = (),
    ) -> None:
        self._declared = declared
        self._lane = owner.audio_lane
        if self._lane is not None:
            self._lane.connect()
        self._inner = inner
        self._owner = owner
        self._shape = shape
        self._is_first = owner.is_first_connection
        self._received: asyncio.Queue[Any] = asyncio.Queue()
        self._partial = _PartialOutput()
        self._drops_output = False
        self._ended_transcript = ""
        self._is_muted = False
        self._heard = ""
        """What the user has said, as far as it is transcribed and not final."""
        self._going_away: LlmResponse | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._is_gone = False
        self._owes_answer = False
        self._answer_to_history = AnswerToHistory()
        self._protocol = protocol
        self.again: Again | None = None
        """How it continues an earlier connection."""
        self._input = ModelContentSender(inner, protocol, owner)
        observe_live_messages(inner, self._observe)
        self.continues_turn = continues_after_result(inner)
        """ADK: a Gemini 3 continues its turn after a tool result."""

    def interrupt(self) -> None:
        """End the output of the model; the rest of it is dropped, up to its end or new input."""
        self._ended_transcript = self._partial.transcript
        if self._is_muted:
            # The rest of the transcript is dropped.
            self._complete_heard(self)
        self.end_output(self)
        self._drops_output = True

    def end_output(self, source: LiveConnection) -> None:
        """Complete the partial output of this connection, or of the one that it replaces."""
        self._complete(source)
        self._answer_ends()
        self._received.put_nowait(LlmResponse(interrupted=True))

    @property
    def has_partial(self) -> bool:
        """Whether the user or the model has said something that is not complete."""
        return bool(self._heard) or self._partial.is_begun

    def go_on(self, previous: LiveConnection, *, was_cut: bool, is_unanswered: bool) -> None:
        """Continue what the previous connection leaves.

        ``was_cut``: the model was answering. ``is_unanswered``: it has yet to begin an answer.
        """
        memory = self._owner.memory
        is_begun = previous._partial.is_begun
        self._complete_heard(previous)
        self._complete(previous)
        if was_cut and is_begun:
            memory.add("user", GO_ON)
        elif was_cut and not memory.ends_with_user:
            # Only the end of the answer is missing.
            self._received.put_nowait(LlmResponse(turn_complete=True))
        self._owes_answer = memory.ends_with_user and (was_cut or is_unanswered)

    async def catch_up(self) -> None:
        """Send the model what it does not know."""
        again = self.again
        if again is None:
            return
        if again.sends_history:
            await self.send_history(again.history)
        elif again.resumes:
            await self._send(self._input.send_unknown(answered=self._owes_answer))

    def _complete_heard(self, source: LiveConnection) -> None:
        if source._heard:
            said = types.Transcription(text=source._heard, finished=True)
            source._heard = ""
            self._put(LlmResponse(input_transcription=said, partial=False))

    def _complete(self, source: LiveConnection) -> None:
        for response in source._partial.complete():
            self._put(response)

    def _put(self, response: LlmResponse) -> None:
        self._owner.memory.received(response)
        self._received.put_nowait(response)

    def _answer_ends(self) -> None:
        """Let ADK have what the model says next: it may belong to another answer."""
        if self._lane is not None:
            self._lane.begin()

    def mute(self) -> None:
        """Drop all further output of the model."""
        self._is_muted = True

    async def send_history(self, history: list[types.Content]) -> None:
        """Send the history so that the model does not answer it when the chat is opened again."""
        if self.again is not None:
            history = [*self.again.history, *self._owner.memory.contents]
        reopened = self._is_first or not (self.again is None or self._owes_answer)
        shaped = await self._with_files(history)
        if self._protocol.is_google and not self._protocol.is_gemini_3:
            self._answer_to_history.history_sent(asked=not reopened and bool(shaped))
        await self._send(self._input.send_history(shaped, reopened=reopened))

    async def send_partial(self, content: types.Content, *, partial: bool) -> None:
        """Send a content; ``partial``: the user's turn continues, unless it is a whole message."""
        is_whole = not partial or self._owner.is_whole(content)
        self._answer_ends()
        if is_whole:
            # Output from now on answers this content.
            self._drops_output = False
        self._owner.delivered()
        if is_whole:
            self._answer_to_history.message_sent()
        [content] = await self._with_files([content])
        await self._send(self._input.send(content, partial=not is_whole))

    async def answer_meanwhile(self, call: types.FunctionCall, *, announced: bool) -> None:
        """Answer a call that waits for a person (`ModelContentSender.answer_meanwhile`)."""
        await self._send(self._input.answer_meanwhile(call, announced=announced))

    async def send_realtime(self, blob: RealtimeInput) -> None:
        """Send audio, an image or a mark of activity."""
        self._owner.delivered()
        if isinstance(blob, types.ActivityStart):
            self._drops_output = False
        await self._send(self._inner.send_realtime(blob))  # type: ignore[arg-type]

    async def receive(self) -> AsyncGenerator[LlmResponse, None]:
        """Yield the model's output up to the end of one ``receive`` of its own connection."""
        reading = asyncio.create_task(self._read())
        try:
            while (item := await self._received.get()) is not _END:
                if isinstance(item, Exception):
                    error = _redacted(item, self._owner)
                    await self._owner.before_end(reconnects=error is item)
                    raise error from None
                yield item
        finally:
            reading.cancel()
            with suppress(asyncio.CancelledError):
                await reading

    async def close(self) -> None:
        """Close the connection."""
        if self._deadline is not None:
            self._deadline.cancel()
        await self._inner.close()

    async def _send(self, sending: Awaitable[None]) -> None:
        try:
            await sending
        except Exception as error:  # noqa: BLE001 - ADK would go on without a sender
            self._received.put_nowait(error)

    async def _read(self) -> None:
        try:
            # ADK: a `receive` that yields nothing ends the run.
            while await self._read_turn():
                pass
        except Exception as error:  # noqa: BLE001 - `receive` raises it
            await self._received.put(error)
        else:
            await self._received.put(_END)

    async def _read_turn(self) -> bool:
        """Read up to the end of one ``receive``; return whether all of it was dropped."""
        was_received = is_passed = False
        self._answer_ends()
        async for response in self._inner.receive():
            was_received = True
            if self._is_gone:
                # ADK takes nothing after the announcement: the next connection gets the rest.
                continue
            if response.go_away and not self._may_go(response):
                continue
            for each in self._answer_to_history.filter(response):
                is_passed = await self._process(each) or is_passed
            if self._going_away is not None and self._is_idle:
                self._go()
                is_passed = True
        return was_received and not is_passed

    async def _process(self, response: LlmResponse) -> bool:
        """Return whether ADK gets something of the response."""
        if not self._keep(response):
            self._answer_ends()
            return False
        self._partial.add(response)
        # ADK: in a live run no callback sees the calls of a response.
        refuse_reserved(response, self._declared)
        self._rename_calls(response)
        self._remember(response)
        if self._lane is not None and self._lane.bypasses(response):
            return False
        await self._received.put(response)
        return True

    def _remember(self, response: LlmResponse) -> None:
        heard = response.input_transcription
        if heard is not None:
            self._heard = "" if heard.finished else self._heard + (heard.text or "")
        self._owner.memory.received(response)
        if response.live_session_resumption_update is not None:
            self._owner.memory.became_resumable()

    @property
    def _is_idle(self) -> bool:
        """Whether the connection can be replaced without a loss."""
        memory = self._owner.memory
        if self._partial.is_begun or memory.ends_with_user:
            return False
        return self._input.has_open_calls or not memory.unknown

    def _may_go(self, response: LlmResponse) -> bool:
        """Whether ADK may open the next connection; otherwise it does once the model is idle."""
        seconds = _seconds(response.go_away) - _MARGIN if self._protocol.is_google else 0.0
        if seconds <= 0 or self._is_idle:
            self._is_gone = True
            self._owner.going_away()
            return True
        self._going_away = response
        self._deadline = asyncio.get_running_loop().call_later(seconds, self._go)
        return False

    def _go(self) -> None:
        response, self._going_away = self._going_away, None
        if response is not None:
            self._is_gone = True
            self._owner.going_away()
            self._received.put_nowait(response)

    def _observe(self, message: types.LiveServerMessage) -> None:
        cancellation = message.tool_call_cancellation
        if cancellation is not None:
            self._owner.calls_cancelled(self._input.calls_cancelled(cancellation.ids or ()))

    def _keep(self, response: LlmResponse) -> bool:
        """Remove what is to be dropped, but neither calls nor the end of a turn.

        Returns whether anything is left.
        """
        update = response.live_session_resumption_update
        if update is not None and not (update.resumable and update.new_handle):
            # ADK: an update while the session cannot be resumed replaces the last good handle.
            return False
        self._shorten_transcript(response)
        if self._is_muted or not self._drops_output:
            return not self._is_muted
        if response.interrupted or response.turn_complete:
            self._drops_output = False
            # `interrupt` has reported the interruption.
            return not response.interrupted
        if not (response.content or response.output_transcription):
            return True
        parts = (response.content and response.content.parts) or []
        calls = [part for part in parts if part.function_call is not None]
        response.content = types.Content(role="model", parts=calls)
        response.output_transcription = None
        if calls:
            # What follows reports their outcome.
            self._drops_output = False
        return bool(calls)

    def _shorten_transcript(self, response: LlmResponse) -> None:
        """Remove from a final transcript what was heard before an interruption, or dropped."""
        # ADK: its final transcript begins at the last end of a turn of the model.
        said = response.output_transcription
        if said is not None and said.finished:
            said.text = (said.text or "").removeprefix(self._ended_transcript)
            self._ended_transcript = ""
        elif said is not None and self._drops_output and self._ended_transcript:
            self._ended_transcript += said.text or ""

    async def _with_files(self, contents: list[types.Content]) -> list[types.Content]:
        return await self._shape(contents) if any(map(_has_files, contents)) else contents

    def _rename_calls(self, response: LlmResponse) -> None:
        for part in (response.content and response.content.parts) or ():
            if part.function_call is not None and part.function_call.id:
                part.function_call.id = self._owner.chat_call_id(part.function_call.id)
                self._input.call_issued(part.function_call.id)


class _PartialOutput:
    """The text and the transcript that the model has begun and not completed."""

    def __init__(self) -> None:
        self.transcript = ""
        """The transcript that is not final."""
        self._text = ""
        self._is_thought = False

    @property
    def is_begun(self) -> bool:
        """Whether there is any."""
        return bool(self._text or self.transcript)

    def add(self, response: LlmResponse) -> None:
        transcription = response.output_transcription
        if transcription is not None:
            more = transcription.text or ""
            self.transcript = "" if transcription.finished else self.transcript + more
        parts = (response.content and response.content.parts) or []
        texts = [part for part in parts if part.text]
        if not texts:
            return
        if not response.partial:
            self._text = ""
            return
        self._text += "".join(part.text or "" for part in texts)
        self._is_thought = bool(texts[-1].thought)

    def complete(self) -> list[LlmResponse]:
        """Return it as complete responses, and forget it."""
        completed: list[LlmResponse] = []
        if self._text:
            part = types.Part(text=self._text, thought=self._is_thought or None)
            content = types.Content(role="model", parts=[part])
            completed.append(LlmResponse(content=content, partial=False))
        if self.transcript:
            transcription = types.Transcription(text=self.transcript, finished=True)
            completed.append(LlmResponse(output_transcription=transcription, partial=False))
        self._text = self.transcript = ""
        return completed


def _seconds(going: types.LiveServerGoAway | None) -> float:
    """Return the time that is left to a connection."""
    try:
        return float(((going and going.time_left) or "0").removesuffix("s"))
    except ValueError:
        return 0.0


def _has_files(content: types.Content) -> bool:
    """Whether a content refers to files."""
    return any(
        part.file_data is not None
        or (part.function_response is not None and part.function_response.parts)
        for part in content.parts or ()
    )


def _redacted(error: Exception, owner: ConnectionOwner) -> Exception:
    """Return the error that ADK may raise: one after which it connects again stays as it is."""
    owner.failed(error)
    if isinstance(error, ConnectionClosed):
        return error
    if isinstance(error, errors.APIError) and error.code in _RECONNECTS:
        return error
    return ModelFailed(error)
