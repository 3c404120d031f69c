"""A request and the stored conversation to a plan of what to run, before anything is changed.

1 Only new text, answers and outputs count (S2-R44). 2 A refusal leaves no trace (A4).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sluicegate.core.approvals import EFFECTFUL, ApprovalRow, Decision, NewApproval
from sluicegate.core.calls import shown_hint
from sluicegate.core.edits import checked_edits
from sluicegate.core.function_responses import check_output
from sluicegate.core.json_values import hash_arguments
from sluicegate.core.keys import CallKey, ChatKey
from sluicegate.errors import (
    AlreadyDecided,
    Malformed,
    NotRewindable,
    Superseded,
    Unknown,
    WouldForgetEffect,
)
from sluicegate.wire.requests import DEFAULT_LIMITS, RequestLimits

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sluicegate.core.calls import CallState
    from sluicegate.core.exchanges import Exchange
    from sluicegate.core.history import RebuiltExchange
    from sluicegate.core.ledger_overlay import Rows
    from sluicegate.wire.decisions import ClientOutput, PostedAssistantMessage, PostedDecision
    from sluicegate.wire.requests import ChatRequest, UserMessage


@dataclass(frozen=True, slots=True)
class ChatLog:
    """The stored conversation: exchanges, oldest first, and ledger rows by approval id.

    ``is_new``: the chat has no session yet. ``limits`` bound what is read of a browser's outputs.
    ``fence`` is that of the chat's last holder, if it was looked at before the log was read.
    ``rebuilt`` rebuilds an exchange by such rows.
    """

    chat: ChatKey
    exchanges: Sequence[Exchange]
    rows: Rows
    rebuilt: Callable[[Exchange, Rows], RebuiltExchange]
    is_new: bool = False
    limits: RequestLimits = DEFAULT_LIMITS
    fence: int | None = None

    def rebuild(self, exchange: Exchange) -> RebuiltExchange:
        """An exchange with its translator and gate, as they are after its last event."""
        return self.rebuilt(exchange, self.rows)

    def last(self) -> RebuiltExchange | None:
        """The newest exchange, rebuilt."""
        return self.rebuild(self.exchanges[-1]) if self.exchanges else None


@dataclass(frozen=True, slots=True)
class NewExchange:
    """Run a user's message.

    ``rewound`` are the exchanges it takes the place of, oldest first; ``message`` None means the
    stored question of the first of them. ``closes`` is the exchange whose open calls it
    supersedes (A5). ``is_first``: the chat has no session yet.
    """

    message: UserMessage | None
    user_message_id: str
    rewound: Sequence[Exchange] = ()
    closes: RebuiltExchange | None = None
    is_first: bool = False


@dataclass(frozen=True, slots=True)
class ContinueExchange:
    """Decide, and run on once nothing is open (A3).

    ``decisions`` are new; ``repeats`` were made before, equally. ``outputs`` are those of
    client-side calls by call id.
    """

    exchange: RebuiltExchange
    posted: PostedAssistantMessage
    decisions: Sequence[Decision] = ()
    repeats: Sequence[str] = ()
    outputs: Mapping[str, ClientOutput] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RepeatExchange:
    """Send an answer again from the log; nothing runs (A4)."""

    exchange: RebuiltExchange


Plan = NewExchange | ContinueExchange | RepeatExchange


def plan_turn(request: ChatRequest, log: ChatLog) -> Plan:
    """Decide what a request asks for.

    Raises:
        Malformed: a tool whose approvals cannot be remembered, or changed like this.
        Unknown: an approval, message or exchange that is not of this chat.
        AlreadyDecided: an answer that contradicts the first one.
        Superseded: an answer to a request that is closed.
        WouldForgetEffect, NotRewindable: a rewind over a call that may have run, over a live run.
    """
    if request.continued is not None:
        return _plan_answers(request.continued, log)
    if request.trigger == "regenerate-message":
        return _plan_regenerate(request, log)
    message = request.user_message
    if message is None:
        raise Unknown("This message is not part of the chat; load the chat again.")
    known = _position(log, lambda exchange: exchange.user_message_id == message.id)
    if known is None:
        return NewExchange(message, message.id, closes=_open_exchange(log), is_first=log.is_new)
    exchange = log.exchanges[known]
    if request.message_id == message.id:
        return NewExchange(message, message.id, rewound=_rewindable(log, known))
    is_last = known == len(log.exchanges) - 1
    if is_last and exchange.was_cut and not log.rebuild(exchange).is_waiting:
        return NewExchange(None, message.id, rewound=_rewindable(log, known))
    return RepeatExchange(log.rebuild(exchange))


def _plan_regenerate(request: ChatRequest, log: ChatLog) -> Plan:
    question = request.user_message.id if request.user_message else None
    position = _position(
        log, lambda e: request.message_id == e.message_id or question == e.user_message_id
    )
    if position is None:
        raise Unknown("This message is not part of the chat; load the chat again.")
    exchange = log.exchanges[position]
    return NewExchange(None, exchange.user_message_id, rewound=_rewindable(log, position))


def _plan_answers(posted: PostedAssistantMessage, log: ChatLog) -> Plan:
    position = _position(log, lambda exchange: exchange.message_id == posted.id)
    if position is None:
        raise Unknown("This approval is not known; load the chat again.")
    exchange = log.rebuild(log.exchanges[position])
    by_approval = {
        state.ask.approval_id: state
        for state in exchange.gate.calls.values()
        if state.ask is not None
    }
    decisions: list[Decision] = []
    repeats: list[str] = []
    for answer in posted.decisions:
        state = by_approval.get(answer.approval_id)
        if state is None:
            raise Unknown("This approval is not known; load the chat again.")
        if _is_repeat(state, answer, log.rows.get(answer.approval_id)):
            repeats.append(answer.approval_id)
        else:
            decisions.append(_decision(log, state, answer))
    outputs = {
        output.tool_call_id: output
        for output in posted.outputs
        if _takes_output(exchange.gate.calls.get(output.tool_call_id))
    }
    for call_id, output in outputs.items():
        check_output(exchange.gate.calls[call_id], output, log.limits)
    return ContinueExchange(exchange, posted, decisions, repeats, outputs)


def _decision(log: ChatLog, state: CallState, answer: PostedDecision) -> Decision:
    if answer.is_remembered and not state.call.facts.rememberable:
        raise Malformed(
            f"Approvals of {state.call.name} cannot be remembered; approve this one alone."
        )
    return Decision(
        new_approval(log.chat, state, ttl=0),
        answer.approved,
        answer.reason,
        edits=checked_edits(state.call, answer.edits, log.limits),
        is_remembered=answer.is_remembered,
    )


def _takes_output(state: CallState | None) -> bool:
    return state is not None and state.is_client_side and state.outcome is None


def _is_repeat(state: CallState, answer: PostedDecision, row: ApprovalRow | None) -> bool:
    """Whether the same was said before; raises when it contradicts or comes too late (A4)."""
    if row is None:
        if state.answer is None:
            return False
        first: bool | None = state.answer.approved
    elif row.state == "requested":
        return False
    else:
        first = row.answer
    if first is None:
        raise Superseded("This approval is closed; load the chat again.")
    if first is not answer.approved:
        raise AlreadyDecided("This approval was already decided; load the chat again.")
    if row is not None and row.state == "superseded":
        raise Superseded("This approval is closed; load the chat again.")
    return True


def check_winners(decisions: Sequence[Decision], rows: Sequence[ApprovalRow]) -> None:
    """Tell the one who lost a race against another answer (A1: the first decision wins).

    Raises:
        AlreadyDecided: somebody else said the opposite first.
        Superseded: the request was closed in between.
    """
    by_id = {row.approval_id: row for row in rows}
    for decision in decisions:
        row = by_id[decision.request.approval_id]
        if row.state == "superseded":
            raise Superseded("This approval is closed; load the chat again.")
        if row.answer is not None and not decision.says_what(row):
            raise AlreadyDecided("This approval was already decided; load the chat again.")


def call_key(chat: ChatKey, state: CallState) -> CallKey:
    """The ledger's key of a gated call (A1)."""
    ask = state.ask
    if ask is None:
        return CallKey(*chat, invocation="", call=state.call.id)
    return CallKey(*chat, ask.invocation, state.call.id_in_adk)


def new_approval(chat: ChatKey, state: CallState, *, ttl: float) -> NewApproval:
    """The ledger's request row of a gated call; ``ttl`` in seconds."""
    call, ask = state.call, state.ask
    return NewApproval(
        key=call_key(chat, state),
        approval_id=ask.approval_id if ask else "",
        tool=call.name,
        args_hash=hash_arguments(call.args),
        ttl=ttl,
        arguments=call.args,
        hint=shown_hint(call, ask) if ask else None,
    )


def _position(log: ChatLog, fits: Callable[[Exchange], bool]) -> int | None:
    for index in range(len(log.exchanges) - 1, -1, -1):
        if fits(log.exchanges[index]):
            return index
    return None


def _open_exchange(log: ChatLog) -> RebuiltExchange | None:
    last = log.last()
    return last if last is not None and last.is_unfinished else None


def _rewindable(log: ChatLog, position: int) -> Sequence[Exchange]:
    rewound = log.exchanges[position:]
    invocations = {exchange.invocation for exchange in rewound}
    if any(exchange.is_live for exchange in rewound):
        raise NotRewindable
    for row in log.rows.values():
        if row.key.invocation in invocations and row.state in EFFECTFUL:
            raise WouldForgetEffect(
                f"{row.tool} has run in this answer, so it cannot be taken back; "
                "send a new message instead."
            )
    return rewound


def still_open(plan: ContinueExchange) -> list[CallState]:
    """Calls of the exchange that nobody has answered yet, this request included."""
    return [s for s in plan.exchange.open_calls if s.call.id not in plan.outputs]
