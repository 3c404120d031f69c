"""The stored conversation: session events to chunks, and to UI messages.

Rule 1: the log goes through the same translator and gate as a live turn, so a message is the same
live, resumed and reloaded. Rule 2: the ledger says what people answered; the log says what came
of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from sluicegate.core.emission_order import in_emission_order
from sluicegate.core.events import media_in, parts_of
from sluicegate.core.exchanges import Exchange, notes, question_texts
from sluicegate.core.finish_metadata import edits_in, metadata
from sluicegate.core.ledger_overlay import (
    by_browser,
    closed_by_end,
    closed_in,
    cut_short,
    decision_in,
    enriched,
    is_closed_in,
    remembered_in,
    remembered_open,
    with_remembered,
)
from sluicegate.core.release.policy import open_release_buffer
from sluicegate.core.signals import Answered, Failed, Signal, ToolLookup
from sluicegate.core.translator import Translator
from sluicegate.wire.chunks import (
    BaseChunk,
    DataChunk,
    StartChunk,
    ToolApprovalRequestChunk,
    ToolApprovalResponseChunk,
)
from sluicegate.wire.messages import is_tool_part
from sluicegate.wire.reducer import reduce_chunks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from google.adk.events.event import Event

    from sluicegate.core.approvals import ApprovalRow
    from sluicegate.core.calls import CallState
    from sluicegate.core.events import Media
    from sluicegate.core.ledger_overlay import Rows
    from sluicegate.core.release.base import ReleaseBuffer
    from sluicegate.wire.messages import Part, UIMessage


@dataclass(slots=True)
class RebuiltTurn:
    """The chunks of one turn, between its ``start`` and its ``finish``.

    ``answers`` are what its request brought: known to the one who posted, shown to everyone else.
    """

    id: str
    answers: list[BaseChunk] = field(default_factory=list)
    chunks: list[BaseChunk] = field(default_factory=list)


@dataclass(slots=True)
class RebuiltExchange:
    """An exchange as its log and ledger tell it."""

    exchange: Exchange
    translator: Translator
    gate: ReleaseBuffer
    turns: list[RebuiltTurn]
    rows: Rows

    @property
    def is_waiting(self) -> bool:
        """Whether a person or a browser still has to act."""
        return self.gate.is_waiting

    @property
    def open_calls(self) -> list[CallState]:
        """Calls that wait, in call order."""
        return [state for state in self.gate.calls.values() if state.waits]

    @property
    def is_unfinished(self) -> bool:
        """Whether a gated call has no end yet: it waits, is decided, or its run was cut."""
        return self.is_waiting or any(
            state.ask is not None and state.outcome is None for state in self.gate.calls.values()
        )

    @property
    def metadata(self) -> dict[str, Any]:
        """``messageMetadata`` of a ``finish`` that ends the message as it is (T3)."""
        return metadata(
            self.translator.facts,
            created_at=self.exchange.created_at,
            edits=edits_in(self.gate, self.rows.values()),
        )

    @property
    def chunks(self) -> list[BaseChunk]:
        """The whole message so far, without ``start`` and ``finish``."""
        return [chunk for turn in self.turns for chunk in (*turn.answers, *turn.chunks)]


def rebuild(
    exchange: Exchange, rows: Rows, tools: ToolLookup, *, files_url: str, running: bool = False
) -> RebuiltExchange:
    """Derive an exchange from its events and ledger rows (D5).

    Args:
        exchange: Its events, oldest first, rewound ones dropped.
        rows: The ledger's rows by approval id.
        tools: Facts of the agent's tools.
        files_url: Prefix of the URL of produced media.
        running: A turn goes on: nothing is released that may still be held.
    """
    rebuilt = RebuiltExchange(
        exchange,
        Translator(tools, files_url=files_url),
        open_release_buffer(exchange.release, exchange.style),
        [],
        rows,
    )
    rebuilt.translator.facts.model = exchange.model
    remembered = remembered_in(rows)
    for event in in_emission_order(exchange.events):
        turn = _turn_of(rebuilt, event)
        note = notes(event)
        signals = [
            by_browser(enriched(signal, rows, note), rebuilt.gate, note)
            for signal in cut_short(rebuilt.translator.feed(event), note)
        ]
        signals = with_remembered(signals, rebuilt.gate, remembered)
        answers: list[Signal] = [signal for signal in signals if isinstance(signal, Answered)]
        others: list[Signal] = [s for s in signals if not isinstance(s, Answered | Failed)]
        _tell(turn, rebuilt.gate.feed_all(answers))
        for signal in others:
            _tell(turn, rebuilt.gate.feed_all(closed_by_end(signal, rebuilt.gate, rows)))
            turn.chunks.extend(rebuilt.gate.feed(signal))
    if rebuilt.turns:
        rebuilt.turns[-1].chunks.extend(
            rebuilt.gate.feed_all(remembered_open(rebuilt.gate, remembered))
        )
        _end(rebuilt, rows, running=running)
    return rebuilt


def _tell(turn: RebuiltTurn, answers: list[BaseChunk]) -> None:
    """Add answers: those to questions of the same turn, which was cut, come after them."""
    asked = {c.approval_id for c in turn.chunks if isinstance(c, ToolApprovalRequestChunk)}
    for chunk in answers:
        is_own = isinstance(chunk, ToolApprovalResponseChunk) and chunk.approval_id in asked
        (turn.chunks if is_own else turn.answers).append(chunk)


def _turn_of(rebuilt: RebuiltExchange, event: Event) -> RebuiltTurn:
    name = notes(event).get("turn")
    turns = rebuilt.turns
    if not turns or (name is not None and turns[-1].id != name):
        if turns:
            turns[-1].chunks.extend(_paused(rebuilt))
        turns.append(RebuiltTurn(str(name or event.invocation_id)))
    return turns[-1]


def _paused(rebuilt: RebuiltExchange) -> list[BaseChunk]:
    gate = rebuilt.gate
    return [*gate.feed_all(rebuilt.translator.end()), *gate.pause()]


def _end(rebuilt: RebuiltExchange, rows: Rows, *, running: bool) -> None:
    last = rebuilt.turns[-1]
    gate = rebuilt.gate
    last.chunks.extend(gate.feed_all(rebuilt.translator.end()))
    goes_on = running or rebuilt.is_unfinished
    if goes_on:
        last.chunks.extend(gate.pause())
    decided = RebuiltTurn("decided")
    is_over = not running and is_closed_in(rows, gate)
    for state in gate.calls.values():
        if state.outcome is not None:
            continue
        answer = None if state.answer else decision_in(rows, state)
        if answer is not None:
            decided.answers.extend(gate.feed(answer))
        if answer is not None or not running:
            ended = closed_in(rows, state, is_over=is_over)
            decided.chunks.extend(gate.feed_all(ended))
    if decided.answers or decided.chunks:
        rebuilt.turns.append(decided)
    if not (running or rebuilt.is_unfinished):
        # What is held comes after the decisions that closed the last calls.
        rebuilt.turns[-1].chunks.extend(gate.finish())


def assistant_message(rebuilt: RebuiltExchange, rows: Rows) -> UIMessage:
    """The answer of an exchange as ``GET /chats/{id}`` returns it (section 7, gated part)."""
    exchange = rebuilt.exchange
    start = StartChunk(message_id=exchange.message_id)
    message = reduce_chunks([start, *(c for c in rebuilt.chunks if not _is_passing(c))])
    message["metadata"] = rebuilt.metadata
    decided = {
        state.ask.approval_id: _trace(rows[state.ask.approval_id])
        for state in rebuilt.gate.calls.values()
        if state.ask is not None and state.ask.approval_id in rows
    }
    if decided:
        message["metadata"]["approvals"] = decided
    return message


def known_calls(rebuilt: RebuiltExchange) -> dict[str, str]:
    """Tool parts of the message so far with their states, for the grammar of the next turn."""
    start = StartChunk(message_id=rebuilt.exchange.message_id)
    message = reduce_chunks([start, *rebuilt.chunks])
    return {part["toolCallId"]: part["state"] for part in message["parts"] if is_tool_part(part)}


def user_message(exchange: Exchange, *, files_url: str) -> UIMessage | None:
    """The user's message of an exchange; its files as URLs of our own."""
    questions = exchange.questions
    if not questions:
        return None
    holders = [part for event in questions for part in parts_of(event)]
    files = [file for part in holders if (file := media_in(part, files_url))]
    parts: list[Part] = [_file_part(file) for file in files]
    texts = [text for event in questions for text in question_texts(event)]
    parts.extend({"type": "text", "text": text} for text in texts)
    return {"id": exchange.user_message_id, "role": "user", "parts": parts}


def _file_part(file: Media) -> Part:
    part = {"type": "file", "mediaType": file.media_type, "url": file.url}
    return part if file.title is None else {**part, "filename": file.title}


def resumable(rebuilt: RebuiltExchange, *, major: Literal[6, 7]) -> bool:
    """Whether a client of that major can take the message as chunks (section 7)."""
    if major == 7:
        return True
    asked = [state for state in rebuilt.gate.calls.values() if state.was_asked]
    return all(state.waits for state in asked) or not any(state.waits for state in asked)


def for_reader(chunks: Sequence[BaseChunk], *, major: Literal[6, 7]) -> list[BaseChunk]:
    """Chunks of earlier turns for one who reads them anew.

    AI SDK 7 is told of decisions by ``tool-approval-response``; for 6 a decided approval leaves
    neither request nor response, since only an answer of its own could complete it.
    """
    if major == 7:
        return list(chunks)
    decided = {c.approval_id for c in chunks if isinstance(c, ToolApprovalResponseChunk)}
    return [
        chunk
        for chunk in chunks
        if not isinstance(chunk, ToolApprovalResponseChunk)
        and not (isinstance(chunk, ToolApprovalRequestChunk) and chunk.approval_id in decided)
    ]


def _is_passing(chunk: BaseChunk) -> bool:
    return isinstance(chunk, DataChunk) and bool(chunk.transient)


def _trace(row: ApprovalRow) -> dict[str, Any]:
    """Who decided, when and how it went; times in seconds since the epoch."""
    trace: dict[str, Any] = {
        "state": row.state,
        "requestedAt": row.requested_at,
        "decidedAt": row.decided_at,
        "decidedBy": row.decided_by,
        "tool": row.tool,
    }
    if row.is_automatic:
        trace["automatic"] = True
    if row.edits is not None:
        trace["edits"] = row.edits
    return trace
