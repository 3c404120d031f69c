"""What the server itself says to a live model, in the user's place."""

from __future__ import annotations

import asyncio
import uuid
from contextlib import aclosing
from typing import TYPE_CHECKING, Final

from google.adk.agents.run_config import RunConfig
from google.adk.events.event import Event
from google.adk.live.live_request_queue import LiveRequestQueue
from google.genai import types

from sluicegate.adk_private import append_event, background_tasks
from sluicegate.core.exchanges import ASIDE, METADATA_KEY
from sluicegate.core.release.base import NOT_FINISHED
from sluicegate.engine.turn.runner import TELEMETRY
from sluicegate.engine.turn.session_log import SessionLog
from sluicegate.engine.turn_context import CURRENT_TURN
from sluicegate.errors import StoreError
from sluicegate.wire.live_frames import INPUT_RATE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.runners import Runner
    from google.adk.sessions.base_session_service import BaseSessionService
    from google.adk.sessions.session import Session

    from sluicegate.core.keys import ChatKey
    from sluicegate.live.approvals import LiveApprovalGuard
    from sluicegate.live.connection import LiveConnection

CUT_SHORT: Final = "[The user has stopped this answer here.]"
"""What the model is told when somebody stops it."""


AUDIO_TYPE: Final = f"audio/pcm;rate={INPUT_RATE}"


class LiveRun:
    """A live run of a chat; the gate is its only link to what ADK does within."""

    def __init__(
        self, runner: Runner, chat: ChatKey, gate: LiveApprovalGuard, *, marked_by_client: bool
    ) -> None:
        """Prepare it. ``marked_by_client``: the client says when somebody speaks."""
        self._runner = runner
        self._chat = chat
        self.gate = gate
        self._marked_by_client = marked_by_client
        self._queue = LiveRequestQueue()
        self._context: InvocationContext | None = None
        self._connection: LiveConnection | None = None
        self._whole: list[types.Content] = []
        self._taken: set[str] = set()
        self._calls: dict[str, InvocationContext] = {}
        self._models: dict[str, str] = {}
        self._over = asyncio.Event()
        self.error: Exception | None = None
        """What ended it, if it failed."""

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self._over.is_set()

    @property
    def is_resumable(self) -> bool:
        """Whether the model has given a handle with which ADK connects again."""
        return bool(self._context and self._context.live_session_resumption_handle)

    @property
    def invocation(self) -> str:
        """ADK's id of the run."""
        return "" if self._context is None else self._context.invocation_id

    @property
    def connection(self) -> LiveConnection | None:
        """The connection to the model, once there is one."""
        return self._connection

    @property
    def sessions(self) -> BaseSessionService:
        """Where the session is."""
        return self._runner.session_service

    @property
    def log(self) -> SessionLog:
        """The session, written to through the run."""
        return _LogOfRun(self)

    async def drive(self, deliver: Callable[[Event], None]) -> None:
        """Run until the model or whoever cancels this ends it; never raises what ADK raised."""
        CURRENT_TURN.set(self.gate)
        try:
            events = self._runner.run_live(
                user_id=self._chat.user,
                session_id=self._chat.chat,
                live_request_queue=self._queue,
                run_config=self._config(),
            )
            async with aclosing(events) as drained:
                async for event in drained:
                    deliver(event)
        except Exception as error:  # noqa: BLE001 - the one place that catches what ADK raises
            self.error = error
        finally:
            self._over.set()

    def began(self, context: InvocationContext) -> None:
        """ADK has begun it."""
        self._context = context
        for event in context.session.events:
            self._taken.update(call.id or "" for call in event.get_function_calls())

    def began_call(self, call_id: str, context: InvocationContext) -> None:
        """A call is looked at; ADK keeps what runs it in the context of its agent."""
        self._calls[call_id] = context

    def opened(self, connection: LiveConnection) -> None:
        """The model listens."""
        self._connection = connection

    def say(self, content: types.Content) -> None:
        """Give the model a whole message; it is in the session already."""
        # ADK: it stores a whole message itself, without a mark and past every plugin. What it
        # takes for a part of one it only passes on.
        self._whole.append(content)
        self._queue.send_content(content, partial=True)

    def answer(self, content: types.Content) -> None:
        """Give the model results of calls, which are in the session already."""
        self._queue.send_content(content)

    def hear(self, pcm: bytes) -> None:
        """Let the model hear a piece of audio."""
        self._queue.send_realtime(types.Blob(data=pcm, mime_type=AUDIO_TYPE))

    def see(self, data: bytes, media_type: str) -> None:
        """Let the model see a picture."""
        self._queue.send_realtime(types.Blob(data=data, mime_type=media_type))

    def mark(self, *, begins: bool) -> None:
        """Say that the user begins to speak, or has spoken."""
        if begins:
            self._queue.send_activity_start()
        else:
            self._queue.send_activity_end()

    def cut(self) -> None:
        """End what the model says, and tell it so."""
        if self._connection is None:
            return
        self._connection.cut()
        told = types.Content(role="user", parts=[types.Part(text=CUT_SHORT)])
        self._queue.send_content(told, partial=True)

    def deafen(self) -> None:
        """Hear nothing that the model says any more."""
        if self._connection is not None:
            self._connection.deafen()

    def close(self) -> None:
        """Have the connection to the model closed, which ends the run if nothing keeps it."""
        self._queue.close()

    async def store(self, event: Event) -> None:
        """Store an event through the run, which is the session's one writer.

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

    async def drop_calls(self, call_ids: Iterable[str]) -> None:
        """End calls at work or waiting; they get no result from ADK."""
        tasks = self._tasks_of(call_ids)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=1.0)

    async def await_claimed(self) -> None:
        """Wait until claimed calls have come to their end and their results are stored."""
        claims = self.gate.claims
        tasks = self._tasks_of(claims.names())
        await claims.done()
        if tasks:
            await asyncio.wait(tasks)

    def _tasks_of(self, call_ids: Iterable[str]) -> list[asyncio.Task[object]]:
        tasks: list[asyncio.Task[object]] = []
        for call_id in call_ids:
            context = self._calls.get(call_id)
            if context is not None and (task := background_tasks(context).get(call_id)):
                tasks.append(task)
        return tasks

    async def give_up(self, call_id: str) -> None:
        """Answer a call that was dropped, as one that did not finish."""
        self.gate.outcomes[call_id] = {"kind": "error", "text": NOT_FINISHED.text}
        called = next(
            (
                (event, call)
                for event in reversed(self._context.session.events if self._context else [])
                for call in event.get_function_calls()
                if call.id == call_id
            ),
            None,
        )
        if called is None:
            return
        event, call = called
        response = types.FunctionResponse(
            id=call_id, name=call.name, response={"error": NOT_FINISHED.text}
        )
        await self.store(
            Event(
                invocation_id=self.invocation,
                author=event.author,
                branch=event.branch,
                content=types.Content(role="user", parts=[types.Part(function_response=response)]),
            )
        )

    def session(self) -> Session | None:
        """The session as the run has it."""
        return None if self._context is None else self._context.session

    def is_whole(self, content: types.Content) -> bool:
        """Whether a content is a whole message; asked once for each."""
        for index, whole in enumerate(self._whole):
            if whole is content:
                del self._whole[index]
                return True
        return False

    def own_id(self, call_id: str) -> str:
        """The id of a call in this chat: the model's, unless that is taken."""
        own = f"adk-{uuid.uuid4()}" if call_id in self._taken else call_id
        self._taken.add(own)
        self._models[own] = call_id
        return own

    def models_id(self, call_id: str) -> str:
        """The model's id of a call of this chat."""
        return self._models.get(call_id, call_id)

    def _config(self) -> RunConfig:
        listening = None
        if self._marked_by_client:
            by_itself = types.AutomaticActivityDetection(disabled=True)
            listening = types.RealtimeInputConfig(automatic_activity_detection=by_itself)
        return RunConfig(
            response_modalities=[types.Modality.AUDIO],
            realtime_input_config=listening,
            session_resumption=types.SessionResumptionConfig(),
            custom_metadata={METADATA_KEY: {ASIDE: True}},
            telemetry=TELEMETRY,
        )


class _LogOfRun(SessionLog):
    """The session of a run; what is appended goes through the run."""

    def __init__(self, run: LiveRun) -> None:
        super().__init__(run.sessions)
        self._run = run

    async def load(self, chat: ChatKey) -> Session | None:
        """The session as the run has it."""
        return self._run.session()

    async def _append(self, session: Session, event: Event) -> None:
        await self._run.store(event)
