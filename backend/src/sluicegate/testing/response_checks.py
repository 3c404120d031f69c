"""The rules T1 to T5, T8, T9 and D1, D3, D4 as checks of responses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sluicegate.core.grammar import Grammar
from sluicegate.errors import ChunkOrderError
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
)
from sluicegate.wire.ui_messages import UIMessage, current_step, is_tool_part, tool_name

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from sluicegate.core.release.policies import ReleasePolicy

_OUTCOMES: Final = ("tool-output-available", "tool-output-error", "tool-output-denied")
_RESULTS: Final = (*_OUTCOMES, "file")
_BEFORE_RELEASE: Final = ("start", "finish", "error", "message-metadata")
_PREFIXES_BEFORE_RELEASE: Final = ("data-", "reasoning-", "tool-input-")
_STEPS: Final = ("start-step", "finish-step", "reset-step", "tool-approval-request")


class RuleViolation(AssertionError):
    """A response breaks a rule; ``rule`` is its id, such as ``D1`` or ``S2-R04``."""

    def __init__(self, rule: str, message: str) -> None:
        super().__init__(f"{rule}: {message}")
        self.rule = rule


def kind(chunk: BaseChunk) -> str:
    """Return the type of a chunk, such as ``text-delta``."""
    return str(getattr(chunk, "type"))  # noqa: B009 - the base class has no type


def waits(chunks: Sequence[BaseChunk]) -> bool:
    """Whether a response ends by waiting for a decision or a client-side tool."""
    last = chunks[-1]
    return isinstance(last, FinishChunk) and last.finish_reason == "tool-calls"


def check_response(
    chunks: Sequence[BaseChunk],
    before: UIMessage | None,
    after: UIMessage,
    *,
    release: ReleasePolicy,
    client_tools: Collection[str] = (),
) -> None:
    """Check a response between two states of the client's last message.

    ``before`` is None, or the user's message, where the response begins an answer.

    Raises:
        RuleViolation: The response breaks a rule.
    """
    check_order(chunks, before, client_tools)
    check_progress(chunks, before)
    if release != "progressive":
        check_held(chunks, is_preview=release == "preview")
    if isinstance(chunks[-1], FinishChunk) and not waits(chunks):
        check_last_step(after, client_tools)


def check_order(
    chunks: Sequence[BaseChunk],
    before: UIMessage | None,
    client_tools: Collection[str] = (),
    *,
    keeps_approvals: bool = True,
) -> None:
    """Each chunk may follow the previous one (T1, T2, T3, T5, T8, T9).

    ``keeps_approvals`` is False for a reader of major 6 that resumes: it receives no decided
    approval, but its denial.

    Raises:
        RuleViolation: A chunk may not follow.
    """
    parts = before["parts"] if before is not None and before["role"] == "assistant" else []
    tools = [part for part in parts if is_tool_part(part)]
    # A decided confirmation that was announced again keeps its approval.
    known = {
        part["toolCallId"]: "approval-responded"
        if part["state"] == "input-available" and "approval" in part
        else part["state"]
        for part in tools
    }
    again = frozenset(
        part["toolCallId"]
        for part in tools
        if known[part["toolCallId"]] == "approval-responded" and tool_name(part) in client_tools
    )
    grammar = Grammar(known, reannounced=again)
    try:
        for chunk in chunks:
            if isinstance(chunk, ToolOutputDeniedChunk) and not keeps_approvals:
                grammar.feed(ToolOutputErrorChunk(tool_call_id=chunk.tool_call_id, error_text=""))
            else:
                grammar.feed(chunk)
        grammar.close()
    except ChunkOrderError as error:
        raise RuleViolation("T1 to T9", str(error)) from error


def check_progress(chunks: Sequence[BaseChunk], before: UIMessage | None) -> None:
    """A response that continues a message changes a part, adds a step or fails (T1, T4).

    Raises:
        RuleViolation: It changes nothing, so that a client might send without end, or it continues
            another message.
    """
    if before is None or before["role"] == "user":
        return
    moves = (StartStepChunk, ErrorChunk, ToolInputAvailableChunk)
    if not any(isinstance(c, moves) or kind(c) in _RESULTS for c in chunks):
        raise RuleViolation("T4", "the response changes nothing")
    start = chunks[0]
    if not isinstance(start, StartChunk) or start.message_id != before["id"]:
        raise RuleViolation("T1", "the response does not continue the message")


def check_last_step(message: UIMessage, client_tools: Collection[str] = ()) -> None:
    """The last step of a finished message has no finished server-side call (T5).

    Raises:
        RuleViolation: It has one, so that a client might send without end.
    """
    for part in current_step(message["parts"]):
        is_finished = is_tool_part(part) and part["state"].startswith("output-")
        if is_finished and tool_name(part) not in client_tools:
            raise RuleViolation("T5", f"{tool_name(part)} is finished in the last step")


def check_held(chunks: Sequence[BaseChunk], *, is_preview: bool) -> None:
    """Nothing is released early (D1), and texts precede results (D3); for a release that holds.

    Raises:
        RuleViolation: A chunk comes before its time.
    """
    if not is_preview and any(isinstance(chunk, ResetStepChunk) for chunk in chunks):
        raise RuleViolation("D4", "the response retracts text")
    kinds = [kind(chunk) for chunk in remaining_chunks(chunks)]
    if waits(chunks):
        early = next((each for each in kinds if not _may_precede_release(each)), None)
        if early is not None:
            raise RuleViolation("D1", f"{early} comes before the last decision")
    elif "text-end" in kinds:
        last_text = len(kinds) - kinds[::-1].index("text-end")
        if any(each in _RESULTS for each in kinds[:last_text]):
            raise RuleViolation("D3", "a result precedes text")


def remaining_chunks(chunks: Sequence[BaseChunk]) -> list[BaseChunk]:
    """Return the chunks that remain after every ``reset-step``."""
    kept: list[BaseChunk] = []
    for chunk in chunks:
        if isinstance(chunk, ResetStepChunk):
            while not isinstance(kept[-1], StartStepChunk):
                kept.pop()
        else:
            kept.append(chunk)
    return kept


def check_intermediate_response(chunks: Sequence[BaseChunk]) -> None:
    """A response before the last decision requests approval and shows nothing else (S2).

    Raises:
        RuleViolation: It has a text, an output or a file, or does not request approval.
    """
    kinds = [kind(chunk) for chunk in chunks]
    for each in kinds:
        if each.startswith("text-"):
            raise RuleViolation("S2-R04", "an intermediate response contains text")
        if each.startswith("tool-output-"):
            raise RuleViolation("S2-R06", "an intermediate response contains a tool output")
        if each == "file" or each.startswith("source-"):
            raise RuleViolation("S2-R48", "an intermediate response contains a file or a source")
    if "tool-approval-request" not in kinds:
        raise RuleViolation("S2-R05", "an intermediate response requests approval")
    before = kinds[: kinds.index("tool-approval-request")]
    if "tool-input-available" not in before:
        raise RuleViolation("S2-R03", "a tool input precedes the approval request")
    _check_end(kinds)


def check_final_response(chunks: Sequence[BaseChunk]) -> None:
    """The last response has all text, then the outcomes, and no request (S2-R07, R20, R25).

    Raises:
        RuleViolation: It requests approval, has no outcome, or has text after one.
    """
    kinds = [kind(chunk) for chunk in chunks]
    if "tool-approval-request" in kinds:
        raise RuleViolation("S2-R20", "the last response requests another approval")
    first = next((index for index, each in enumerate(kinds) if each in _OUTCOMES), None)
    if first is None:
        raise RuleViolation("S2-R07", "the last response contains no tool output")
    if any(each.startswith("text-") for each in kinds[first:]):
        raise RuleViolation("S2-R07", "text precedes the tool outputs")
    _check_end(kinds)


def _check_end(kinds: Sequence[str]) -> None:
    if kinds.count("finish") != 1 or kinds[-1] != "finish":
        raise RuleViolation("S2-R25", "a response ends with `finish`, once")


def _may_precede_release(each: str) -> bool:
    return each in (*_BEFORE_RELEASE, *_STEPS) or each.startswith(_PREFIXES_BEFORE_RELEASE)
