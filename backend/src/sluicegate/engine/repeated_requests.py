"""Requests that repeat what was answered before, or is answered by another process (A4).

A page sends a request again if its response was lost, and two pages may send the same decision.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from sluicegate.core.event_reading import notes_of
from sluicegate.wire.chunks import BaseChunk, StartChunk, ToolApprovalRequestChunk
from sluicegate.wire.reducer import reduce_chunks

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from sluicegate.core.plan import ChatLog, ContinueExchange
    from sluicegate.engine.turn.remote_turns import RemoteTurn
    from sluicegate.wire.requests import ChatRequest

_UNSETTLED: Final = frozenset({"approval-responded", "input-available"})
"""The states of a decided part without an outcome; the second one if it was announced again."""


def first_missing(plan: ContinueExchange) -> int | None:
    """The number of the first turn that the posted message lacks.

    None: it repeats no decision, or holds something later than those.
    """
    exchange = plan.exchange
    requested_in = 0
    requested: set[str] = set()
    for index, turn in enumerate(exchange.turns):
        requests = {
            chunk.approval_id
            for chunk in turn.chunks
            if isinstance(chunk, ToolApprovalRequestChunk) and not chunk.is_automatic
        }
        if not requests.isdisjoint(plan.repeats):
            requested_in, requested = index + 1, requests
    is_within = 0 < requested_in < len(exchange.turns)
    return requested_in if is_within and _ends_after(plan, requested_in, requested) else None


def as_repeats(plan: ContinueExchange) -> ContinueExchange:
    """The plan with its decisions as repeats: another process has continued with them."""
    decided = [decision.request.approval_id for decision in plan.decisions]
    return replace(plan, decisions=(), repeats=[*plan.repeats, *decided])


def was_continued(plan: ContinueExchange, known: Collection[str]) -> bool:
    """Whether another process has continued the exchange after the known turns."""
    now = plan.exchange
    if not now.is_unfinished:
        return True
    has_new_requests = any(turn.id not in known for turn in now.turns) and now.is_waiting
    return has_new_requests and all(
        s.is_waiting or s.outcome is not None for s in now.buffer.calls.values()
    )


def has_ended(plan: ContinueExchange) -> bool:
    """Whether a live model has ended its answer, as far as the session shows."""
    events = plan.exchange.exchange.events
    if plan.exchange.is_waiting or not notes_of(events[-1]).get("live"):
        return True
    for event in reversed(events):
        if event.turn_complete or event.interrupted:
            return True
        if event.get_function_responses():
            return False
    return True


def repeats_remote(request: ChatRequest, log: ChatLog, remote: RemoteTurn) -> bool:
    """Whether a request repeats the message that another process is answering."""
    message = request.user_message
    if message is None or request.message_id is not None:
        return False
    if remote.description is not None:
        return remote.description.user_message == message.id
    return (
        not remote.is_live
        and bool(log.exchanges)
        and log.exchanges[-1].user_message_id == message.id
    )


def _ends_after(plan: ContinueExchange, turns: int, requested: set[str]) -> bool:
    """Whether the posted message holds so many turns and decides ``requested``, no more."""
    chunks: list[BaseChunk] = [StartChunk(message_id=plan.posted.id)]
    for turn in plan.exchange.turns[:turns]:
        chunks.extend([*turn.answers, *turn.chunks])
    stored_parts = [part["type"] for part in reduce_chunks(chunks)["parts"]]
    posted = [part.type for part in plan.posted.parts]
    answers = (part.state for part in plan.posted.parts if part.approval_id in requested)
    return _lasting(stored_parts) == _lasting(posted) and set(answers) <= _UNSETTLED


def _lasting(types: Sequence[str]) -> list[str]:
    """The parts with content; a connection may break after the begin of a further step."""
    return [each for each in types if each != "step-start" and not each.startswith("data-")]
