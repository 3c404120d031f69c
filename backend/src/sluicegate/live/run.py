"""One ``run_live`` of ADK: the input that it is sent, the session that it writes, and its end."""

from __future__ import annotations

import asyncio
import uuid
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from google.adk.events.event import Event
from google.genai import types

from sluicegate.adk_private import append_event, background_tasks
from sluicegate.core.event_reading import METADATA_KEY, callers_of
from sluicegate.core.reserved_call_names import is_reserved_id
from sluicegate.core.turn_stamp import ASIDE
from sluicegate.engine.current_guard import CURRENT_GUARD
from sluicegate.engine.turn.running_turn import telemetry_config
from sluicegate.engine.turn.session_log import SessionLog
from sluicegate.errors import StoreError
from sluicegate.live.history_as_text import call_text, event_contents
from sluicegate.live.input_queue import InputQueue
from sluicegate.live.model_connection import Again
from sluicegate.live.reconnection_history import ReconnectionHistory
from sluicegate.wire.live_frames import INPUT_RATE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.agents.run_config import RunConfig
    from google.adk.models.llm_request import LlmRequest
    from google.adk.runners import Runner
    from google.adk.sessions.base_session_service import BaseSessionService
    from google.adk.sessions.session import Session

    from sluicegate.core.chat_and_turn_keys import ChatKey
    from sluicegate.engine.guard.guard import ApprovalGuard
    from sluicegate.live.call_records import CallRecords
    from sluicegate.live.model_connection import LiveConnection
    from sluicegate.live.model_input_rules import LiveModelRules
    from sluicegate.live.options import LiveOptions
    from sluicegate.live.output_audio_fast_lane import AudioLane

AUDIO_TYPE: Final = f"audio/pcm;rate={INPUT_RATE}"

CUT_SHORT: Final = "[The user has stopped this answer here.]"
"""The text that informs a model that its answer was interrupted on purpose."""


@dataclass(frozen=True, slots=True)
class ConnectionCallbacks:
    """Callbacks for the state of the live model connection."""

    connected: Callable[[LiveConnection, LiveConnection | None], None]
    """Gets the connection, and the one that it replaces."""
    going_away: Callable[[], None]
    """Called when the model announces that it will end the connection."""
    calls_cancelled: Callable[[Sequence[str]], None]
    """Gets the ids, in the chat, of calls that the model has cancelled."""
    has_waiting_words: Callable[[], bool]
    """Whether the model may be keeping words waiting for the result of a call."""
    answer_results_first: Callable[[], None]
    """Called when it does."""


class LiveRun:
    """A live run of a chat; the one writer of its session."""

    def __init__(
        self,
        runner: Runner,
        chat: ChatKey,
        records: CallRecords,
        callbacks: ConnectionCallbacks,
        *,
        options: LiveOptions,
        audio_lane: AudioLane | None,
    ) -> None:
        """``audio_lane`` plays audio that bypasses ADK; None if something observes it there."""
        self.audio_lane = audio_lane
        self._runner = runner
        self._chat = chat
        self.records = records
        self._callbacks = callbacks
        self._options = options
        self.input = InputQueue(
            callbacks.has_waiting_words,
            callbacks.answer_results_first,
            options.timings.words_grace,
        )
        """The input of the model."""
        self._context: InvocationContext | None = None
        self._connection: LiveConnection | None = None
        self.memory = ReconnectionHistory()
        """What was said on the connections of the run."""
        self._whole: list[types.Content] = []
        self._call_contexts: dict[str, InvocationContext] = {}
        self._used_call_ids: set[str] = set()
        self._model_call_ids: dict[str, str] = {}
        self._waiting_calls: set[str] = set()
        self._earlier_events = 0
        self._request: LlmRequest | None = None
        self._contents: list[types.Content] = []
        self._started = asyncio.Event()
        self._over = asyncio.Event()
        self.error: Exception | None = None
        """The error that ended the run."""
        self.connection_error: Exception | None = None
        """The latest error of a connection to the model."""

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self._over.is_set()

    @property
    def invocation(self) -> str:
        """ADK's id of the run."""
        return "" if self._context is None else self._context.invocation_id

    @property
    def sessions(self) -> BaseSessionService:
        """The store of the session."""
        return self._runner.session_service

    @property
    def session(self) -> Session | None:
        """The session as the run has it."""
        return None if self._context is None else self._context.session

    @property
    def log(self) -> SessionLog:
        """The session, written to through the run."""
        return _RunSessionLog(self)

    async def drive(self, guard: ApprovalGuard, publish: Callable[[Event], None]) -> None:
        """Run until the model ends the run or this is cancelled; never raises what ADK raised.

        ``guard`` gets ADK's callbacks, ``publish`` each event after it was stored.
        """
        CURRENT_GUARD.set(guard)
        try:
            events = self._runner.run_live(
                user_id=self._chat.user,
                session_id=self._chat.chat,
                live_request_queue=self.input,
                run_config=self._config(),
            )
            async with aclosing(events) as drained:
                async for event in drained:
                    self.input.held_results.follow(event)
                    publish(event)
        except Exception as error:  # noqa: BLE001 - the one place that catches what ADK raises
            self.error = error
        finally:
            self._over.set()

    def started(self, context: InvocationContext) -> None:
        """Note ADK's context of the run."""
        self._context = context
        for event in context.session.events:
            self._used_call_ids.update(call.id or "" for call in event.get_function_calls())
            self._waiting_calls.difference_update(
                r.id or "" for r in event.get_function_responses()
            )
            self._waiting_calls.update(event.actions.requested_tool_confirmations)
        self._started.set()

    async def wait_started(self) -> None:
        """Wait until ADK has started the run."""
        await self._started.wait()

    def call_started(self, call_id: str, context: InvocationContext) -> None:
        """Note the context of a call's agent: ADK keeps the task of the call there."""
        self._call_contexts[call_id] = context

    # What the connection to the model needs (`model_connection.ConnectionOwner`).

    @property
    def is_first_connection(self) -> bool:
        """Whether the run has not been connected before."""
        return self._connection is None

    def connected(self, connection: LiveConnection) -> None:
        """Use a connection from now on."""
        self.input.reconnected()
        previous, self._connection = self._connection, connection
        self._callbacks.connected(connection, previous)

    def going_away(self) -> None:
        """The model will end the connection; ADK opens the next one."""
        self._callbacks.going_away()

    def failed(self, error: Exception) -> None:
        """Note the error of a connection, which only the log may quote."""
        self.connection_error = error

    async def before_end(self, *, reconnects: bool) -> None:
        """Wait for claimed calls: ADK cancels them with the run (A1)."""
        # ADK: the handle is kept in a copy of the context that the run began with.
        if not (reconnects and self.memory.is_resumable):
            await self.wait_claimed()

    def delivered(self) -> None:
        """Note that the input which ADK took last has reached the connection."""
        self.input.delivered()

    def is_whole(self, content: types.Content) -> bool:
        """Whether a content is a whole message; true once for each message."""
        for index, whole in enumerate(self._whole):
            if whole is content:
                del self._whole[index]
                return True
        return False

    def chat_call_id(self, call_id: str) -> str:
        """Return the id of a new call in the chat: the model's, unless it is in use."""
        is_taken = call_id in self._used_call_ids or is_reserved_id(call_id)
        chat_id = f"adk-{uuid.uuid4()}" if is_taken else call_id
        self._used_call_ids.add(chat_id)
        self._model_call_ids[chat_id] = call_id
        return chat_id

    def model_call_id(self, call_id: str) -> str:
        """Return the model's id of a call of the chat."""
        return self._model_call_ids.get(call_id, call_id)

    def describe_call(self, call_id: str, name: str) -> str:
        """Return a call of the session in words."""
        _, call = self._find_call(call_id)
        return name if call is None else call_text(call)

    def node_path_of(self, call_id: str) -> str:
        """Return the path of the node that has made a call, empty outside of nodes."""
        event, _ = self._find_call(call_id)
        return "" if event is None else event.node_info.path

    def is_waiting(self, call_id: str) -> bool:
        """Whether a call has been waiting for a decision since before the run."""
        return call_id in self._waiting_calls

    def calls_cancelled(self, call_ids: Sequence[str]) -> None:
        """Note that the model has cancelled calls of the chat."""
        self._callbacks.calls_cancelled(call_ids)

    def prepare_connection(self, request: LlmRequest, protocol: LiveModelRules) -> Again | None:
        """Prepare a request for a connection; returns how it continues an earlier one, if it does.

        A model of Google gets what a resumed session does not know. Others get what was said since
        the first connection of the request, if they resume no session.
        """
        # ADK: it sends the contents of the first connection to each that has no handle.
        events = self.session.events if self.session is not None else []
        if request is not self._request:
            self._request, self._contents = request, request.contents
            self._earlier_events = len(events)
            self.memory.clear()
            return None
        config = request.live_connect_config
        resumption = config.session_resumption
        resumes = resumption is not None and bool(resumption.handle)
        if protocol.is_google:
            partial = self._connection is not None and self._connection.has_partial
            # A model that takes contents only as its initial history gets all of it.
            restarts = resumes and protocol.is_sequential and bool(partial or self.memory.unknown)
            if restarts:
                config.session_resumption = types.SessionResumptionConfig()
            takes_history = restarts or not resumes
            # ADK: a session that is resumed would wait for its initial history again.
            config.history_config = (
                types.HistoryConfig(initial_history_in_client_content=True)
                if takes_history
                else None
            )
            # ADK: without contents it sends no history.
            request.contents = [*self._contents, *self.memory.contents]
            sends = restarts or (not resumes and not request.contents)
            return Again(self._contents, resumes and not restarts, sends)
        if not resumes:
            request.contents = [*self._contents, *event_contents(events[self._earlier_events :])]
            config.history_config = types.HistoryConfig(initial_history_in_client_content=True)
        return None

    # Input of the model.

    def send_message(self, content: types.Content) -> None:
        """Send a whole message, which is in the session already."""
        # ADK: it stores a whole message itself, without metadata and past every plugin. What it
        # takes for a part of one it only passes on.
        self._whole.append(content)
        self.input.send_content(content, partial=True)

    def send_results(self, content: types.Content) -> None:
        """Send results of calls, which are in the session already."""
        self.input.send_content(content)

    async def answer_meanwhile(self, call: types.FunctionCall, *, announced: bool) -> None:
        """Answer a call that waits for a person (`ModelContentSender.answer_meanwhile`).

        If an agent that the model has called made it, the call of that agent is answered.
        """
        if self._connection is not None:
            event, _ = self._find_call(call.id or "")
            callers = (self._find_call(each)[1] for each in callers_of(event))
            asked = next(filter(None, callers), call)
            await self._connection.answer_meanwhile(asked, announced=announced)

    def send_audio(self, pcm: bytes) -> None:
        """Send PCM16 at 16 kHz."""
        self.input.send_realtime(types.Blob(data=pcm, mime_type=AUDIO_TYPE))

    def send_image(self, data: bytes, media_type: str) -> None:
        """Send an image."""
        self.input.send_realtime(types.Blob(data=data, mime_type=media_type))

    def send_activity(self, *, begins: bool) -> None:
        """Mark where the user's speech begins or ends."""
        if begins:
            self.input.send_activity_start()
        else:
            self.input.send_activity_end()

    def interrupt_model(self) -> None:
        """End the model's output, and inform the model."""
        if self._connection is None:
            return
        self._connection.interrupt()
        content = types.Content(role="user", parts=[types.Part(text=CUT_SHORT)])
        self.input.send_content(content, partial=True)

    def mute_model(self) -> None:
        """Drop all further output of the model."""
        if self._connection is not None:
            self._connection.mute()

    def close(self) -> None:
        """Close the connection to the model, which ends the run unless a call runs."""
        self.input.close()

    # The session and the calls.

    async def store(self, event: Event) -> None:
        """Append an event to the session through the run.

        Raises:
            StoreError: the run has ended meanwhile.
        """
        if self._context is None or self.is_over:
            raise StoreError("a live run that does not run was given an event")
        storing = asyncio.create_task(append_event(self._context, event))
        ending = asyncio.create_task(self._over.wait())
        try:
            await asyncio.wait([storing, ending], return_when=asyncio.FIRST_COMPLETED)
            if not storing.done():
                raise StoreError("a live run ended before it had stored an event")
            storing.result()
        finally:
            storing.cancel()
            ending.cancel()

    async def cancel_calls(self, call_ids: Iterable[str]) -> None:
        """Cancel calls that run or wait; ADK stores no result of them."""
        tasks = self._tasks_of(call_ids)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=1.0)

    async def wait_claimed(self) -> None:
        """Wait until claimed calls have ended and their results are stored."""
        claims = self.records.claims
        tasks = self._tasks_of(claims.names())
        await claims.wait_idle()
        if tasks:
            await asyncio.wait(tasks)

    async def store_result(self, call_id: str, result: dict[str, Any]) -> types.Content | None:
        """Store the result of a call that ADK stores none of; returns it as the model gets it.

        Raises:
            StoreError: the run has ended meanwhile.
        """
        event, call = self._find_call(call_id)
        if event is None or call is None:
            return None
        response = types.FunctionResponse(id=call_id, name=call.name, response=result)
        content = types.Content(role="user", parts=[types.Part(function_response=response)])
        await self.store(
            Event(
                invocation_id=self.invocation,
                author=event.author,
                branch=event.branch,
                content=content,
            )
        )
        return content

    def _find_call(self, call_id: str) -> tuple[Event | None, types.FunctionCall | None]:
        events = self.session.events if self.session is not None else []
        calls = ((e, c) for e in reversed(events) for c in e.get_function_calls())
        return next(((e, c) for e, c in calls if c.id == call_id), (None, None))

    def _tasks_of(self, call_ids: Iterable[str]) -> list[asyncio.Task[object]]:
        tasks: list[asyncio.Task[object]] = []
        for call_id in call_ids:
            context = self._call_contexts.get(call_id)
            if context is not None and (task := background_tasks(context).get(call_id)):
                tasks.append(task)
        return tasks

    def _config(self) -> RunConfig:
        config = self._options.run_config
        changes: dict[str, Any] = {
            "custom_metadata": {METADATA_KEY: {ASIDE: True}},
            "telemetry": telemetry_config(contents=self._options.trace_contents),
        }
        if self._options.marked_by_client:
            detection = types.AutomaticActivityDetection(disabled=True)
            realtime = config.realtime_input_config or types.RealtimeInputConfig()
            changes["realtime_input_config"] = realtime.model_copy(
                update={"automatic_activity_detection": detection}
            )
        return config.model_copy(update=changes)


class _RunSessionLog(SessionLog):
    """The session of a run; events are appended through the run."""

    def __init__(self, run: LiveRun) -> None:
        super().__init__(run.sessions)
        self._run = run

    async def load(self, chat: ChatKey) -> Session | None:
        return self._run.session

    async def _append(self, session: Session, event: Event) -> None:
        await self._run.store(event)
