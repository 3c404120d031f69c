"""The tools of a live run: copies that keep neither the model nor the server from going on."""

from __future__ import annotations

import asyncio
import copy
import inspect
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from google.adk.models.llm_response import LlmResponse
from google.adk.tools.function_tool import FunctionTool
from google.genai import errors, types
from websockets.exceptions import ConnectionClosed

from sluicegate.adk_private import (
    PartialContentConnection,
    continues_after_result,
    send_content,
    tool_threads,
)
from sluicegate.engine.models.redact_errors import ModelFailed

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from google.adk.models.base_llm import BaseLlm
    from google.adk.models.base_llm_connection import BaseLlmConnection, RealtimeInput
    from google.adk.models.llm_request import LlmRequest
    from google.adk.tools.base_tool import BaseTool
    from google.adk.tools.tool_context import ToolContext

    from sluicegate.engine.guard.guard import Connecting
    from sluicegate.live.run import LiveRun

_ADKS_OWN: Final = frozenset(
    {"transfer_to_agent", "task_completed", "finish_task", "exit_loop", "stop_streaming"}
)
"""ADK: it acts on the results of these only where its receiving loop has made them itself."""


def copy_tools(tools: dict[str, BaseTool], *, beside: bool) -> None:
    """Put copies in place of the tools of a request whose declarations are made already.

    ``beside``: ADK runs them beside its receiving loop, so that the model is heard meanwhile.
    """
    for name, tool in list(tools.items()):
        if name not in _ADKS_OWN:
            tools[name] = _copy(tool, beside=beside)


def _copy(tool: BaseTool, *, beside: bool) -> BaseTool:
    fresh = copy.copy(tool)
    if beside:
        fresh.behavior = types.Behavior.NON_BLOCKING
    if isinstance(tool, FunctionTool) and _is_synchronous(tool.func):
        run = fresh.run_async

        # ADK: its own setting for threads runs coroutines in loops of their own, if it runs live.
        async def run_async(*, args: dict[str, Any], tool_context: ToolContext) -> Any:
            with tool_threads(_THREADS):
                return await run(args=args, tool_context=tool_context)

        vars(fresh)["run_async"] = run_async
    return fresh


def _is_synchronous(function: Callable[..., Any]) -> bool:
    called = getattr(function, "__call__", None)  # noqa: B004 - a callable object's own method
    return not (
        inspect.iscoroutinefunction(function)
        or inspect.isasyncgenfunction(function)
        or inspect.iscoroutinefunction(called)
    )


_THREADS: Final = 4


STRAGGLING: Final = 2.0
"""Seconds after a cut in which the model may still say what nobody hears any more."""

ASKED: Final = "I have asked the user to allow this, and am waiting for the answer."
LISTENING: Final = "I am listening."
"""What the model has said last, when somebody comes back to a chat in which it had not."""

_RECONNECTS: Final = (1000, 1006, 1011)
"""ADK: after errors with these codes it connects again, if the model gave it a handle."""

_END: Final = object()


class Listener(Protocol):
    """Who is told of a connection."""

    @property
    def is_first(self) -> bool:
        """Whether no connection of the run was before."""

    def opened(self, connection: LiveConnection) -> None:
        """The model listens."""

    def going_away(self) -> None:
        """The model will end the connection; ADK opens the next one."""

    def failed(self, error: Exception) -> None:
        """The model has failed with this."""

    async def ending(self, *, connects_again: bool) -> None:
        """The connection is about to end the run, or to be replaced where ADK can do that."""

    async def shaped(self, contents: list[types.Content]) -> list[types.Content]:
        """The contents with the files they refer to, as the model reads them."""

    def is_whole(self, content: types.Content) -> bool:
        """Whether a content that ADK takes for a part of a message is a whole one."""

    def own_id(self, call_id: str) -> str:
        """The id of a call in this chat, for the one the model gave it."""

    def models_id(self, call_id: str) -> str:
        """The other way round."""


@asynccontextmanager
async def listened_to(
    connected: Callable[[LlmRequest], Connecting], request: LlmRequest, listener: Listener
) -> AsyncGenerator[BaseLlmConnection, None]:
    """Connect to the model; whatever it raises has no words of its own."""
    async with AsyncExitStack() as stack:
        try:
            inner = await stack.enter_async_context(connected(request))
        except Exception as error:  # noqa: BLE001 - whatever a provider raises has words
            raise _quiet(error, listener) from None
        connection = LiveConnection(inner, listener, is_first=listener.is_first)
        listener.opened(connection)
        yield connection


class LiveConnection(PartialContentConnection):
    """Passes on what ADK sends, and what the model says until it is cut."""

    def __init__(
        self, inner: BaseLlmConnection, listener: Listener, *, is_first: bool = True
    ) -> None:
        """``is_first``: no connection of the run was before it."""
        self._is_first = is_first
        self._inner = inner
        self._listener = listener
        self._incoming: asyncio.Queue[Any] = asyncio.Queue()
        self._spoken = _Unfinished()
        self._deaf_until = 0.0
        self._is_deaf = False
        self.one_turn = continues_after_result(inner)
        """ADK: a Gemini 3 goes on with its turn when the result of a call is there."""

    def cut(self) -> None:
        """End what the model says: the rest of it is not heard."""
        self.end_what_was_said(self)
        self._deaf_until = asyncio.get_running_loop().time() + STRAGGLING

    def end_what_was_said(self, before: LiveConnection) -> None:
        """End what the model has begun to say, on this connection or the one before it."""
        for response in before._spoken.whole():
            self._incoming.put_nowait(response)
        self._incoming.put_nowait(LlmResponse(interrupted=True))

    def deafen(self) -> None:
        """Hear nothing that the model says any more."""
        self._is_deaf = True

    async def send_history(self, history: list[types.Content]) -> None:
        """Pass on the history; who has just come has not asked anything yet."""
        last = history[-1] if history else None
        if self._is_first and last is not None and last.role == "user":
            # ADK: it has the model answer a history that ends with the user, or with a result, and
            # the placeholder of a call that waits is one.
            words = ASKED if _answers(last) else LISTENING
            text = types.Part(text=words)
            history = [*history, types.Content(role="model", parts=[text])]
        await self._said(self._inner.send_history(await self._shaped(history)))

    async def send_partial(self, content: types.Content, *, partial: bool) -> None:
        """Pass on a content; ``partial``: more of the user's turn follows."""
        is_whole = not partial or self._listener.is_whole(content)
        if is_whole:
            # What is said from now on answers this.
            self._deaf_until = 0.0
        [content] = await self._shaped([self._with_models_ids(content)])
        await self._said(send_content(self._inner, content, partial=not is_whole))

    async def send_realtime(self, blob: RealtimeInput) -> None:
        """Pass on audio, a picture or a mark of activity."""
        if isinstance(blob, types.ActivityStart):
            self._deaf_until = 0.0
        await self._said(self._inner.send_realtime(blob))  # type: ignore[arg-type]

    async def receive(self) -> AsyncGenerator[LlmResponse, None]:
        """What the model says, up to the end of one of the model's own receptions."""
        hearing = asyncio.create_task(self._hear())
        try:
            while (found := await self._incoming.get()) is not _END:
                if isinstance(found, Exception):
                    error = _quiet(found, self._listener)
                    await self._listener.ending(connects_again=error is found)
                    raise error from None
                yield found
        finally:
            hearing.cancel()
            with suppress(asyncio.CancelledError):
                await hearing

    async def close(self) -> None:
        """Close the connection."""
        await self._inner.close()

    async def _said(self, sending: Any) -> None:
        try:
            await sending
        except Exception as error:  # noqa: BLE001 - ADK would go on without a sender
            self._incoming.put_nowait(error)

    async def _hear(self) -> None:
        try:
            async for response in self._inner.receive():
                if response.go_away:
                    self._listener.going_away()
                if not self._is_lost(response):
                    self._spoken.note(response)
                    self._rename(response)
                    await self._incoming.put(response)
        except Exception as error:  # noqa: BLE001 - whoever receives raises it
            await self._incoming.put(error)
        else:
            await self._incoming.put(_END)

    def _is_lost(self, response: LlmResponse) -> bool:
        """Whether nobody hears this any more."""
        if self._is_deaf:
            return True
        if asyncio.get_running_loop().time() >= self._deaf_until:
            return False
        if response.interrupted or response.turn_complete:
            self._deaf_until = 0.0
            return True
        return bool(response.content or response.output_transcription)

    async def _shaped(self, contents: list[types.Content]) -> list[types.Content]:
        return await self._listener.shaped(contents) if any(map(_refers, contents)) else contents

    def _rename(self, response: LlmResponse) -> None:
        for part in (response.content and response.content.parts) or ():
            if part.function_call is not None and part.function_call.id:
                part.function_call.id = self._listener.own_id(part.function_call.id)

    def _with_models_ids(self, content: types.Content) -> types.Content:
        """The content with the model's own ids of the calls it answers."""
        parts = content.parts or []
        if not any(part.function_response for part in parts):
            return content
        fresh = content.model_copy(deep=True)
        for part in fresh.parts or []:
            if part.function_response is not None and part.function_response.id:
                models_id = self._listener.models_id(part.function_response.id)
                part.function_response.id = models_id
        return fresh


class _Unfinished:
    """What was said of a text or a transcript whose whole has not come yet."""

    def __init__(self) -> None:
        self._transcript = ""
        self._text = ""
        self._is_thought = False

    def note(self, response: LlmResponse) -> None:
        said = response.output_transcription
        if said is not None:
            self._transcript = "" if said.finished else self._transcript + (said.text or "")
        parts = (response.content and response.content.parts) or []
        texts = [part for part in parts if part.text]
        if not texts:
            return
        if not response.partial:
            self._text = ""
            return
        self._text += "".join(part.text or "" for part in texts)
        self._is_thought = bool(texts[-1].thought)

    def whole(self) -> list[LlmResponse]:
        """The same as wholes, which are then known."""
        found: list[LlmResponse] = []
        if self._text:
            part = types.Part(text=self._text, thought=self._is_thought or None)
            content = types.Content(role="model", parts=[part])
            found.append(LlmResponse(content=content, partial=False))
        if self._transcript:
            spoken = types.Transcription(text=self._transcript, finished=True)
            found.append(LlmResponse(output_transcription=spoken, partial=False))
        self._text = self._transcript = ""
        return found


def _answers(content: types.Content) -> bool:
    return any(part.function_response is not None for part in content.parts or ())


def _refers(content: types.Content) -> bool:
    """Whether a content refers to files."""
    return any(
        part.file_data is not None
        or (part.function_response is not None and part.function_response.parts)
        for part in content.parts or ()
    )


def _quiet(error: Exception, listener: Listener) -> Exception:
    """The error as ADK needs it: those after which it connects again stay what they are."""
    listener.failed(error)
    if isinstance(error, ConnectionClosed):
        return error
    if isinstance(error, errors.APIError) and error.code in _RECONNECTS:
        return error
    return ModelFailed(error)


@dataclass(frozen=True, slots=True)
class Listening:
    """What is called when the model listens, and when it will go away."""

    ready: Callable[[LiveConnection, LiveConnection | None], None]
    """Takes the connection, and the one before it."""
    going_away: Callable[[], None]


class Ears:
    """The listener of one connection (`connection.Listener`)."""

    def __init__(
        self, run: LiveRun, listening: Listening, model: BaseLlm | None, name: str | None
    ) -> None:
        """Take the run that connects, and the model; ``name`` is what the request calls it."""
        self._run = run
        self._listening = listening
        self._model = model
        self._name = name

    @property
    def is_first(self) -> bool:
        """Whether the run has not been connected before."""
        return self._run.connection is None

    def opened(self, connection: LiveConnection) -> None:
        """The model listens."""
        before = self._run.connection
        self._run.opened(connection)
        self._listening.ready(connection, before)

    def going_away(self) -> None:
        """The model will end the connection."""
        self._listening.going_away()

    def failed(self, error: Exception) -> None:
        """The model has failed; the log is told what with."""
        self._run.gate.model_error = error

    async def ending(self, *, connects_again: bool) -> None:
        """Let claimed calls come to their end: with the run, ADK would cancel them (A1)."""
        if not (connects_again and self._run.is_resumable):
            await self._run.await_claimed()

    async def shaped(self, contents: list[types.Content]) -> list[types.Content]:
        """The contents with the files they refer to."""
        models = self._run.gate.models
        if self._model is None:
            return contents
        return list((await models.shape(contents, self._model, self._name)).contents)

    def is_whole(self, content: types.Content) -> bool:
        """Whether a content is a whole message."""
        return self._run.is_whole(content)

    def own_id(self, call_id: str) -> str:
        """The id of a call in this chat."""
        return self._run.own_id(call_id)

    def models_id(self, call_id: str) -> str:
        """The model's own id of a call."""
        return self._run.models_id(call_id)
