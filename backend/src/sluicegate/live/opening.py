"""Opening chats live: one socket for a chat, and a bound on all of them."""

from __future__ import annotations

import asyncio
import functools
import secrets
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from sluicegate.core.keys import ChatKey
from sluicegate.engine.resources import PROCESS
from sluicegate.errors import TooManyRequests, Unavailable
from sluicegate.live.chat import LiveChat
from sluicegate.live.hold import Hold
from sluicegate.live.out import Out

if TYPE_CHECKING:
    from sluicegate.engine.engine import ChatEngine
    from sluicegate.engine.resources import EngineResources
    from sluicegate.engine.turn.reader import Client, TurnReader
    from sluicegate.wire.frames import ResumeFrame
    from sluicegate.wire.live_frames import LiveClientFrame
    from sluicegate.wire.requests import ChatRequest


class OpenChat(Protocol):
    """A chat that is open live, as its socket sees it."""

    @property
    def out(self) -> Out:
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


@runtime_checkable
class PlaysLive(Protocol):
    """An engine that only plays what was once said."""

    def play_live(self, chat_id: str, *, user: str, out: Out) -> OpenChat:
        """Open a chat in which it is said again."""


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
    if isinstance(engine, PlaysLive):
        return engine.play_live(chat_id, user=user, out=Out(with_audio=with_audio))
    parts = engine.parts
    chat = ChatKey(parts.app, user, chat_id)
    _admit(parts, user)
    owner = f"{PROCESS}:live-{secrets.token_hex(8)}"
    fence = await parts.turns.lease(chat, owner)
    tape = parts.tape
    note = None if tape is None else functools.partial(tape.frame, chat, sender="server")
    out = Out(with_audio=with_audio, note=note)
    hold = Hold(parts, chat, owner, fence, client, out, lambda: engine.alone(chat))
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
