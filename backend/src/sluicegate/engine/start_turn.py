"""From a plan to a turn that is ready to run."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sluicegate.core.exchanges import Exchange, TurnStamp, closed_turn
from sluicegate.core.grammar import Grammar
from sluicegate.core.history import known_calls
from sluicegate.core.keys import TurnKey
from sluicegate.core.release.policy import open_release_buffer
from sluicegate.core.translator import Translator
from sluicegate.engine.failures import describe
from sluicegate.engine.files.result_files import ResultFiles
from sluicegate.engine.files.uploads import question_content
from sluicegate.engine.guard.claims import RunningClaims
from sluicegate.engine.guard.guard import ApprovalGuard, ApprovalLimits
from sluicegate.engine.models.fast_lane import FastLane, ReaderBackpressure
from sluicegate.engine.resources import PROCESS, EngineResources
from sluicegate.engine.turn.runner import RunningTurn
from sluicegate.errors import Unknown, new_error_id

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from google.genai import types

    from sluicegate.core.approvals import ApprovalRow
    from sluicegate.core.history import RebuiltExchange
    from sluicegate.core.keys import ChatKey
    from sluicegate.core.plan import ChatLog, NewExchange
    from sluicegate.core.release.policy import ReleasePolicy
    from sluicegate.engine.options import EngineOptions
    from sluicegate.engine.turn.reader import Client, TurnReader
    from sluicegate.tools.client_tools import ClientTool
    from sluicegate.wire.chunks import BaseChunk

logger = logging.getLogger("sluicegate")


def owner_of(stamp: TurnStamp) -> str:
    """Who claims calls and holds the lease for a turn."""
    return f"{PROCESS}:{stamp.turn}"


@dataclass(frozen=True, slots=True)
class TurnSetup:
    """What a turn begins with.

    ``continues`` is the exchange as it stands: its translator and gate go on being fed.
    ``client_outputs`` are results of gated client-side calls by call id, ``opening`` the chunks
    that follow ``start``, ``tools`` what the page brings along. ``rows`` are those of the chat's
    ledger, if nobody has written to the chat since they were read.
    """

    key: TurnKey
    stamp: TurnStamp
    release: ReleasePolicy
    continues: RebuiltExchange | None = None
    client_outputs: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    opening: Sequence[BaseChunk] = ()
    tools: tuple[ClientTool, ...] = ()
    rows: Sequence[ApprovalRow] | None = None


async def prepare_turn(parts: EngineResources, setup: TurnSetup) -> RunningTurn:
    """Build a turn; the chat's lease must be held with the fence of the turn."""
    chat, stamp, continues = setup.key.chat, setup.stamp, setup.continues
    rows = await parts.ledger.rows(chat) if setup.rows is None else setup.rows
    if any(row.state == "executing" for row in rows):
        await parts.ledger.mark_unknown(chat, owners_alive=parts.turns.owners())
        rows = await parts.ledger.rows(chat)
    turn_gate = ApprovalGuard(
        chat=chat,
        owner=owner_of(stamp),
        ledger=parts.ledger,
        rows={row.key: row for row in rows},
        limits=caps_of(parts.options),
        ttl=parts.approval_ttl,
        files=ResultFiles(parts.files, chat, parts.options.result_limits),
        models=parts.models,
        policy=parts.policy,
        new_error_id=new_error_id,
        report=report_to_log(chat, stamp.turn),
        client_outputs=setup.client_outputs,
        page_tools=setup.tools,
        claims=RunningClaims(parts.options.tool_timeout),
        fast_lane=FastLane(
            ReaderBackpressure(parts.options.reader_backlog, parts.options.reader_patience)
        ),
    )
    gate = continues.buffer if continues else open_release_buffer(stamp.release, stamp.style)
    turn = RunningTurn(
        key=setup.key,
        stamp=stamp,
        invocation=continues.exchange.invocation if continues else None,
        translator=(
            continues.translator
            if continues
            else Translator(parts.survey, files_url=parts.files_url(chat))
        ),
        gate=gate,
        grammar=Grammar(known_calls(continues) if continues else None),
        turn_gate=turn_gate,
        ledger=parts.ledger,
        approval_ttl=parts.approval_ttl,
        held_limit=parts.options.held_bytes,
        new_error_id=new_error_id,
        unforeseen=parts.warn_unforeseen,
        before=continues,
        prefix=continues.chunks if continues else (),
        opening=setup.opening,
        tape=parts.tape,
    )
    if turn.translator.facts.model is None:
        turn.translator.facts.model = stamp.model
    turn_gate.claims.on_overtime = turn.cut
    turn.preview(shown=setup.release == "preview")
    return turn


def caps_of(options: EngineOptions) -> ApprovalLimits:
    """How many approvals may be asked for."""
    return ApprovalLimits(
        options.max_requests_per_turn,
        options.max_requests_per_exchange,
        options.max_pending_per_chat,
    )


def report_to_log(chat: ChatKey, turn: str) -> Callable[[str, BaseException], None]:
    """What tells the log, and it alone, how a tool failed."""

    def report(error_id: str, error: BaseException) -> None:
        logger.error(
            "tool failed chat=%s turn=%s error=%s %s", chat.chat, turn, error_id, describe(error)
        )

    return report


TITLE_LENGTH = 80


class StartTurn:
    """Begins exchanges."""

    def __init__(self, parts: EngineResources) -> None:
        self._parts = parts

    async def start(
        self, log: ChatLog, plan: NewExchange, release: ReleasePolicy, client: Client
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
                prepare_turn(
                    parts, TurnSetup(key, stamp, release, opening=opening, tools=client.tools)
                ),
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
        question = plan.rewound[0].user_event if plan.rewound else None
        if question is None or question.content is None:
            raise Unknown("This message is not part of the chat; load the chat again.")
        return question.content.model_copy(deep=True)

    async def close(self, chat: ChatKey, exchange: RebuiltExchange) -> Sequence[BaseChunk]:
        """Supersede what is open; returns what becomes of its cards. The lease must be held."""
        stamp = stamp_of(exchange.exchange)
        await self._parts.ledger.mark_unknown(chat, owners_alive=self._parts.turns.owners())
        await self._parts.closing.close(
            chat, exchange.buffer, exchange.exchange.invocation, stamp, reason="it was superseded."
        )
        return await self._parts.closing.cards(chat, exchange.buffer, exchange.exchange.message_id)

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
