"""Responses from the stored conversation alone: nothing runs, nothing changes (A3, A4, T4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sluicegate.core.approvers import still_missing
from sluicegate.core.history import for_reader
from sluicegate.engine.repeated_requests import first_missing
from sluicegate.engine.turn.reader import TurnReader
from sluicegate.wire.chunks import BaseChunk, ErrorChunk, FinishChunk, StartChunk

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluicegate.core.call_state import CallState
    from sluicegate.core.history import RebuiltExchange
    from sluicegate.core.plan import ContinueExchange
    from sluicegate.wire.chunks import Major

NOTHING_TO_DO: Final = "Nothing in this chat waits for that answer; load the chat again."
_DECIDED: Final = "approval-responded"


def not_yet(plan: ContinueExchange, waiting: Sequence[str], *, major: Major) -> TurnReader:
    """Some calls are open: announce what the page may go on with, else name them (A3, T4)."""
    exchange = plan.exchange
    calls = exchange.buffer.calls
    if plan.repeats and not plan.decisions and not _are_posted(plan, waiting):
        return repeated(plan, major=major)
    runnable = [call_id for call_id in waiting if _awaits_announcement(plan, calls[call_id])]
    head: list[BaseChunk] = [StartChunk(message_id=exchange.exchange.message_id)]
    repeated_decisions = _repeated_decisions(plan)
    if not runnable and not repeated_decisions:
        sentence = f"Your answer is noted; {_still_open(plan, waiting)}."
        return refusal(exchange.exchange.message_id, sentence, major=major)
    if not runnable:
        head.extend(repeated_decisions)
    for call_id in runnable:
        head.extend(exchange.buffer.announce_again(call_id))
    head.extend(exchange.buffer.pause())
    head.append(FinishChunk(finish_reason="tool-calls", message_metadata=exchange.metadata))
    return TurnReader(head, None, major=major)


def _still_open(plan: ContinueExchange, waiting: Sequence[str]) -> str:
    """Which calls are open, and how many people of whom are missing where others decide."""
    states = [plan.exchange.buffer.calls[call_id] for call_id in waiting]
    missing, names = [], set()
    for state in states:
        row = None if state.request is None else plan.exchange.rows.get(state.request.approval_id)
        if row is None or row.approvers is None:
            names.add(state.call.name)
        else:
            missing.append(still_missing(state.call.name, row.approvers, row.approved_by))
    if names:
        missing.append("still waiting for: " + ", ".join(sorted(names)))
    return "; ".join(missing)


def _repeated_decisions(plan: ContinueExchange) -> list[BaseChunk]:
    """Decided confirmations to announce again, so that no rule sends them a second time (T4, T9).

    Only those that the page still has as decided: the same response twice would change nothing.
    """
    decided = {part.tool_call_id for part in plan.posted.parts if part.state == _DECIDED}
    repeated_inputs = plan.exchange.buffer.repeated_inputs
    return [chunk for chunk in repeated_inputs if chunk.tool_call_id in decided]


def _are_posted(plan: ContinueExchange, waiting: Sequence[str]) -> bool:
    """Whether the page knows of a call that waits; in style confirmation by its card alone.

    A request after the first one of a call is known by its approval alone.
    """
    names = {part.tool_call_id for part in plan.posted.parts}
    approvals = {part.approval_id for part in plan.posted.parts}
    for call_id in waiting:
        state = plan.exchange.buffer.calls[call_id]
        card = None if state.request is None else state.request.approval_id
        is_known = card in names or card in approvals
        if is_known or (call_id in names and not state.earlier):
            return True
    return False


def _awaits_announcement(plan: ContinueExchange, state: CallState) -> bool:
    """Whether the page approved a call of its own whose input is not yet available to it."""
    answered = {decision.request.approval_id for decision in plan.decisions} | set(plan.repeats)
    if not state.is_approved or state.request is None or state.request.approval_id not in answered:
        return False
    posted = (part for part in plan.posted.parts if part.tool_call_id == state.call.id)
    return all(part.state == _DECIDED for part in posted)


def repeated(plan: ContinueExchange, *, major: Major) -> TurnReader:
    """Nothing is left to run: repeat the rest of the message, or say so (A4)."""
    first = first_missing(plan)
    if first is None:
        return refusal(plan.exchange.exchange.message_id, NOTHING_TO_DO, major=major)
    return stored(plan.exchange, first, major=major)


def stored(exchange: RebuiltExchange, first: int, *, major: Major) -> TurnReader:
    """The turns of an exchange from ``first`` on, as one response (A4)."""
    chunks = begun(exchange, first)
    reason = "tool-calls" if exchange.is_waiting else exchange.translator.facts.finish_reason
    chunks.append(FinishChunk(finish_reason=reason, message_metadata=exchange.metadata))
    return TurnReader(for_reader(chunks, major=major), None, major=major)


def begun(exchange: RebuiltExchange, first: int) -> list[BaseChunk]:
    """The turns of an exchange from ``first`` on, as the begin of a response."""
    chunks: list[BaseChunk] = [StartChunk(message_id=exchange.exchange.message_id)]
    for index, turn in enumerate(exchange.turns[first:]):
        if index or not first:
            chunks.extend(turn.answers)
        chunks.extend(turn.chunks)
    return chunks


def refusal(message_id: str, sentence: str, *, major: Major) -> TurnReader:
    """A response that ends in an error chunk and changes nothing (T4)."""
    head = [StartChunk(message_id=message_id), ErrorChunk(error_text=sentence)]
    return TurnReader(head, None, major=major)
