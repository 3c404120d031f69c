"""Everything that a turn is built from: its stamp, its guard, its translator and its buffer."""

from __future__ import annotations

import functools
import logging
import secrets
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sluicegate.core.grammar import Grammar
from sluicegate.core.history import known_calls
from sluicegate.core.release.policies import open_release_buffer
from sluicegate.core.translator import Translator
from sluicegate.core.turn_stamp import TurnStamp
from sluicegate.engine.agents.agent_tree import name_in
from sluicegate.engine.describe_exceptions import describe
from sluicegate.engine.guard.guard import ApprovalGuard
from sluicegate.engine.guard.running_claims import RunningClaims
from sluicegate.engine.models.reader_backpressure import ReaderBackpressure
from sluicegate.engine.turn.lease_owner_ids import turn_owner
from sluicegate.engine.turn.running_turn import RunningTurn
from sluicegate.errors import new_error_id
from sluicegate.media.replace_files_by_references import ResultFiles

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sluicegate.core.approvals import ApprovalRow
    from sluicegate.core.chat_and_turn_keys import ChatKey, TurnKey
    from sluicegate.core.history import RebuiltExchange
    from sluicegate.core.release.policies import ReleasePolicy
    from sluicegate.engine.agents.survey import AgentSurvey
    from sluicegate.engine.entitlement import Entitlement
    from sluicegate.engine.guard.approval_request_details import ApprovalRequestDetails
    from sluicegate.engine.guard.compute_previews import Previews
    from sluicegate.engine.options import EngineOptions
    from sluicegate.engine.recorder import Recorder
    from sluicegate.engine.turn.local_turns import LocalTurns
    from sluicegate.media.chat_files import ChatFiles
    from sluicegate.media.model_wrapper import ModelFiles
    from sluicegate.stores.approvals.ledger import Ledger
    from sluicegate.tools.approval_terms import Policy
    from sluicegate.tools.client_tools import ClientTool
    from sluicegate.wire.chunks import BaseChunk

logger = logging.getLogger("sluicegate")


@dataclass(frozen=True, slots=True)
class SharedRun:
    """The live run that a turn shares with other turns.

    ``granted`` are its granted calls and ``requested`` those that request an approval.
    """

    owner: str
    invocation: str
    claims: RunningClaims
    granted: dict[str, ApprovalRow]
    requested: dict[str, ApprovalRequestDetails]
    approval_ttl: Callable[[str, str], float]


@dataclass(frozen=True, slots=True)
class TurnSetup:
    """The input of one turn.

    ``continues`` is the exchange as it stands: its translator and buffer are fed on.
    ``client_outputs`` are results of gated client-side calls by call id, ``opening`` the chunks
    that follow ``start``, ``tools`` those that the page brought. ``rows`` are the rows of the
    chat's ledger, if nothing was written to the chat since they were read.
    """

    key: TurnKey
    stamp: TurnStamp
    release: ReleasePolicy
    continues: RebuiltExchange | None = None
    client_outputs: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    opening: Sequence[BaseChunk] = ()
    tools: tuple[ClientTool, ...] = ()
    rows: Sequence[ApprovalRow] | None = None
    run: SharedRun | None = None


@dataclass(frozen=True, slots=True)
class TurnBuilder:
    """Builds turns; ``model`` is the name of the agent's model.

    ``last_speaker`` is the agent whose final response ends a run, if the tree has one.
    """

    options: EngineOptions
    survey: AgentSurvey
    model: str
    ledger: Ledger
    turns: LocalTurns
    files: ChatFiles
    models: ModelFiles
    last_speaker: str | None = None
    policy: Policy | None = None
    recorder: Recorder | None = None
    entitlement: Entitlement | None = None
    previews: Previews | None = None
    _unforeseen: set[str] = field(default_factory=set)
    """Tools that have asked for approval although nothing in them shows that they may."""

    def new_stamp(
        self, user_message: str, release: ReleasePolicy, *, version: int = 1
    ) -> TurnStamp:
        """The stamp of the first turn of a new exchange (T1), or of a new version of one."""
        return TurnStamp(
            message=f"msg-{secrets.token_hex(12)}",
            turn=new_turn_id(),
            user_message=user_message,
            # ``preview`` is stored as ``deferred`` is; only a running turn differs.
            release="progressive" if release == "progressive" else "deferred",
            style=self.options.approval_style,
            created_at=time.time(),
            model=self.model,
            version=version,
            text_from_results=self.options.text_from_results,
        )

    def approval_ttl(self, agent: str, tool: str) -> float:
        """Seconds an approval of an agent's tool stays open: by the settings, or as declared.

        ``agent`` is a path.
        """
        declared = self.survey.facts(name_in(agent), tool).expires
        default = self.options.approval_ttl if declared is None else declared
        return self.options.approval_ttls.get(tool, default)

    async def build(self, setup: TurnSetup) -> RunningTurn:
        """Build a turn; the chat's lease must be held with the fence of the turn."""
        chat, stamp, continues = setup.key.chat, setup.stamp, setup.continues
        options = self.options
        rows = await self.ledger.rows(chat) if setup.rows is None else setup.rows
        if any(row.state == "executing" for row in rows):
            await self.ledger.mark_unknown(chat, owners_alive=self.turns.claim_owners())
            rows = await self.ledger.rows(chat)
        guard = self._guard(setup, rows)
        if continues is None:
            invocation = setup.run.invocation if setup.run else None
            translator = Translator(
                self.survey.of_chat(chat), files_url=options.files_url_of(chat.chat)
            )
            buffer = open_release_buffer(
                stamp.release, stamp.style, text_from_results=stamp.text_from_results
            )
        else:
            invocation = setup.run.invocation if setup.run else continues.exchange.invocation
            translator, buffer = continues.translator, continues.buffer
        if translator.facts.model is None:
            translator.facts.model = stamp.model
        turn = RunningTurn(
            key=setup.key,
            stamp=stamp,
            invocation=invocation,
            translator=translator,
            buffer=buffer,
            grammar=Grammar(known_calls(continues) if continues else None),
            guard=guard,
            ledger=self.ledger,
            backpressure=ReaderBackpressure(options.reader_backlog, options.reader_patience),
            approval_ttl=setup.run.approval_ttl if setup.run else self.approval_ttl,
            held_limit=options.held_bytes,
            # A live run goes on after a response.
            last_speaker=None if setup.run else self.last_speaker,
            warn_unforeseen=self._warn_unforeseen,
            before=continues,
            prefix=continues.prefix if continues else (),
            opening=setup.opening,
            recorder=self.recorder,
        )
        turn.preview(shown=setup.release == "preview")
        return turn

    def _guard(self, setup: TurnSetup, rows: Sequence[ApprovalRow]) -> ApprovalGuard:
        chat, options, run = setup.key.chat, self.options, setup.run
        return ApprovalGuard(
            chat=chat,
            owner=run.owner if run else turn_owner(setup.stamp.turn),
            ledger=self.ledger,
            rows={row.key: row for row in rows},
            limits=options.approval_limits,
            ttl=self.approval_ttl,
            files=ResultFiles(self.files, chat, options.result_limits),
            models=self.models,
            policy=self.policy,
            entitlement=self.entitlement,
            previews=self.previews,
            new_error_id=new_error_id,
            report=log_tool_failures(chat, setup.stamp.turn),
            client_outputs=setup.client_outputs,
            page_tools=setup.tools,
            claims=run.claims if run else running_claims(options, self.turns, chat),
            granted=run.granted if run else {},
            requested=run.requested if run else {},
            tools=self.survey.of_chat(chat),
        )

    def _warn_unforeseen(self, tool: str) -> None:
        """Warn once per tool that asked although nothing in it shows that it may."""
        if tool not in self._unforeseen:
            self._unforeseen.add(tool)
            logger.warning(
                "tool %s asked for approval unforeseen; name it in the setting dynamic_gates", tool
            )


def new_turn_id() -> str:
    """A fresh id of a turn."""
    return f"turn-{secrets.token_hex(8)}"


def running_claims(options: EngineOptions, turns: LocalTurns, chat: ChatKey) -> RunningClaims:
    """No claims yet; one that exceeds ``tool_timeout`` cuts the running turn of the chat."""
    return RunningClaims(options.tool_timeout, functools.partial(turns.cut, chat))


def log_tool_failures(chat: ChatKey, turn: str) -> Callable[[str, BaseException], None]:
    """Return a function that logs how a tool of the turn failed; only the log learns that."""

    def log(error_id: str, error: BaseException) -> None:
        said = describe(error, with_text=True)
        logger.error("tool failed chat=%s turn=%s error=%s %s", chat.chat, turn, error_id, said)

    return log
