"""Plans a turn from a request and the stored conversation, before anything is changed.

Rule 1: only new text, answers and outputs count (S2-R44). Rule 2: a refusal leaves no trace (A4).
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from sluicegate.core.approval_metadata import edits_of
from sluicegate.core.approval_previews import is_failed
from sluicegate.core.approvals import ApprovalRow, Decision, GrantScope, is_effectful
from sluicegate.core.approvers import Decider, decision_of, not_entitled
from sluicegate.core.confirmation_payload_form import is_form, seen_payload
from sluicegate.core.edited_arguments import checked_edits, effective_edits
from sluicegate.core.function_responses_for_adk import check_output
from sluicegate.core.json_values import is_same
from sluicegate.core.new_approval import new_approval
from sluicegate.core.payload_validation import (
    checked_payload,
    covered_payload,
    is_approved_payload,
)
from sluicegate.errors import (
    AlreadyDecided,
    Changed,
    Malformed,
    NoPreview,
    NotEntitled,
    NotRewindable,
    Superseded,
    Unknown,
    WouldForgetEffect,
)
from sluicegate.wire.limits import DEFAULT_LIMITS, RequestLimits, check_size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pydantic import JsonValue

    from sluicegate.core.approvals import Rows
    from sluicegate.core.call_state import CallState
    from sluicegate.core.chat_and_turn_keys import ChatKey
    from sluicegate.core.exchanges import Exchange
    from sluicegate.core.history import RebuiltExchange
    from sluicegate.wire.decisions import PostedDecision
    from sluicegate.wire.posted_assistant_message import ClientOutput, PostedAssistantMessage
    from sluicegate.wire.requests import ChatRequest, UserMessage


@dataclass(frozen=True, slots=True)
class ChatLog:
    """The stored conversation: exchanges, oldest first, and ledger rows by approval id.

    ``is_new``: the chat has no session yet. ``limits`` bound a browser's outputs and edits.
    ``fence`` is the fencing token of the chat's last owner, if it was read before the log.
    ``rebuilt`` rebuilds an exchange with such rows. ``was_replaced`` says whether the exchange of a
    message id was replaced, by an edit or another answer.
    """

    chat: ChatKey
    exchanges: Sequence[Exchange]
    rows: Rows
    rebuilt: Callable[[Exchange, Rows], RebuiltExchange]
    was_replaced: Callable[[str], bool]
    is_new: bool = False
    limits: RequestLimits = DEFAULT_LIMITS
    fence: int | None = None

    def rebuild(self, exchange: Exchange) -> RebuiltExchange:
        """An exchange with its translator and release buffer after its last event."""
        return self.rebuilt(exchange, self.rows)

    def last(self) -> RebuiltExchange | None:
        """The newest exchange, rebuilt."""
        return self.rebuild(self.exchanges[-1]) if self.exchanges else None


@dataclass(frozen=True, slots=True)
class NewExchange:
    """Run a user's message.

    ``rewound`` are the exchanges it replaces, oldest first; ``message`` None means the stored
    message of the first of them. ``closes`` is the exchange whose open calls it supersedes (A5).
    ``is_first``: the chat has no session yet.
    """

    message: UserMessage | None
    user_message_id: str
    rewound: Sequence[Exchange] = ()
    closes: RebuiltExchange | None = None
    is_first: bool = False


@dataclass(frozen=True, slots=True)
class ContinueExchange:
    """Record decisions, and continue once nothing is open (A3).

    ``decisions`` are new; ``repeats`` are approval ids of decisions already made. ``outputs`` are
    those of client-side calls by call id.
    """

    exchange: RebuiltExchange
    posted: PostedAssistantMessage
    decisions: Sequence[Decision] = ()
    repeats: Sequence[str] = ()
    outputs: Mapping[str, ClientOutput] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RepeatExchange:
    """Send an answer from the log again; nothing runs (A4)."""

    exchange: RebuiltExchange


Plan = NewExchange | ContinueExchange | RepeatExchange

_DECIDED: Final = "This approval was already decided; load the chat again."


def plan_turn(request: ChatRequest, log: ChatLog, decider: Decider | None = None) -> Plan:
    """Plan the turn of a request; ``decider`` is the user of the chat if it is not given.

    Raises:
        Malformed: A grant or an edit that the tool does not allow.
        Unknown: An approval, message or exchange that is not of this chat.
        NotEntitled: A decision that is for other people.
        AlreadyDecided: A decision that contradicts the first one.
        Changed: A yes to what another person has changed since.
        NoPreview: A yes to a call whose preview has failed.
        Superseded: A decision on a closed request, or an answer that was replaced meanwhile.
        WouldForgetEffect: A rewind over a call that may have run.
        NotRewindable: A rewind over a live run.
    """
    if request.continued is not None:
        return _plan_answers(request.continued, log, decider or Decider(log.chat.user))
    if request.trigger == "regenerate-message":
        return _plan_regenerate(request, log)
    message = request.user_message
    if message is None:
        raise Unknown("This message is not part of the chat; load the chat again.")
    position = _position(log, lambda exchange: exchange.user_message_id == message.id)
    if position is None:
        return NewExchange(message, message.id, closes=_open_exchange(log), is_first=log.is_new)
    exchange = log.exchanges[position]
    if request.message_id == message.id:
        return NewExchange(message, message.id, rewound=_rewindable(log, position))
    is_last = position == len(log.exchanges) - 1
    if is_last and exchange.was_cut and not log.rebuild(exchange).is_waiting:
        return NewExchange(None, message.id, rewound=_rewindable(log, position))
    return RepeatExchange(log.rebuild(exchange))


def _plan_regenerate(request: ChatRequest, log: ChatLog) -> Plan:
    user_message = request.user_message.id if request.user_message else None
    position = _position(
        log, lambda e: request.message_id == e.message_id or user_message == e.user_message_id
    )
    if position is None:
        _check_not_replaced(log, request.message_id)
        raise Unknown("This message is not part of the chat; load the chat again.")
    exchange = log.exchanges[position]
    return NewExchange(None, exchange.user_message_id, rewound=_rewindable(log, position))


def _plan_answers(posted: PostedAssistantMessage, log: ChatLog, decider: Decider) -> Plan:
    position = _position(log, lambda exchange: exchange.message_id == posted.id)
    if position is None:
        _check_not_replaced(log, posted.id)
        raise Unknown("This approval is not known; load the chat again.")
    exchange = log.rebuild(log.exchanges[position])
    by_approval = {
        request.approval_id: state
        for state in exchange.buffer.calls.values()
        for request in state.requests
    }
    decisions: list[Decision] = []
    repeats: list[str] = []
    for answer in posted.decisions:
        state = by_approval.get(answer.approval_id)
        if state is None:
            raise Unknown("This approval is not known; load the chat again.")
        if _is_repeat(state, answer, log, decider):
            repeats.append(answer.approval_id)
        else:
            _check_preview(log.rows.get(answer.approval_id), answer)
            decisions.append(_decision(log, state, answer))
    outputs = {
        output.tool_call_id: output
        for output in posted.outputs
        if _awaits_output(exchange.buffer.calls.get(output.tool_call_id))
    }
    for call_id, output in outputs.items():
        check_output(exchange.buffer.calls[call_id], output, log.limits)
    if not decisions and not outputs:
        _check_repeats(posted, log.rows)
    return ContinueExchange(exchange, posted, decisions, repeats, outputs)


def _check_not_replaced(log: ChatLog, message_id: str | None) -> None:
    """Distinguish a message that an edit or another answer has replaced from an unknown one.

    Raises:
        Superseded: It was replaced.
    """
    if message_id is not None and log.was_replaced(message_id):
        raise Superseded("This answer was replaced by another; load the chat again.")


def _check_preview(row: ApprovalRow | None, answer: PostedDecision) -> None:
    """Check that a yes is about what the card shows now.

    Raises:
        NoPreview: Nothing could be shown.
        Changed: The call was edited since.
    """
    if row is None or row.preview is None or not answer.approved:
        return
    if is_failed(row.preview):
        raise NoPreview(f"{row.preview.get('reason')} Deny this call; the agent may ask again.")
    if not row.is_seen(answer.digest):
        raise Changed


def _decision(log: ChatLog, state: CallState, answer: PostedDecision) -> Decision:
    if answer.remember is not None and not state.call.facts.rememberable:
        raise Malformed(
            f"Approvals of {state.call.name} cannot be remembered; approve this one alone."
        )
    if is_form(covered_payload(state)) and (answer.edits, answer.remember) != (None, None):
        raise Malformed(
            f"This approval of {state.call.name} is a form; answer it with a payload alone."
        )
    declared = None if state.request is None else state.request.schema
    edits = checked_edits(state.call, answer.edits, log.limits, schema=declared)
    payload = checked_payload(state, answer.payload, log.limits, approved=answer.approved)
    remember = _grant_scope(answer, log.limits)
    if remember is not None:
        effective = state.call.args if edits is None else edits
        if not isinstance(effective, dict) or not effective.keys() >= set(remember.where):
            raise Malformed(
                f"An argument that must keep its value is none of this call of {state.call.name}; "
                "name arguments that it has."
            )
    return Decision(
        new_approval(log.chat, state, ttl=0),
        answer.approved,
        answer.reason,
        edits=edits,
        payload=payload,
        remember=remember,
        digest=answer.digest,
        response=_checked_response(state, answer, log.limits),
    )


def _checked_response(state: CallState, answer: PostedDecision, limits: RequestLimits) -> JsonValue:
    if answer.response is None:
        return None
    name, schema = state.call.name, state.call.facts.respond
    if schema is None:
        raise Malformed(f"{name} accepts no answer in its place; approve or deny the call.")
    check_size(answer.response, limits)
    # The validator takes long to import, and answers are rare.
    validator = importlib.import_module("sluicegate.core.schema_validation")
    error: str | None = validator.compile_schema(schema).error(answer.response, root="it")
    if error is not None:
        raise Malformed(f"The answer in place of {name} does not fit: {error}.")
    return answer.response


def _grant_scope(answer: PostedDecision, limits: RequestLimits) -> GrantScope | None:
    option = answer.remember
    if option is None:
        return None
    ttl = limits.grant_ttl if option.ttl is None else option.ttl
    if ttl > limits.grant_ttl:
        raise Malformed(
            f"An approval is remembered for at most {limits.grant_ttl:g} seconds; "
            "choose a shorter time."
        )
    return GrantScope(ttl, option.where)


def _awaits_output(state: CallState | None) -> bool:
    return state is not None and state.is_client_side and state.outcome is None


def _is_repeat(state: CallState, answer: PostedDecision, log: ChatLog, decider: Decider) -> bool:
    """Whether a decision repeats the recorded one (A4).

    Raises:
        NotEntitled: Other people decide.
        Changed: It approves what another person has changed since.
        AlreadyDecided: It contradicts the recorded one.
        Superseded: The request is closed.
        Malformed: It asks for a grant that no decision can give.
    """
    row = log.rows.get(answer.approval_id)
    if row is not None and row.approvers is not None and row.state != "superseded":
        found = _is_own_repeat(state, answer, row, decider)
        if found is not None:
            return found
    return _repeats_row(state, answer, row, log.limits)


def _repeats_row(
    state: CallState, answer: PostedDecision, row: ApprovalRow | None, limits: RequestLimits
) -> bool:
    first: bool | None
    if any(request.approval_id == answer.approval_id for request in state.earlier):
        # The tool has asked again, which it does after an approval alone.
        first = True
    elif row is None:
        if state.answer is None:
            return False
        first = state.answer.approved
    elif row.state == "requested" or row.is_expiry_unreported:
        return False
    else:
        first = row.answer
    if first is None:
        if row is not None and row.state == "expired" and state.outcome is None:
            # The agent does not know of it yet; the decision adds nothing (A5).
            return True
        raise Superseded("This approval is closed; load the chat again.")
    if first is not answer.approved:
        raise AlreadyDecided(_DECIDED)
    if row is not None and row.state == "superseded":
        raise Superseded("This approval is closed; load the chat again.")
    if row is not None and not _approves_the_same(state, answer, row, limits):
        raise AlreadyDecided(_DECIDED)
    return True


def _is_own_repeat(
    state: CallState, answer: PostedDecision, row: ApprovalRow, decider: Decider
) -> bool | None:
    """Whether a decision repeats that of the same person; None if the row alone says so.

    Raises:
        NotEntitled: The person may not decide it.
        AlreadyDecided: It contradicts the person's own decision, or comes after the last one.
        Changed: It approves what another person has changed since.
    """
    rule, own = row.approvers, decision_of(row.decisions, decider.user)
    if own is not None:
        edits = None if answer.edits is None else effective_edits(state.call, answer.edits)
        is_same_edit = edits is None or is_same(edits, row.edits)
        if own.approved is not answer.approved or not is_same_edit:
            raise AlreadyDecided(_DECIDED)
        return True
    is_of_page = answer.form != "whole"
    is_open = row.state == "requested" or row.is_expiry_unreported
    if not is_open and is_of_page:
        return None
    if rule is None or not rule.entitles(decider.user, decider.roles, requester=row.key.user):
        raise NotEntitled(None if rule is None else not_entitled(rule))
    if not is_open:
        raise AlreadyDecided(_DECIDED)
    if answer.approved and not row.is_seen(answer.digest):
        raise Changed
    return False


def _approves_the_same(
    state: CallState, answer: PostedDecision, row: ApprovalRow, limits: RequestLimits
) -> bool:
    """Whether a second decision states no other arguments, payload or grant (A7)."""
    if not answer.approved or answer.form == "known":
        return True
    is_whole = answer.form == "whole"
    is_shown = answer.edits is None and row.preview is not None and row.is_seen(answer.digest)
    if (is_whole and not is_shown) or answer.edits is not None:
        edits = None if answer.edits is None else effective_edits(state.call, answer.edits)
        if not is_same(edits, row.edits):
            return False
    if is_whole or answer.payload is not None:
        payload = seen_payload(row.payload) if answer.payload is None else answer.payload
        if not is_approved_payload(row, payload):
            return False
    if is_whole or answer.remember is not None:
        return _grant_scope(answer, limits) == row.remember
    return True


def _check_repeats(posted: PostedAssistantMessage, rows: Rows) -> None:
    """Refuse a request whose only news is a yes to what was shown before another person's edits.

    A page sends its yes again beside later answers without the edits, but then it knows them from
    the metadata of the message.

    Raises:
        AlreadyDecided: The yes approves other arguments, or another payload, than the recorded
            decision.
    """
    for answer in posted.decisions:
        row = rows.get(answer.approval_id)
        if row is None or not answer.approved or answer.form != "part" or row.preview is not None:
            continue
        known = posted.known_edits.get(answer.approval_id, {})
        stated = {"edits": answer.edits, "editedPayload": answer.payload, "response": None}
        for name, value in edits_of(row).items():
            if stated[name] is None and not is_same(known.get(name), value):
                raise AlreadyDecided(_DECIDED)


def check_winners(decisions: Sequence[Decision], rows: Sequence[ApprovalRow], by: str) -> None:
    """Check that the recorded decisions are these of a person (A1: the first decision wins).

    Raises:
        AlreadyDecided: A different decision was recorded first.
        Changed: Another person has changed what a yes approves.
        Superseded: The request was closed meanwhile.
    """
    by_id = {row.approval_id: row for row in rows}
    for decision in decisions:
        row = by_id[decision.request.approval_id]
        if row.state == "superseded":
            raise Superseded("This approval is closed; load the chat again.")
        if row.approvers is not None:
            own = decision_of(row.decisions, by)
            is_own = own is not None and own.approved is decision.approved
            is_late = row.state == "expired" and row.decided_by == by
            if not (is_own or is_late):
                changed = row.state == "requested" and own is None
                raise Changed if changed else AlreadyDecided(_DECIDED)
            continue
        if row.answer is not None and not decision.equals(row):
            raise AlreadyDecided(_DECIDED)
        if row.preview is not None and row.state == "requested":
            # Another request has edited it since the check.
            raise Changed


def _position(log: ChatLog, matches: Callable[[Exchange], bool]) -> int | None:
    for index in range(len(log.exchanges) - 1, -1, -1):
        if matches(log.exchanges[index]):
            return index
    return None


def _open_exchange(log: ChatLog) -> RebuiltExchange | None:
    last = log.last()
    return last if last is not None and last.is_unfinished else None


def _rewindable(log: ChatLog, position: int) -> Sequence[Exchange]:
    rewound = log.exchanges[position:]
    if any(exchange.is_live for exchange in rewound):
        raise NotRewindable
    check_without_effect(rewound, log.rows.values())
    return rewound


def check_without_effect(rewound: Sequence[Exchange], rows: Iterable[ApprovalRow]) -> None:
    """Check that no call of these exchanges has run or may have run.

    Raises:
        WouldForgetEffect: One has.
    """
    invocations = {exchange.invocation for exchange in rewound}
    for row in rows:
        if is_effectful(row, invocations):
            raise WouldForgetEffect(
                f"{row.tool} has run in this answer, so it cannot be taken back; "
                "send a new message instead."
            )


def still_open(plan: ContinueExchange) -> list[CallState]:
    """The calls that still wait once the outputs of this request are stored."""
    return [s for s in plan.exchange.open_calls if s.call.id not in plan.outputs]
