"""Opening chats live: one socket for a chat, and a bound on all of them."""

from __future__ import annotations

import asyncio
import functools
import secrets
from typing import TYPE_CHECKING, Final, Protocol

from google.adk.events.event import Event

from sluicegate.core.history import resumable
from sluicegate.core.keys import ChatKey
from sluicegate.engine.files.uploads import question_content
from sluicegate.engine.resources import PROCESS
from sluicegate.engine.start_turn import TurnSetup, title_of
from sluicegate.engine.stored_responses import stored
from sluicegate.errors import Malformed, NotRewindable, TooManyRequests, TurnRunning, Unavailable
from sluicegate.live.context import LiveContext
from sluicegate.live.outbox import Outbox
from sluicegate.live.supervisor import LiveRunSupervisor
from sluicegate.wire.live_frames import (
    ActivityFrame,
    ImageFrame,
    InterruptFrame,
    live_client_frame_members,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluicegate.core.plan import ChatLog, ContinueExchange, NewExchange
    from sluicegate.core.release.policy import ReleasePolicy
    from sluicegate.engine.chat_engine import ChatEngine
    from sluicegate.engine.resources import EngineResources
    from sluicegate.engine.turn.reader import Client, TurnReader
    from sluicegate.live.exchange import LiveExchange
    from sluicegate.live.supervisor import LiveRunSession
    from sluicegate.wire.chunks import BaseChunk
    from sluicegate.wire.frames import ResumeFrame
    from sluicegate.wire.live_frames import LiveClientFrame
    from sluicegate.wire.requests import ChatRequest


class OpenChat(Protocol):
    """A chat that is open live, as its socket sees it."""

    @property
    def out(self) -> Outbox:
        """What goes out to the socket beside the answers to its requests."""

    async def start(self, request: ChatRequest, *, user: str, client: Client) -> TurnReader:
        """Take a request of the socket; raises RequestError."""

    async def resume(self, frame: ResumeFrame, *, user: str, client: Client) -> TurnReader | None:
        """What the frame asks for from its beginning, or None when there is nothing."""

    def hear(self, pcm: bytes) -> None:
        """Take PCM16 at 16 kHz."""

    def take(self, frame: LiveClientFrame) -> None:
        """Take a live frame; raises RequestError."""

    async def close(self) -> None:
        """Let go of the chat."""


async def open_live(
    engine: ChatEngine,
    chat_id: str,
    *,
    user: str,
    client: Client,
    with_audio: bool,
    marked_by_client: bool,
) -> OpenChat:
    """Open a chat live; whoever does so closes it again.

    ``with_audio``: the client plays what the model says. ``marked_by_client``: it says when the
    user speaks; else the model listens for that.

    Raises:
        HeldElsewhere: the chat is open live already, or being answered.
        RequestError: too many chats are open.
    """
    parts = engine.parts
    chat = ChatKey(parts.app, user, chat_id)
    _admit(parts, user)
    owner = f"{PROCESS}:live-{secrets.token_hex(8)}"
    fence = await parts.turns.lease(chat, owner)
    tape = parts.tape
    note = None if tape is None else functools.partial(tape.frame, chat, sender="server")
    out = Outbox(with_audio=with_audio, note=note)
    hold = LiveContext(parts, chat, owner, fence, client, out, lambda: engine.alone(chat))
    try:
        if await parts.log.load(chat) is None:
            await parts.log.create(chat)
    except BaseException:
        await asyncio.shield(parts.turns.release(chat, owner, fence))
        raise
    live = LiveChat(engine, hold, marked_by_client=marked_by_client)
    parts.turns.holders.add(chat, live)
    try:
        await live.begin()
    except BaseException:
        await live.close()
        raise
    return live


def _admit(parts: EngineResources, user: str) -> None:
    holders = parts.turns.holders
    if holders.count() >= parts.options.max_live_chats:
        raise Unavailable("The server is busy; try again in a moment.", retry_after=5)
    if holders.count(user) >= parts.options.max_live_chats_per_user:
        raise TooManyRequests("Too many of your chats are open live; close one.", retry_after=5)


ANOTHER_CHAT: Final = "This socket is open for another chat; open one for this chat."
NOT_MARKED: Final = "Open the socket with activity=client to mark where speech begins and ends."


class LiveChat:
    """A chat in which one socket speaks and listens; decisions come from everywhere."""

    def __init__(self, engine: ChatEngine, hold: LiveContext, *, marked_by_client: bool) -> None:
        """Take a chat whose lease is held. ``marked_by_client``: who says when somebody speaks."""
        self._engine = engine
        self._hold = hold
        self._marked_by_client = marked_by_client
        self._runs = LiveRunSupervisor(
            hold, release=self._release, marked_by_client=marked_by_client
        )
        self._closing: asyncio.Task[None] | None = None

    @property
    def owner(self) -> str:
        """Who holds the lease and claims calls."""
        return self._hold.owner

    @property
    def out(self) -> Outbox:
        """What goes out to the socket beside the answers to its requests."""
        return self._hold.out

    async def begin(self) -> None:
        """Begin the run."""
        await self._runs.begin()

    async def start(self, request: ChatRequest, *, user: str, client: Client) -> TurnReader:
        """Take a request of the socket.

        Raises:
            RequestError: nothing has changed.
        """
        self._check(request.chat_id, user)
        self._hold.client = client
        return await self._engine.start(request, user=user, client=client, by=self)

    async def resume(self, frame: ResumeFrame, *, user: str, client: Client) -> TurnReader | None:
        """The running message from its beginning, or the one that is named (section 7)."""
        chat_id, message_id = frame.chat_id, frame.message_id
        self._check(chat_id, user)
        self._hold.client = client
        running = self._hold.parts.turns.running(self._hold.chat)
        if running is not None and message_id in (None, running.stamp.message):
            return await self._engine.resume(chat_id, user=user, client=client)
        if message_id is None:
            return None
        log = await self._hold.parts.chat_log(self._hold.chat)
        named = next((e for e in log.exchanges if e.message_id == message_id), None)
        if named is None:
            return None
        rebuilt = log.rebuild(named)
        if not resumable(rebuilt, major=client.major):
            return None
        reader = stored(rebuilt, 0, major=client.major)
        return self._engine.resumed(reader, chat_id, user=user, client=client)

    def hear(self, pcm: bytes) -> None:
        """Let the model hear PCM16 at 16 kHz."""
        self._hold.note(pcm)
        if not self._talk.run.is_over:
            self._talk.run.hear(pcm)

    def take(self, frame: LiveClientFrame) -> None:
        """Take a picture, a mark of who speaks, or the wish that the model be silent.

        Raises:
            Malformed: the client marks what the model listens for itself.
        """
        if isinstance(frame, ActivityFrame) and not self._marked_by_client:
            raise Malformed(NOT_MARKED)
        self._hold.note(live_client_frame_members(frame))
        run = self._talk.run
        match frame:
            case InterruptFrame():
                self._talk.interrupt()
            case ActivityFrame(begins=begins) if not run.is_over:
                run.mark(begins=begins)
            case ImageFrame(media_type=media_type, data=data) if not run.is_over:
                run.see(data, media_type)

    async def say(self, plan: NewExchange, release: ReleasePolicy, client: Client) -> TurnReader:
        """Begin an exchange with a text that came to the socket; what waits is superseded (A5).

        Raises:
            RequestError: nothing has changed.
        """
        hold, parts = self._hold, self._hold.parts
        if plan.rewound or plan.message is None:
            raise NotRewindable
        parts.turns.admit(hold.chat.user)
        content = await question_content(parts.files, hold.chat, plan.message)
        async with hold.lock:
            opening = await self._make_way(plan)
            talk = self._talk
            if talk.run.is_over:
                raise Unavailable
            exchange = talk.line.made(plan.user_message_id, release, spoken=False)
            exchange.is_announced = exchange.has_question = True
            talk.line.exchanges.append(exchange)
            stamp = exchange.current.stamp
            setup = TurnSetup(talk.line.key(exchange), stamp, release, opening=opening)
            try:
                reader = await talk.line.play(exchange, setup, major=client.major)
            except BaseException:
                talk.line.drop(exchange)
                raise
            talk.floor.asked(exchange)
            question = Event(
                invocation_id=talk.run.invocation,
                author="user",
                content=content,
                custom_metadata=stamp.as_metadata(),
            )
            await talk.run.store(question)
            await parts.chats.touch(hold.chat, title=title_of(content))
            talk.run.say(content)
        return reader

    async def go_on(
        self,
        log: ChatLog,
        plan: ContinueExchange,
        release: ReleasePolicy,
        client: Client,
        *,
        own: bool,
    ) -> TurnReader | None:
        """Let an exchange go on whose calls are all decided; None when nothing waits for that."""
        async with self._hold.lock:
            talk = self._talk
            name = plan.exchange.exchange.message_id
            known = (each for each in talk.line.exchanges if each.message == name)
            exchange = next(known, None)
            if exchange is None or exchange.is_foreign:
                return await self._runs.answer_before(log, plan, release, client, own=own)
            running = talk.line.running(exchange)
            if running is not None:
                return await self._hold.parts.turns.reader(running, major=client.major)
            if exchange.phase != "waits" or len(exchange.to_play) > 1:
                return None
            await talk.asks.read()
            exchange.is_announced = own
            reader = await talk.going_on.answered(exchange, log, plan, release, major=client.major)
            if reader is not None:
                talk.line.flush(exchange)
                talk.line.announce(exchange)
            return reader

    async def stop(self) -> None:
        """Stop the running turn, or supersede what waits."""
        running = self._hold.parts.turns.running(self._hold.chat)
        if running is not None:
            await self._hold.parts.turns.stop(running)
            return
        async with self._hold.lock:
            head = self._talk.line.head
            if head is not None and head.phase == "waits":
                await self._close(head)
                await self._talk.asks.read()
                await self._talk.line.step()

    async def close(self) -> None:
        """Let go of the chat: waiting calls go on waiting, claimed ones come to their end."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._runs.close())
        await asyncio.shield(self._closing)

    def _check(self, chat_id: str, user: str) -> None:
        if (user, chat_id) != (self._hold.chat.user, self._hold.chat.chat):
            raise Malformed(ANOTHER_CHAT)

    @property
    def _talk(self) -> LiveRunSession:
        return self._runs.now

    def _release(self) -> ReleasePolicy:
        return self._engine.release_for(self._hold.client)

    async def _make_way(self, plan: NewExchange) -> Sequence[BaseChunk]:
        """Close what waits, and end what was said meanwhile; returns what becomes of the cards."""
        head = self._talk.line.head
        if head is None:
            return ()
        if head.phase != "waits":
            raise TurnRunning("This chat is still being answered; wait or stop it first.")
        cards = await self._close(head, plan)
        await self._talk.clear()
        return cards

    async def _close(
        self, head: LiveExchange, plan: NewExchange | None = None
    ) -> Sequence[BaseChunk]:
        if not head.is_foreign:
            return await self._talk.going_on.close(head)
        return await self._runs.close_before(plan)
