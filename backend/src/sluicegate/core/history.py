"""The stored conversation: session events to chunks, and to UI messages.

Rule 1: the log goes through the same translator and release buffer as a live turn, so a message is
the same live, resumed and reloaded. Rule 2: the ledger says what people decided; the log says what
followed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from sluicegate.core.approval_metadata import approvals_in
from sluicegate.core.approvals import is_effectful
from sluicegate.core.automatic_approval_requests import (
    granted_rows,
    open_granted_requests,
    with_granted_requests,
)
from sluicegate.core.event_reading import media_in, notes_of, parts_of, user_texts
from sluicegate.core.finish_metadata import metadata
from sluicegate.core.ledger_signals import (
    annotated,
    closed_call,
    closing_decision,
    is_superseded,
    undelivered_decision,
)
from sluicegate.core.missing_requests import calls_without_request
from sluicegate.core.release.policies import open_release_buffer
from sluicegate.core.signals import (
    NOT_FINISHED,
    Answered,
    ApprovalRequested,
    Failed,
    InputAvailable,
    Settled,
    Signal,
)
from sluicegate.core.stored_emission_order import in_emission_order
from sluicegate.core.translator import Translator
from sluicegate.wire.chunks import (
    BaseChunk,
    DataChunk,
    MessageMetadataChunk,
    StartChunk,
    ToolApprovalRequestChunk,
    ToolApprovalResponseChunk,
)
from sluicegate.wire.reducer import reduce_chunks
from sluicegate.wire.ui_messages import is_tool_part

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from google.adk.events.event import Event

    from sluicegate.core.approvals import ApprovalRow, Rows
    from sluicegate.core.call_state import CallState
    from sluicegate.core.exchanges import Exchange
    from sluicegate.core.release.base import ReleaseBuffer
    from sluicegate.core.signals import Media
    from sluicegate.core.tool_facts import ToolLookup
    from sluicegate.wire.ui_messages import Part, UIMessage


@dataclass(slots=True)
class RebuiltTurn:
    """The chunks of one turn, between its ``start`` and its ``finish``.

    ``answers`` are the answers that its request brought: its sender has them, every other reader
    is shown them.
    """

    id: str
    answers: list[BaseChunk] = field(default_factory=list)
    chunks: list[BaseChunk] = field(default_factory=list)


@dataclass(slots=True)
class RebuiltExchange:
    """An exchange derived from its log and the ledger."""

    exchange: Exchange
    translator: Translator
    buffer: ReleaseBuffer
    turns: list[RebuiltTurn]
    rows: Rows
    is_abandoned: bool = False
    """Whether its process died in the middle of its last turn, and nothing waits."""

    @property
    def is_waiting(self) -> bool:
        """Whether a person or a browser still has to act."""
        return self.buffer.is_waiting

    @property
    def open_calls(self) -> list[CallState]:
        """Calls that wait, in call order."""
        return [state for state in self.buffer.calls.values() if state.is_waiting]

    @property
    def is_unfinished(self) -> bool:
        """Whether a call waits, or a gated call has no outcome: decided, or its run was cut."""
        return self.is_waiting or any(
            state.request is not None and state.outcome is None
            for state in self.buffer.calls.values()
        )

    @property
    def is_rewindable(self) -> bool:
        """Whether an edit or another answer may replace it: no call had an effect (section 7)."""
        invocations = (self.exchange.invocation,)
        has_effect = any(is_effectful(row, invocations) for row in self.rows.values())
        return not (self.exchange.is_live or has_effect)

    @property
    def metadata(self) -> dict[str, Any]:
        """``messageMetadata`` of a ``finish`` that ends the message as it is (T3)."""
        return metadata(
            self.translator.facts,
            created_at=self.exchange.created_at,
            version=self.exchange.version,
            stopped=self.exchange.was_stopped,
            rewindable=self.is_rewindable,
            approvals=approvals_in(self.buffer, self.rows.values(), settled=True),
        )

    @property
    def chunks(self) -> list[BaseChunk]:
        """The whole message so far, without ``start`` and ``finish``."""
        return [chunk for turn in self.turns for chunk in (*turn.answers, *turn.chunks)]

    @property
    def prefix(self) -> list[BaseChunk]:
        """The chunks of the next turn's readers that resume, after ``start``.

        A message is without metadata until the ``finish`` of its turn, so its decisions come here.
        """
        approvals = approvals_in(self.buffer, self.rows.values(), settled=True)
        if not approvals:
            return self.chunks
        return [MessageMetadataChunk(message_metadata={"approvals": approvals}), *self.chunks]


def rebuild(
    exchange: Exchange,
    rows: Rows,
    tools: ToolLookup,
    *,
    files_url: str,
    running: bool = False,
    abandoned: bool = False,
) -> RebuiltExchange:
    """Derive an exchange from its events and ledger rows (D5).

    Args:
        exchange: Its events, oldest first, rewound ones dropped.
        rows: The ledger's rows by approval id.
        tools: Facts of the agent's tools.
        files_url: Prefix of the URL of produced media.
        running: A turn runs on the exchange, so held output is not flushed.
        abandoned: Its process died in the middle of its last turn; unless a call waits, the next
            turn runs on from here.
    """
    rebuilt = RebuiltExchange(
        exchange,
        Translator(tools, files_url=files_url),
        open_release_buffer(
            exchange.release, exchange.style, text_from_results=exchange.text_from_results
        ),
        [],
        rows,
    )
    rebuilt.translator.facts.model = exchange.model
    granted = granted_rows(rows)
    for event in in_emission_order(exchange.events):
        _replay(rebuilt, event, granted, running=running)
    if rebuilt.turns:
        rebuilt.turns[-1].chunks.extend(
            rebuilt.buffer.feed_all(open_granted_requests(rebuilt.buffer, granted))
        )
        rebuilt.is_abandoned = abandoned and not _waits_for_answer(rebuilt)
        _end(rebuilt, running=running or rebuilt.is_abandoned)
    return rebuilt


def _waits_for_answer(rebuilt: RebuiltExchange) -> bool:
    """Whether a gated call has no outcome, other than one that is about to ask again."""
    if rebuilt.is_waiting:
        return True
    asking = calls_without_request(rebuilt.exchange.events)
    return any(
        state.request is not None and state.outcome is None and state.call.id_in_adk not in asking
        for state in rebuilt.buffer.calls.values()
    )


def _replay(
    rebuilt: RebuiltExchange, event: Event, granted: Mapping[str, ApprovalRow], *, running: bool
) -> None:
    """Feed an event of the log to the translator, and its signals to the buffer."""
    buffer, rows, note = rebuilt.buffer, rebuilt.rows, notes_of(event)
    turn = _turn_of(rebuilt, event)
    signals: Sequence[Signal] = [
        _as_client_output(annotated(signal, rows, note), buffer, note)
        for signal in _with_aborted_calls(rebuilt.translator.feed(event), note)
        if not (running and _is_unrecorded(signal, rows))
    ]
    signals = with_granted_requests(signals, buffer, granted)
    _add_answers(turn, buffer.feed_all([s for s in signals if isinstance(s, Answered)]))
    for signal in signals:
        if not isinstance(signal, Answered | Failed):
            _add_answers(turn, buffer.feed_all(closing_decision(signal, buffer, rows)))
            turn.chunks.extend(buffer.feed(signal))


def _is_unrecorded(signal: Signal, rows: Rows) -> bool:
    """Whether it is a request that the running turn is about to record, and then publishes.

    Until then nothing says its deadline, who approves it and what the call would do.
    """
    if not isinstance(signal, ApprovalRequested) or signal.request.automatic:
        return False
    return signal.request.approval_id not in rows


def _add_answers(turn: RebuiltTurn, chunks: list[BaseChunk]) -> None:
    """Add answers; those to requests of the same turn, which was cut, come after the requests."""
    requested = {c.approval_id for c in turn.chunks if isinstance(c, ToolApprovalRequestChunk)}
    for chunk in chunks:
        is_own = isinstance(chunk, ToolApprovalResponseChunk) and chunk.approval_id in requested
        (turn.chunks if is_own else turn.answers).append(chunk)


def _turn_of(rebuilt: RebuiltExchange, event: Event) -> RebuiltTurn:
    """The turn of an event; a new one ends the one before."""
    turn_id = notes_of(event).get("turn")
    turns = rebuilt.turns
    if not turns or (turn_id is not None and turns[-1].id != turn_id):
        if turns:
            turns[-1].chunks.extend(rebuilt.buffer.feed_all(rebuilt.translator.end()))
            turns[-1].chunks.extend(rebuilt.buffer.pause())
        turns.append(RebuiltTurn(str(turn_id or event.invocation_id)))
    return turns[-1]


def _end(rebuilt: RebuiltExchange, *, running: bool) -> None:
    """End the last turn; add the decisions and ends that only the ledger holds."""
    buffer, rows, last = rebuilt.buffer, rebuilt.rows, rebuilt.turns[-1]
    last.chunks.extend(buffer.feed_all(rebuilt.translator.end()))
    if running or rebuilt.is_unfinished:
        last.chunks.extend(buffer.pause())
    decided = RebuiltTurn("decided")
    is_over = not running and is_superseded(buffer, rows)
    for state in buffer.calls.values():
        if state.outcome is not None:
            continue
        decision = None if state.answer else undelivered_decision(state, rows)
        if decision is not None:
            decided.answers.extend(buffer.feed(decision))
        if decision is not None or not running:
            decided.chunks.extend(buffer.feed_all(closed_call(state, rows, is_over=is_over)))
    if decided.answers or decided.chunks:
        rebuilt.turns.append(decided)
    if not (running or rebuilt.is_unfinished):
        # Held output comes after the decisions that closed the last calls.
        rebuilt.turns[-1].chunks.extend(buffer.finish())


def assistant_message(rebuilt: RebuiltExchange, rows: Rows) -> UIMessage:
    """The answer of an exchange as ``GET /chats/{id}`` returns it (section 7, gated part)."""
    exchange = rebuilt.exchange
    start = StartChunk(message_id=exchange.message_id)
    message = reduce_chunks([start, *(c for c in rebuilt.chunks if not _is_transient(c))])
    message["metadata"] = rebuilt.metadata
    approvals = approvals_in(rebuilt.buffer, rows.values())
    if approvals:
        message["metadata"]["approvals"] = approvals
    return message


def known_calls(rebuilt: RebuiltExchange) -> dict[str, str]:
    """Tool parts of the message so far with their states, for the grammar of the next turn."""
    start = StartChunk(message_id=rebuilt.exchange.message_id)
    message = reduce_chunks([start, *rebuilt.chunks])
    return {part["toolCallId"]: _state(part) for part in message["parts"] if is_tool_part(part)}


def _state(part: Part) -> str:
    """The state of a tool part; a decided confirmation stays decided when announced again."""
    is_decided = part["state"] == "input-available" and "approval" in part
    return "approval-responded" if is_decided else str(part["state"])


def user_message(exchange: Exchange, *, files_url: str) -> UIMessage | None:
    """The user's message of an exchange; its files as URLs under ``files_url``."""
    events = exchange.user_events
    if not events:
        return None
    all_parts = [part for event in events for part in parts_of(event)]
    files = [file for part in all_parts if (file := media_in(part, files_url))]
    parts: list[Part] = [_file_part(file) for file in files]
    texts = [text for event in events for text in user_texts(event)]
    parts.extend({"type": "text", "text": text} for text in texts)
    return {"id": exchange.user_message_id, "role": "user", "parts": parts}


def _file_part(file: Media) -> Part:
    part = {"type": "file", "mediaType": file.media_type, "url": file.url}
    return part if file.title is None else {**part, "filename": file.title}


def resumable(rebuilt: RebuiltExchange, *, major: Literal[6, 7]) -> bool:
    """Whether a client of that major can take the message as chunks (section 7)."""
    if major == 7:
        return True
    waiting = [s.is_waiting for s in rebuilt.buffer.calls.values() if s.was_requested]
    return all(waiting) or not any(waiting)


def for_reader(chunks: Sequence[BaseChunk], *, major: Literal[6, 7]) -> list[BaseChunk]:
    """Chunks of earlier turns for a client that reads them anew.

    AI SDK 7 reads decisions as ``tool-approval-response``; for 6 a decided approval has neither
    request nor response, since only the client's own answer could complete it.
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


def _is_transient(chunk: BaseChunk) -> bool:
    return isinstance(chunk, DataChunk) and bool(chunk.transient)


def _with_aborted_calls(signals: Sequence[Signal], note: Mapping[str, Any]) -> list[Signal]:
    """Settle the calls that the note marks as not finished, before their step ends, as live."""
    outcomes = note.get("outcomes", {})
    settled: list[Signal] = []
    for signal in signals:
        settled.append(signal)
        if isinstance(signal, InputAvailable) and signal.call.id_in_adk in outcomes:
            settled.append(Settled(signal.call.id, NOT_FINISHED))
    return settled


def _as_client_output(signal: Signal, buffer: ReleaseBuffer, note: Mapping[str, Any]) -> Signal:
    """Mark the output of an approved client-side call as the browser's.

    In ADK's log it is the tool's, as that of any approved call.
    """
    if not isinstance(signal, Settled) or signal.call_id in note.get("outcomes", {}):
        return signal
    state = buffer.calls.get(signal.call_id)
    if state is None or not state.is_client_side or not state.is_approved:
        return signal
    return Answered(signal.call_id, outcome=signal.outcome)
