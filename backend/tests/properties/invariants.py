"""Invariants of every response: T1 to T9 and D1 to D3."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sluicegate.core.grammar import Grammar
from sluicegate.wire.chunks import (
    BaseChunk,
    ErrorChunk,
    FinishChunk,
    ResetStepChunk,
    StartChunk,
    StartStepChunk,
    ToolInputAvailableChunk,
    ToolOutputDeniedChunk,
    ToolOutputErrorChunk,
    chunk_for_major,
)
from sluicegate.wire.encoding import to_json
from sluicegate.wire.messages import UIMessage, current_step, is_tool_part
from tests.properties.example_agent import SECRET

_RESULTS = ("tool-output-available", "tool-output-error", "tool-output-denied", "file")
_BEFORE_RELEASE = ("start", "finish", "error", "message-metadata")
_PREFIXES_BEFORE_RELEASE = ("data-", "reasoning-", "tool-input-")
_STEPS = ("start-step", "finish-step", "reset-step", "tool-approval-request")


def kind(chunk: BaseChunk) -> str:
    """The type of a chunk."""
    return str(getattr(chunk, "type"))  # noqa: B009 - the base class has no type


def waits(chunks: Sequence[BaseChunk]) -> bool:
    """Whether a response ends by waiting for a user or a browser."""
    last = chunks[-1]
    return isinstance(last, FinishChunk) and last.finish_reason == "tool-calls"


def check_order(
    chunks: Sequence[BaseChunk],
    before: UIMessage | None,
    client_tools: Collection[str],
    *,
    is_told_of_questions: bool = True,
) -> None:
    """Each chunk may follow the one before it (T1, T2, T3, T5, T8, T9)."""
    parts = before["parts"] if before is not None and before["role"] == "assistant" else []
    tools = [part for part in parts if is_tool_part(part)]
    again = frozenset(
        part["toolCallId"]
        for part in tools
        if part["state"] == "approval-responded" and part["type"][5:] in client_tools
    )
    grammar = Grammar({p["toolCallId"]: p["state"] for p in tools}, reannounced=again)
    for chunk in chunks:
        if isinstance(chunk, ToolOutputDeniedChunk) and not is_told_of_questions:
            grammar.feed(ToolOutputErrorChunk(tool_call_id=chunk.tool_call_id, error_text=""))
        else:
            grammar.feed(chunk)
    grammar.close()


def check_major(chunks: Sequence[BaseChunk], major: int) -> None:
    """Chunks for a 6 client are valid for it; it never contains an exception's message."""
    for chunk in chunks:
        assert major == 7 or chunk_for_major(chunk, 6) == chunk
        assert SECRET not in to_json(chunk)


def check_progress(chunks: Sequence[BaseChunk], before: UIMessage | None) -> None:
    """A turn that answers something changes a part, adds a step or ends in an error (T4)."""
    if before is None or before["role"] == "user":
        return
    moves = (StartStepChunk, ErrorChunk, ToolInputAvailableChunk)
    assert any(isinstance(c, moves) or kind(c) in _RESULTS for c in chunks)
    start = chunks[0]
    assert isinstance(start, StartChunk)
    assert start.message_id == before["id"]


def check_last_step(message: UIMessage, client_tools: Collection[str]) -> None:
    """A message that is done ends in a step without a finished server tool (T5)."""
    for part in current_step(message["parts"]):
        if is_tool_part(part) and part["state"].startswith("output-"):
            assert part["type"][5:] in client_tools


def remaining_chunks(chunks: Sequence[BaseChunk]) -> list[BaseChunk]:
    """The chunks still in force after every ``reset-step``."""
    kept: list[BaseChunk] = []
    for chunk in chunks:
        if isinstance(chunk, ResetStepChunk):
            while not isinstance(kept[-1], StartStepChunk):
                kept.pop()
        else:
            kept.append(chunk)
    return kept


def check_held(chunks: Sequence[BaseChunk], *, is_preview: bool) -> None:
    """Nothing is released before its time (D1), and texts come before results (D3)."""
    if not is_preview:
        assert "reset-step" not in map(kind, chunks)
    kinds = [kind(chunk) for chunk in remaining_chunks(chunks)]
    if waits(chunks):
        early = [each for each in kinds if not _may_precede_release(each)]
        assert not early
    elif "text-end" in kinds:
        last_text = len(kinds) - kinds[::-1].index("text-end")
        results = [each for each in kinds[:last_text] if each in _RESULTS]
        assert not results


def _may_precede_release(each: str) -> bool:
    return each in (*_BEFORE_RELEASE, *_STEPS) or each.startswith(_PREFIXES_BEFORE_RELEASE)
