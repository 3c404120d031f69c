"""Responses that come from the log alone: nothing runs, nothing is changed (A3, A4, T4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sluicegate.core.history import for_reader, metadata
from sluicegate.engine.turn_reader import TurnReader
from sluicegate.engine.turns import refusal
from sluicegate.wire.chunks import BaseChunk, FinishChunk, StartChunk

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluicegate.core.gate import CallState
    from sluicegate.core.history import RebuiltExchange
    from sluicegate.core.turn_plan import Answers
    from sluicegate.wire.chunks import Major

NOTHING_TO_DO: Final = "Nothing in this chat waits for that answer; load the chat again."


def not_yet(plan: Answers, waiting: Sequence[str], *, major: Major) -> TurnReader:
    """Something is still open: announce what the browser may run, else say so (A3, T4)."""
    exchange = plan.exchange
    calls = exchange.gate.calls
    runnable = [call_id for call_id in waiting if _awaits_word(plan, calls[call_id])]
    head: list[BaseChunk] = [StartChunk(message_id=exchange.exchange.message_id)]
    if not runnable:
        names = ", ".join(sorted({calls[call_id].call.name for call_id in waiting}))
        sentence = f"Your answer is noted; still waiting for: {names}."
        return refusal(exchange.exchange.message_id, sentence, major=major)
    for call_id in runnable:
        head.extend(exchange.gate.announce_again(call_id))
    head.extend(exchange.gate.pause())
    facts = metadata(exchange.translator.facts, created_at=exchange.exchange.created_at)
    head.append(FinishChunk(finish_reason="tool-calls", message_metadata=facts))
    return TurnReader(head, None, major=major)


def _awaits_word(plan: Answers, state: CallState) -> bool:
    """Whether the page said yes to a call of its own and was not yet told to run it."""
    answered = {decision.request.approval_id for decision in plan.decisions} | set(plan.repeats)
    if not state.is_approved or state.ask is None or state.ask.approval_id not in answered:
        return False
    posted = (part for part in plan.posted.parts if part.tool_call_id == state.call.id)
    return all(part.state == "approval-responded" for part in posted)


def repeated(plan: Answers, *, major: Major) -> TurnReader:
    """Nothing is left to run: send the rest of the message again, or say so (A4)."""
    exchange = plan.exchange
    asked_in = 0
    repeated = {
        state.call.id
        for state in exchange.gate.calls.values()
        if state.ask is not None and state.ask.approval_id in plan.repeats
    }
    for index, turn in enumerate(exchange.turns):
        if any(getattr(chunk, "approval_id", None) in plan.repeats for chunk in turn.chunks):
            asked_in = index + 1
    known = {
        call_id
        for turn in exchange.turns[:asked_in]
        for chunk in turn.chunks
        if (call_id := getattr(chunk, "tool_call_id", None)) is not None
    }
    posted = {part.tool_call_id for part in plan.posted.parts if part.tool_call_id}
    if not repeated or not posted <= known or asked_in >= len(exchange.turns):
        return refusal(exchange.exchange.message_id, NOTHING_TO_DO, major=major)
    return stored(exchange, asked_in, major=major)


def stored(exchange: RebuiltExchange, first: int, *, major: Major) -> TurnReader:
    """The turns of an exchange from ``first`` on, as one response (A4)."""
    chunks: list[BaseChunk] = [StartChunk(message_id=exchange.exchange.message_id)]
    for index, turn in enumerate(exchange.turns[first:]):
        if index or not first:
            chunks.extend(turn.answers)
        chunks.extend(turn.chunks)
    facts = exchange.translator.facts
    reason = "tool-calls" if exchange.is_waiting else facts.finish_reason
    chunks.append(
        FinishChunk(
            finish_reason=reason,
            message_metadata=metadata(facts, created_at=exchange.exchange.created_at),
        )
    )
    return TurnReader(for_reader(chunks, major=major), None, major=major)
