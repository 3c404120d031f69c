"""Starts exchanges, and closes those that a newer message or a stop supersedes."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sluicegate.core.chat_and_turn_keys import TurnKey
from sluicegate.core.exchanges import Exchange, closing_stamp
from sluicegate.core.plan import check_without_effect
from sluicegate.core.turn_stamp import STOPPED
from sluicegate.engine.chat_titles import title_of
from sluicegate.engine.files.user_message_files import user_content
from sluicegate.engine.turn.builder import TurnSetup
from sluicegate.engine.turn.lease_owner_ids import turn_owner
from sluicegate.engine.turn.running_turn import run_events
from sluicegate.errors import Unknown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from google.adk.runners import Runner
    from google.genai import types

    from sluicegate.core.chat_and_turn_keys import ChatKey
    from sluicegate.core.history import RebuiltExchange
    from sluicegate.core.plan import ChatLog, NewExchange
    from sluicegate.core.release.policies import ReleasePolicy
    from sluicegate.engine.client_request_options import RequestingClient
    from sluicegate.engine.files.upload_quotas import UploadQuotas
    from sluicegate.engine.load_chat_log import ChatLogs
    from sluicegate.engine.turn.builder import TurnBuilder
    from sluicegate.engine.turn.chat_leases import ChatLeases
    from sluicegate.engine.turn.close_undecided_calls import OpenCallCloser
    from sluicegate.engine.turn.local_turns import LocalTurns
    from sluicegate.engine.turn.reader import TurnReader
    from sluicegate.media.chat_files import ChatFiles
    from sluicegate.stores.chats import ChatIndex
    from sluicegate.stores.upload_records import Uploads
    from sluicegate.wire.chunks import BaseChunk


@dataclass(frozen=True, slots=True)
class StartTurn:
    """Starts exchanges with users' messages."""

    runner: Runner
    builder: TurnBuilder
    turns: LocalTurns
    leases: ChatLeases
    logs: ChatLogs
    closer: OpenCallCloser
    files: ChatFiles
    uploads: Uploads
    upload_quotas: UploadQuotas
    chats: ChatIndex

    async def start(
        self, log: ChatLog, plan: NewExchange, release: ReleasePolicy, client: RequestingClient
    ) -> TurnReader:
        """Run a user's message; open approvals are superseded (A5).

        Raises:
            WouldForgetEffect: a call of a replaced exchange was claimed meanwhile; it stays.
            RequestError: the chat or the server is busy; nothing has changed.
        """
        chat = log.chat
        self.turns.admit(chat.user)
        version = plan.rewound[0].version + 1 if plan.rewound else 1
        stamp = self.builder.new_stamp(plan.user_message_id, release, version=version)
        content = await self._content(chat, plan)
        owner = turn_owner(stamp.turn)
        fence = await self.leases.acquire(chat, owner, after=log.fence)
        try:
            if plan.is_first:
                await self.logs.session_log.create(chat)
            opening: Sequence[BaseChunk] = ()
            if plan.rewound:
                await self._rewind(chat, plan.rewound)
            elif plan.closes is not None:
                opening = await self.close(chat, plan.closes)
            key = TurnKey(chat, stamp.turn, fence)
            turn, _ = await asyncio.gather(
                self.builder.build(
                    TurnSetup(key, stamp, release, opening=opening, tools=client.tools)
                ),
                self.chats.touch(chat, title=title_of(content)),
            )
            events = run_events(self.runner, turn, content, self.builder.options)
            return await self.turns.launch(turn, events, major=client.major)
        except BaseException:
            await asyncio.shield(self.leases.release(chat, owner, fence))
            raise

    async def close_waiting(self, log: ChatLog, exchange: RebuiltExchange) -> None:
        """Stop an exchange with open approvals, which are superseded (section 7).

        Raises:
            HeldByAnotherOwner: another owner writes to the chat, or has written since it was read.
        """
        owner = turn_owner(closing_stamp(exchange.exchange).turn)
        fence = await self.leases.acquire(log.chat, owner, after=log.fence)
        try:
            await self.close(log.chat, exchange, stopped=True)
        finally:
            await self.leases.release(log.chat, owner, fence)
        self.turns.publish_status(log.chat, "ready")

    async def close(
        self, chat: ChatKey, exchange: RebuiltExchange, *, stopped: bool = False
    ) -> Sequence[BaseChunk]:
        """Supersede open approvals; returns chunks for their cards. The lease must be held.

        ``stopped``: the user has stopped the exchange, instead of sending a message.
        """
        stamp = closing_stamp(exchange.exchange)
        ledger, buffer = self.closer.ledger, exchange.buffer
        await ledger.mark_unknown(chat, owners_alive=self.turns.claim_owners())
        await self.closer.close(
            chat, buffer, exchange.exchange.invocation, stamp, reason="it was superseded."
        )
        if stopped:
            await self.logs.session_log.append_end(chat, stamp, STOPPED)
        return await self.closer.cards(chat, buffer, exchange.exchange.message_id)

    async def _content(self, chat: ChatKey, plan: NewExchange) -> types.Content:
        if plan.message is not None:
            return await user_content(
                self.files, chat, plan.message, self.upload_quotas, self.uploads
            )
        event = plan.rewound[0].user_event if plan.rewound else None
        if event is None or event.content is None:
            raise Unknown("This message is not part of the chat; load the chat again.")
        return event.content.model_copy(deep=True)

    async def _rewind(self, chat: ChatKey, rewound: Sequence[Exchange]) -> None:
        log = await self.logs.load(chat)
        # An owner whose lease ran out may have claimed a call since the request was planned.
        check_without_effect(rewound, log.rows.values())
        unfinished = [each for each in map(log.rebuild, rewound) if each.is_unfinished]
        for rebuilt in unfinished:
            await self.close(chat, rebuilt)
        if unfinished:
            # The closed calls cannot be claimed any more, but one was perhaps claimed before.
            check_without_effect(rewound, await self.logs.ledger.rows(chat))
        await self.runner.rewind_async(
            user_id=chat.user,
            session_id=chat.chat,
            rewind_before_invocation_id=rewound[0].invocation,
        )
