"""A chat that is open live: its socket's requests, audio and frames, and decisions."""

from __future__ import annotations

import asyncio
import functools
from typing import TYPE_CHECKING, Final, Protocol

from google.adk.events.event import Event

from sluicegate.core.chat_and_turn_keys import ChatKey
from sluicegate.core.history import resumable
from sluicegate.engine.agents.unsupported_agents import live_refusal
from sluicegate.engine.chat_titles import title_of
from sluicegate.engine.files.user_message_files import user_content
from sluicegate.engine.respond_without_turn import stored
from sluicegate.engine.telemetry import refused_by
from sluicegate.engine.turn.builder import TurnSetup
from sluicegate.engine.turn.lease_owner_ids import new_live_owner
from sluicegate.errors import (
    HeldByAnotherOwner,
    Malformed,
    NotRewindable,
    TakenOver,
    TooManyRequests,
    TurnRunning,
    Unavailable,
)
from sluicegate.live.context import LiveContext
from sluicegate.live.outgoing_frame_queue import ChatEnded, LiveFrameQueue
from sluicegate.live.successive_runs import LiveRunSupervisor
from sluicegate.wire.live_frames import (
    ActivityFrame,
    ImageFrame,
    InterruptFrame,
    live_client_frame_members,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluicegate.core.plan import ChatLog, ContinueExchange, NewExchange
    from sluicegate.core.release.policies import ReleasePolicy
    from sluicegate.engine.chat_engine import ChatEngine
    from sluicegate.engine.client_request_options import RequestingClient
    from sluicegate.engine.open_resources import EngineResources
    from sluicegate.engine.turn.reader import TurnReader
    from sluicegate.live.exchange import LiveExchange
    from sluicegate.live.options import LiveOptions
    from sluicegate.live.run_session import LiveRunSession
    from sluicegate.wire.chunks import BaseChunk
    from sluicegate.wire.frames import ResumeFrame
    from sluicegate.wire.live_frames import LiveClientFrame
    from sluicegate.wire.requests import ChatRequest

ANOTHER_CHAT: Final = "This socket is open for another chat; open one for this chat."
NOT_MARKED: Final = "Open the socket with activity=client to mark where speech begins and ends."


class OpenChat(Protocol):
    """A chat that is open live, as its socket uses it."""

    @property
    def outbox(self) -> LiveFrameQueue:
        """The frames and audio that answer no request."""

    async def start(
        self, request: ChatRequest, *, user: str, client: RequestingClient
    ) -> TurnReader:
        """Begin or continue an exchange.

        Raises:
            RequestError: nothing has changed.
        """

    async def resume(
        self, frame: ResumeFrame, *, user: str, client: RequestingClient
    ) -> TurnReader | None:
        """Return a message from its beginning, or None if there is nothing to resume."""

    def receive_audio(self, pcm: bytes) -> None:
        """Pass PCM16 at 16 kHz to the model."""

    def receive_frame(self, frame: LiveClientFrame) -> None:
        """Process an image, an activity mark or an interruption.

        Raises:
            RequestError: the frame is refused.
        """

    async def close(self) -> None:
        """Close the chat."""


async def open_live(
    engine: ChatEngine,
    chat_id: str,
    *,
    user: str,
    client: RequestingClient,
    options: LiveOptions,
) -> OpenChat:
    """Open a chat live; the caller closes it.

    A chat that is open live is taken over from its socket, in this process or at another replica.

    Raises:
        HeldByAnotherOwner: the chat is being answered, or the other replica does not release it.
        Malformed: a tool of the agent asks where a live run does not continue.
        RequestError: too many chats are open.
    """
    resources = engine.resources
    if (refusal := live_refusal(resources.survey)) is not None:
        raise Malformed(refusal)
    chat = ChatKey(resources.app, user, chat_id)
    owner = new_live_owner()
    fence = await _acquire(resources, chat, owner)
    recorder = resources.recorder
    record = None if recorder is None else functools.partial(recorder.frame, chat, sender="server")
    outbox = LiveFrameQueue(with_audio=options.with_audio, record=record)
    approve = functools.partial(
        engine.approvals.decide,
        body={"approved": True},
        user=user,
        via="voice",
        is_identified=False,
    )
    context = LiveContext(
        resources, chat, owner, fence, client, outbox, lambda: engine.lock(chat), approve, options
    )
    live = LiveChat(engine, context)
    # From here on a newer socket finds the owner of the lease.
    resources.turns.chat_owners.add(chat, live)
    try:
        await live.open()
    except BaseException:
        await live.close()
        raise
    return live


async def _acquire(resources: EngineResources, chat: ChatKey, owner: str) -> int:
    """Acquire the lease of a chat, from the live chat that has it; return the fencing token."""
    options = resources.options
    within = options.tool_timeout + options.lease_ttl
    while True:
        current = resources.turns.chat_owners.of(chat)
        if current is not None:
            await current.take_over()
        _check_limits(resources, chat.user)
        try:
            return await resources.leases.acquire(chat, owner)
        except HeldByAnotherOwner:
            is_released = await resources.replicas.release(chat, within)
            # Another socket of this process may have got the chat meanwhile.
            if not is_released and resources.turns.chat_owners.of(chat) in (None, current):
                raise


def _check_limits(resources: EngineResources, user: str) -> None:
    owners = resources.turns.chat_owners
    if owners.count() >= resources.options.max_live_chats:
        refused_by("max_live_chats")
        raise Unavailable("The server is busy; try again in a moment.", retry_after=5)
    if owners.count(user) >= resources.options.max_live_chats_per_user:
        refused_by("max_live_chats_per_user")
        raise TooManyRequests("Too many of your chats are open live; close one.", retry_after=5)


class LiveChat:
    """An open live chat with one socket; implements `ChatOwner` and `OpenChat`."""

    def __init__(self, engine: ChatEngine, context: LiveContext) -> None:
        self._engine = engine
        self._context = context
        self._runs = LiveRunSupervisor(context, release=self._release)
        self._opening = asyncio.Lock()
        self._closing: asyncio.Task[None] | None = None

    @property
    def owner(self) -> str:
        """The owner of the lease and of the chat's claims."""
        return self._context.owner

    @property
    def outbox(self) -> LiveFrameQueue:
        """The frames and audio that answer no request."""
        return self._context.outbox

    async def open(self) -> None:
        """Create the chat if it is new, and start the first run."""
        sessions, chat = self._context.resources.session_log, self._context.chat
        async with self._opening:
            if await sessions.load(chat) is None:
                await sessions.create(chat)
            await self._runs.start()

    async def start(
        self, request: ChatRequest, *, user: str, client: RequestingClient
    ) -> TurnReader:
        """Begin or continue an exchange.

        Raises:
            RequestError: nothing has changed.
        """
        self._check(request.chat_id, user)
        if self._closing is not None:
            raise TakenOver
        self._context.client = client
        return await self._engine.start(request, user=user, client=client, origin=self)

    async def resume(
        self, frame: ResumeFrame, *, user: str, client: RequestingClient
    ) -> TurnReader | None:
        """Return the running message from its beginning, or the one that is named (section 7)."""
        chat_id, message_id = frame.chat_id, frame.message_id
        self._check(chat_id, user)
        self._context.client = client
        resources, chat = self._context.resources, self._context.chat
        running = resources.turns.running(chat)
        if running is not None and message_id in (None, running.stamp.message):
            return await self._engine.resume(chat_id, user=user, client=client)
        if message_id is None:
            return None
        log = await resources.logs.load(chat)
        exchange = next((e for e in log.exchanges if e.message_id == message_id), None)
        if exchange is None:
            return None
        rebuilt = log.rebuild(exchange)
        if not resumable(rebuilt, major=client.major):
            return None
        reader = stored(rebuilt, 0, major=client.major)
        return self._engine.resumed(reader, chat_id, user=user, client=client)

    def receive_audio(self, pcm: bytes) -> None:
        """Send PCM16 at 16 kHz to the model."""
        self._context.record(pcm)
        if not self._session.run.is_over:
            self._session.run.send_audio(pcm)

    def receive_frame(self, frame: LiveClientFrame) -> None:
        """Process an image, an activity mark or an interruption.

        Raises:
            Malformed: the model detects activity itself.
        """
        if isinstance(frame, ActivityFrame) and not self._context.options.marked_by_client:
            raise Malformed(NOT_MARKED)
        self._context.record(live_client_frame_members(frame))
        run = self._session.run
        match frame:
            case InterruptFrame():
                self._session.interrupt()
            case ActivityFrame(begins=begins) if not run.is_over:
                run.send_activity(begins=begins)
            case ImageFrame(media_type=media_type, data=data) if not run.is_over:
                run.send_image(data, media_type)

    async def start_exchange(
        self, plan: NewExchange, release: ReleasePolicy, client: RequestingClient
    ) -> TurnReader:
        """Begin an exchange with a text of the socket; waiting calls are superseded (A5).

        Raises:
            RequestError: nothing has changed.
        """
        context, resources = self._context, self._context.resources
        if plan.rewound or plan.message is None:
            raise NotRewindable
        resources.turns.admit(context.chat.user)
        content = await user_content(
            resources.files,
            context.chat,
            plan.message,
            resources.upload_quotas,
            resources.uploads,
        )
        async with context.lock:
            opening = await self._supersede(plan)
            session = self._session
            run, exchange_queue = session.run, session.exchange_queue
            if run.is_over:
                raise Unavailable
            exchange = exchange_queue.create(plan.user_message_id, release, spoken=False)
            exchange.is_announced = exchange.has_user_message = True
            stamp = exchange.current.stamp
            setup = TurnSetup(exchange_queue.key(exchange), stamp, release, opening=opening)
            # The client may interrupt the answer as soon as it reads its beginning.
            exchange_queue.utterances.expect_answer(exchange)
            try:
                reader = await exchange_queue.publish(exchange, setup, major=client.major)
            except BaseException:
                exchange_queue.drop(exchange)
                raise
            event = Event(
                invocation_id=run.invocation,
                author="user",
                content=content,
                custom_metadata=stamp.as_metadata(),
            )
            await run.store(event)
            await resources.chats.touch(context.chat, title=title_of(content))
            run.send_message(content)
            if exchange.is_stopping:
                # The model had nothing to end when it was interrupted.
                run.interrupt_model()
        return reader

    async def continue_exchange(
        self,
        log: ChatLog,
        plan: ContinueExchange,
        release: ReleasePolicy,
        client: RequestingClient,
        *,
        own: bool,
    ) -> TurnReader | None:
        """Continue an exchange whose calls are decided, or read its running turn; else None."""
        async with self._context.lock:
            exchange_queue = self._session.exchange_queue
            message = plan.exchange.exchange.message_id
            exchange = next((e for e in exchange_queue.exchanges if e.message == message), None)
            if exchange is None or exchange.is_earlier:
                return await self._runs.continue_earlier(log, plan, release, client, own=own)
            running = exchange_queue.running(exchange)
            if running is not None:
                return await self._context.resources.turns.reader(running, major=client.major)
            if exchange.phase != "waiting" or len(exchange.unpublished) > 1:
                return None
            await self._session.pending.read()
            exchange.is_announced = own
            reader = await self._session.continuation.continue_exchange(
                exchange, log, plan, release, major=client.major
            )
            if reader is not None:
                exchange_queue.show(exchange)
            return reader

    async def stop(self) -> None:
        """Stop the running turn, or supersede the calls that wait."""
        turns = self._context.resources.turns
        running = turns.running(self._context.chat)
        if running is not None:
            await turns.stop(running)
            return
        async with self._context.lock:
            head = self._session.exchange_queue.head
            if head is not None and head.phase == "waiting":
                await self._close_exchange(head)
                await self._session.pending.read()
                await self._session.exchange_queue.advance_locked()

    async def take_over(self) -> None:
        """Close the chat for a newer socket of its user; this one is closed at once."""
        self.outbox.send(ChatEnded(TakenOver(), "lease_lost"))
        async with self._opening:
            await self.close()

    async def close(self) -> None:
        """Close the chat after its claimed calls; calls that wait keep waiting."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._runs.close())
        await asyncio.shield(self._closing)

    def _check(self, chat_id: str, user: str) -> None:
        if (user, chat_id) != (self._context.chat.user, self._context.chat.chat):
            raise Malformed(ANOTHER_CHAT)

    @property
    def _session(self) -> LiveRunSession:
        return self._runs.current

    def _release(self) -> ReleasePolicy:
        return self._engine.release_for(self._context.client)

    async def _supersede(self, plan: NewExchange) -> Sequence[BaseChunk]:
        """Close the exchange that waits and end what follows it; return the cards' chunks."""
        head = self._session.exchange_queue.head
        if head is None:
            return ()
        if head.phase != "waiting":
            raise TurnRunning("This chat is still being answered; wait or stop it first.")
        cards = await self._close_exchange(head, plan)
        await self._session.close_exchanges()
        return cards

    async def _close_exchange(
        self, exchange: LiveExchange, plan: NewExchange | None = None
    ) -> Sequence[BaseChunk]:
        if exchange.is_earlier:
            return await self._runs.close_earlier(plan)
        return await self._session.continuation.close(exchange, stopped=plan is None)
