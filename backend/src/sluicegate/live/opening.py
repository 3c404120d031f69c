"""Opening chats live: one socket for a chat, and a bound on all of them."""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING

from sluicegate.core.keys import ChatKey
from sluicegate.engine.parts import PROCESS
from sluicegate.errors import TooManyRequests, Unavailable
from sluicegate.live.chat import LiveChat
from sluicegate.live.hold import Hold
from sluicegate.live.out import Out

if TYPE_CHECKING:
    from sluicegate.engine.chat_engine import ChatEngine
    from sluicegate.engine.client import Client
    from sluicegate.engine.parts import EngineParts


async def open_live(
    engine: ChatEngine,
    chat_id: str,
    *,
    user: str,
    client: Client,
    with_audio: bool,
    marked_by_client: bool,
) -> LiveChat:
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
    out = Out(with_audio=with_audio)
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


def _admit(parts: EngineParts, user: str) -> None:
    holders = parts.turns.holders
    if holders.count() >= parts.options.max_live_chats:
        raise Unavailable("The server is busy; try again in a moment.", retry_after=5)
    if holders.count(user) >= parts.options.max_live_chats_per_user:
        raise TooManyRequests("Too many of your chats are open live; close one.", retry_after=5)
