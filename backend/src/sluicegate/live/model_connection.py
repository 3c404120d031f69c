"""The connection of a live run to its model.

`LiveConnection` stands between ADK and the model's own connection: it can interrupt or mute the
model, renames calls, and keeps the text of a provider's errors out of spans and sessions.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, Protocol

from google.adk.models.llm_response import LlmResponse
from google.genai import errors, types
from websockets.exceptions import ConnectionClosed

from sluicegate.adk_private import PartialContentConnection, continues_after_result, send_content
from sluicegate.engine.guard.refuse_reserved_calls import refuse_reserved
from sluicegate.engine.models.intercept_model_calls import ModelFailed

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Container
    from typing import TypeAlias

    from google.adk.models.base_llm_connection import BaseLlmConnection, RealtimeInput
    from google.adk.models.llm_request import LlmRequest

    from sluicegate.engine.guard.guard import Connecting

    Shape: TypeAlias = Callable[[list[types.Content]], Awaitable[list[types.Content]]]
    """Puts the files that contents refer to into the form that the model reads."""

LATE_OUTPUT: Final = 2.0
"""Seconds after an interruption in which output of the model still belongs to the old answer."""

ASKED: Final = "I have asked the user to allow this, and am waiting for the answer."
LISTENING: Final = "I am listening."
"""Ends of a history that the model does not answer when the user opens the chat again."""

_RECONNECTS: Final = (1000, 1006, 1011)
"""ADK: after errors with these codes it connects again, if the model gave it a handle."""

_END: Final = object()


class ConnectionOwner(Protocol):
    """What a connection needs of its run."""

    @property
    def is_first_connection(self) -> bool:
        """Whether the run has not been connected before."""

    def connected(self, connection: LiveConnection) -> None:
        """Use a connection from now on."""

    def going_away(self) -> None:
        """The model will end the connection; ADK opens the next one."""

    def failed(self, error: Exception) -> None:
        """Note the error of a connection."""

    async def before_end(self, *, reconnects: bool) -> None:
        """Prepare for the end of the run, or of the connection if ADK ``reconnects``."""

    def is_whole(self, content: types.Content) -> bool:
        """Whether a content that ADK takes for a part of a message is a whole one."""

    def chat_call_id(self, call_id: str) -> str:
        """Return the chat's id for a call that the model has named."""

    def model_call_id(self, call_id: str) -> str:
        """Return the model's id of a call of the chat."""


@asynccontextmanager
async def open_connection(
    connect: Callable[[LlmRequest], Connecting],
    request: LlmRequest,
    owner: ConnectionOwner,
    shape: Shape,
) -> AsyncGenerator[BaseLlmConnection, None]:
    """Connect to the model.

    Raises:
        ModelFailed: The model refuses the connection.
    """
    async with AsyncExitStack() as stack:
        try:
            inner = await stack.enter_async_context(connect(request))
        except Exception as error:  # noqa: BLE001 - any exception of a provider has words
            raise _redacted(error, owner) from None
        connection = LiveConnection(inner, owner, shape, request.tools_dict)
        owner.connected(connection)
        yield connection


class LiveConnection(PartialContentConnection):
    """Passes on what ADK sends, and what the model says until it is interrupted."""

    def __init__(
        self,
        inner: BaseLlmConnection,
        owner: ConnectionOwner,
        shape: Shape,
        declared: Container[str] = (),
    ) -> None:
        self._declared = declared
        self._inner = inner
        self._owner = owner
        self._shape = shape
        self._is_first = owner.is_first_connection
        self._received: asyncio.Queue[Any] = asyncio.Queue()
        self._partial = _PartialOutput()
        self._drops_output_until = 0.0
        self._is_muted = False
        self.continues_turn = continues_after_result(inner)
        """ADK: a Gemini 3 continues its turn after a tool result."""

    def interrupt(self) -> None:
        """End the output of the model; the rest of it is dropped."""
        self.end_output(self)
        self._drops_output_until = asyncio.get_running_loop().time() + LATE_OUTPUT

    def end_output(self, source: LiveConnection) -> None:
        """Complete the partial output of this connection, or of the one that it replaces."""
        for response in source._partial.complete():
            self._received.put_nowait(response)
        self._received.put_nowait(LlmResponse(interrupted=True))

    def mute(self) -> None:
        """Drop all further output of the model."""
        self._is_muted = True

    async def send_history(self, history: list[types.Content]) -> None:
        """Send the history so that the model does not answer it when the chat is opened again."""
        last = history[-1] if history else None
        if self._is_first and last is not None and last.role == "user":
            # ADK: it has the model answer a history that ends with the user, or with a result, and
            # the placeholder of a call that waits is one.
            text = types.Part(text=ASKED if _has_results(last) else LISTENING)
            history = [*history, types.Content(role="model", parts=[text])]
        await self._send(self._inner.send_history(await self._with_files(history)))

    async def send_partial(self, content: types.Content, *, partial: bool) -> None:
        """Send a content; ``partial``: the user's turn continues, unless it is a whole message."""
        is_whole = not partial or self._owner.is_whole(content)
        if is_whole:
            # Output from now on answers this content.
            self._drops_output_until = 0.0
        [content] = await self._with_files([self._with_model_ids(content)])
        await self._send(send_content(self._inner, content, partial=not is_whole))

    async def send_realtime(self, blob: RealtimeInput) -> None:
        """Send audio, an image or a mark of activity."""
        if isinstance(blob, types.ActivityStart):
            self._drops_output_until = 0.0
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
        await self._inner.close()

    async def _send(self, sending: Awaitable[None]) -> None:
        try:
            await sending
        except Exception as error:  # noqa: BLE001 - ADK would go on without a sender
            self._received.put_nowait(error)

    async def _read(self) -> None:
        try:
            async for response in self._inner.receive():
                if response.go_away:
                    self._owner.going_away()
                if not self._is_dropped(response):
                    self._partial.add(response)
                    # ADK: in a live run no callback sees the calls of a response.
                    refuse_reserved(response, self._declared)
                    self._rename_calls(response)
                    await self._received.put(response)
        except Exception as error:  # noqa: BLE001 - `receive` raises it
            await self._received.put(error)
        else:
            await self._received.put(_END)

    def _is_dropped(self, response: LlmResponse) -> bool:
        if self._is_muted:
            return True
        if asyncio.get_running_loop().time() >= self._drops_output_until:
            return False
        if response.interrupted or response.turn_complete:
            self._drops_output_until = 0.0
            return True
        return bool(response.content or response.output_transcription)

    async def _with_files(self, contents: list[types.Content]) -> list[types.Content]:
        return await self._shape(contents) if any(map(_has_files, contents)) else contents

    def _rename_calls(self, response: LlmResponse) -> None:
        for part in (response.content and response.content.parts) or ():
            if part.function_call is not None and part.function_call.id:
                part.function_call.id = self._owner.chat_call_id(part.function_call.id)

    def _with_model_ids(self, content: types.Content) -> types.Content:
        """Return the content with the model's ids of the calls that it has results of."""
        if not _has_results(content):
            return content
        fresh = content.model_copy(deep=True)
        for part in fresh.parts or []:
            if part.function_response is not None and part.function_response.id:
                model_id = self._owner.model_call_id(part.function_response.id)
                part.function_response.id = model_id
        return fresh


class _PartialOutput:
    """The text and the transcript that the model has begun and not completed."""

    def __init__(self) -> None:
        self._transcript = ""
        self._text = ""
        self._is_thought = False

    def add(self, response: LlmResponse) -> None:
        transcription = response.output_transcription
        if transcription is not None:
            more = transcription.text or ""
            self._transcript = "" if transcription.finished else self._transcript + more
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
        if self._transcript:
            transcription = types.Transcription(text=self._transcript, finished=True)
            completed.append(LlmResponse(output_transcription=transcription, partial=False))
        self._text = self._transcript = ""
        return completed


def _has_results(content: types.Content) -> bool:
    return any(part.function_response is not None for part in content.parts or ())


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
