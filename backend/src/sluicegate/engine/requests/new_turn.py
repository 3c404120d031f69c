"""Starting an exchange: a new message, an edited one, or the same one again."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from sluicegate.core.exchanges import Exchange, TurnStamp, closed_turn
from sluicegate.core.keys import TurnKey
from sluicegate.engine.requests.attachments import question_content
from sluicegate.engine.requests.turn_setup import Setup, owner_of, prepare
from sluicegate.errors import Unknown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from google.genai import types

    from sluicegate.core.history import RebuiltExchange
    from sluicegate.core.keys import ChatKey
    from sluicegate.core.release import Release
    from sluicegate.core.turn_plan import ChatLog, NewExchange
    from sluicegate.engine.client import Client
    from sluicegate.engine.parts import EngineParts
    from sluicegate.engine.running.turn_reader import TurnReader
    from sluicegate.wire.chunks import BaseChunk

TITLE_LENGTH = 80


class NewTurn:
    """Begins exchanges."""

    def __init__(self, parts: EngineParts) -> None:
        self._parts = parts

    async def start(
        self, log: ChatLog, plan: NewExchange, release: Release, client: Client
    ) -> TurnReader:
        """Run a user's message; what was open before is superseded (A5).

        Raises:
            RequestError: the chat or the server is busy; nothing has changed.
        """
        parts, chat = self._parts, log.chat
        parts.turns.admit(chat.user)
        stamp = parts.stamp(plan.user_message_id, release)
        content = await self._content(chat, plan)
        owner = owner_of(stamp)
        fence = await parts.turns.lease(chat, owner, after=log.fence)
        try:
            if plan.is_first:
                await parts.log.create(chat)
            opening: Sequence[BaseChunk] = ()
            if plan.rewound:
                await self._rewind(chat, plan.rewound)
            elif plan.closes is not None:
                opening = await self.close(chat, plan.closes)
            key = TurnKey(chat, stamp.turn, fence)
            turn, _ = await asyncio.gather(
                prepare(parts, Setup(key, stamp, release, opening=opening, tools=client.tools)),
                parts.chats.touch(chat, title=title_of(content)),
            )
            return await parts.turns.launch(turn, content, major=client.major)
        except BaseException:
            await asyncio.shield(parts.turns.release(chat, owner, fence))
            raise

    async def close_waiting(self, log: ChatLog, exchange: RebuiltExchange) -> None:
        """Stop an exchange that waits: its open approvals are superseded (section 7).

        Raises:
            HeldElsewhere: somebody writes to the chat, or has written since it was read.
        """
        owner = owner_of(stamp_of(exchange.exchange))
        fence = await self._parts.turns.lease(log.chat, owner, after=log.fence)
        try:
            await self.close(log.chat, exchange)
        finally:
            await self._parts.turns.release(log.chat, owner, fence)

    async def _content(self, chat: ChatKey, plan: NewExchange) -> types.Content:
        if plan.message is not None:
            return await question_content(self._parts.files, chat, plan.message)
        question = plan.rewound[0].question if plan.rewound else None
        if question is None or question.content is None:
            raise Unknown("This message is not part of the chat; load the chat again.")
        return question.content.model_copy(deep=True)

    async def close(self, chat: ChatKey, exchange: RebuiltExchange) -> Sequence[BaseChunk]:
        """Supersede what is open; returns what becomes of its cards. The lease must be held."""
        stamp = stamp_of(exchange.exchange)
        await self._parts.ledger.abandon(chat, owners_alive=self._parts.turns.owners())
        await self._parts.closing.close(
            chat, exchange.gate, exchange.exchange.invocation, stamp, reason="it was superseded."
        )
        return await self._parts.closing.cards(chat, exchange.gate, exchange.exchange.message_id)

    async def _rewind(self, chat: ChatKey, rewound: Sequence[Exchange]) -> None:
        log = await self._parts.chat_log(chat)
        for exchange in rewound:
            rebuilt = log.rebuild(exchange)
            if rebuilt.is_unfinished:
                await self.close(chat, rebuilt)
        await self._parts.runner.rewind_async(
            user_id=chat.user,
            session_id=chat.chat,
            rewind_before_invocation_id=rewound[0].invocation,
        )


def stamp_of(exchange: Exchange) -> TurnStamp:
    """The stamp that marks events as belonging to this exchange."""
    return TurnStamp(
        message=exchange.message_id,
        turn=closed_turn(exchange.message_id),
        user_message=exchange.user_message_id,
        release=exchange.release,
        style=exchange.style,
        created_at=exchange.created_at,
        model=exchange.model or "",
    )


def title_of(content: types.Content) -> str | None:
    """The title of a chat that begins so."""
    text = next((part.text for part in content.parts or [] if part.text), None)
    return " ".join(text.split())[:TITLE_LENGTH] if text else None
