"""From a plan to a turn that is ready to run."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sluicegate.core.grammar import Grammar
from sluicegate.core.history import known_calls
from sluicegate.core.release import open_gate
from sluicegate.core.translator import Translator
from sluicegate.engine.failures import describe, new_error_id
from sluicegate.engine.files.result_files import ResultFiles
from sluicegate.engine.gate.caps import Caps
from sluicegate.engine.gate.claims import Claims
from sluicegate.engine.gate.turn_gate import TurnGate
from sluicegate.engine.models.fast_lane import FastLanes
from sluicegate.engine.models.pace import Pace
from sluicegate.engine.parts import PROCESS, EngineParts
from sluicegate.engine.running.running_turn import RunningTurn

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sluicegate.core.exchanges import TurnStamp
    from sluicegate.core.history import RebuiltExchange
    from sluicegate.core.keys import ChatKey, TurnKey
    from sluicegate.core.ledger import ApprovalRow
    from sluicegate.core.release import Release
    from sluicegate.engine.options import EngineOptions
    from sluicegate.tools.client_tools import ClientTool
    from sluicegate.wire.chunks import BaseChunk

logger = logging.getLogger("sluicegate")


def owner_of(stamp: TurnStamp) -> str:
    """Who claims calls and holds the lease for a turn."""
    return f"{PROCESS}:{stamp.turn}"


@dataclass(frozen=True, slots=True)
class Setup:
    """What a turn begins with.

    ``continues`` is the exchange as it stands: its translator and gate go on being fed.
    ``client_outputs`` are results of gated client-side calls by call id, ``opening`` the chunks
    that follow ``start``, ``tools`` what the page brings along. ``rows`` are those of the chat's
    ledger, if nobody has written to the chat since they were read.
    """

    key: TurnKey
    stamp: TurnStamp
    release: Release
    continues: RebuiltExchange | None = None
    client_outputs: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    opening: Sequence[BaseChunk] = ()
    tools: tuple[ClientTool, ...] = ()
    rows: Sequence[ApprovalRow] | None = None


async def prepare(parts: EngineParts, setup: Setup) -> RunningTurn:
    """Build a turn; the chat's lease must be held with the fence of the turn."""
    chat, stamp, continues = setup.key.chat, setup.stamp, setup.continues
    rows = await parts.ledger.rows(chat) if setup.rows is None else setup.rows
    if any(row.state == "executing" for row in rows):
        await parts.ledger.abandon(chat, owners_alive=parts.turns.owners())
        rows = await parts.ledger.rows(chat)
    turn_gate = TurnGate(
        chat=chat,
        owner=owner_of(stamp),
        ledger=parts.ledger,
        rows={row.key: row for row in rows},
        caps=caps_of(parts.options),
        ttl=parts.approval_ttl,
        files=ResultFiles(parts.files, chat, parts.options.result_limits),
        models=parts.models,
        policy=parts.policy,
        new_error_id=new_error_id,
        report=report_to_log(chat, stamp.turn),
        client_outputs=setup.client_outputs,
        page_tools=setup.tools,
        claims=Claims(parts.options.tool_timeout),
        lanes=FastLanes(Pace(parts.options.reader_backlog, parts.options.reader_patience)),
    )
    gate = continues.gate if continues else open_gate(stamp.release, stamp.style)
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
    turn_gate.claims.overtime = turn.cut
    turn.preview(shown=setup.release == "preview")
    return turn


def caps_of(options: EngineOptions) -> Caps:
    """How many approvals may be asked for."""
    return Caps(
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
