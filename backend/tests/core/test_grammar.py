from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sluicegate.core.grammar import Grammar
from sluicegate.errors import ChunkOrderError
from sluicegate.wire.chunks import (
    AbortChunk,
    BaseChunk,
    DataChunk,
    ErrorChunk,
    FileChunk,
    FinishChunk,
    FinishReason,
    FinishStepChunk,
    MessageMetadataChunk,
    ReasoningDeltaChunk,
    ReasoningEndChunk,
    ReasoningStartChunk,
    ResetStepChunk,
    SourceUrlChunk,
    StartChunk,
    StartStepChunk,
    TextDeltaChunk,
    TextEndChunk,
    TextStartChunk,
    ToolApprovalRequestChunk,
    ToolApprovalResponseChunk,
    ToolInputAvailableChunk,
    ToolInputDeltaChunk,
    ToolInputErrorChunk,
    ToolInputStartChunk,
    ToolOutputAvailableChunk,
    ToolOutputDeniedChunk,
    ToolOutputErrorChunk,
)
from sluicegate.wire.chunks import BaseChunk as AnyChunk

if TYPE_CHECKING:
    from collections.abc import Sequence

START = StartChunk(message_id="m")
STEP, END = StartStepChunk(), FinishStepChunk()
RESET = ResetStepChunk()
TEXT, WORD, DOT = TextStartChunk(id="t"), TextDeltaChunk(id="t", delta="a"), TextEndChunk(id="t")
THINK = ReasoningStartChunk(id="t")
THOUGHT, THOUGHT_OUT = ReasoningDeltaChunk(id="t", delta="a"), ReasoningEndChunk(id="t")
BEGIN = ToolInputStartChunk(tool_call_id="c", tool_name="pay")
ARGS = ToolInputDeltaChunk(tool_call_id="c", input_text_delta="{")
CALL = ToolInputAvailableChunk(tool_call_id="c", tool_name="pay", input={})
DYNAMIC = ToolInputAvailableChunk(tool_call_id="c", tool_name="pay", input={}, dynamic=True)
BAD = ToolInputErrorChunk(tool_call_id="c", tool_name="pay", input={}, error_text="no")
ASK = ToolApprovalRequestChunk(approval_id="a", tool_call_id="c")
ANSWER = ToolApprovalResponseChunk(approval_id="a", approved=True)
OUT = ToolOutputAvailableChunk(tool_call_id="c", output=1)
SO_FAR = ToolOutputAvailableChunk(tool_call_id="c", output=0, preliminary=True)
FAIL = ToolOutputErrorChunk(tool_call_id="c", error_text="no")
DENY = ToolOutputDeniedChunk(tool_call_id="c")
ERROR = ErrorChunk(error_text="no")
DATA = DataChunk(type="data-x", data=1, transient=True)
FILE = FileChunk(url="https://example.org/a", media_type="image/png")
SOURCE = SourceUrlChunk(source_id="s", url="https://example.org")


def finish(reason: FinishReason | None = "stop") -> AnyChunk:
    return FinishChunk(finish_reason=reason, message_metadata={})


def judge(
    chunks: Sequence[BaseChunk],
    known: dict[str, str] | None = None,
    reannounced: frozenset[str] = frozenset(),
) -> None:
    grammar = Grammar(known, reannounced=reannounced)
    for chunk in chunks:
        grammar.feed(chunk)
    grammar.close()


STOP, WAIT = finish(), finish("tool-calls")


@pytest.mark.parametrize(
    "chunks",
    [
        [START, STOP],
        [START, ERROR],
        [START, STEP, TEXT, WORD, ERROR],
        [START, DATA, STEP, DATA, TEXT, DATA, WORD, DOT, END, DATA, STOP],
        [START, STEP, TEXT, THINK, WORD, THOUGHT, THOUGHT_OUT, DOT, TEXT, DOT, END, STOP],
        [START, AbortChunk(), MessageMetadataChunk(message_metadata={}), STOP],
        [START, FILE, STEP, SOURCE, END, FILE, STOP],
        [START, STEP, BEGIN, ARGS, ARGS, CALL, ASK, END, WAIT],
        [START, STEP, CALL, OUT, END, WAIT],
        [START, STEP, CALL, OUT, END, STEP, END, STOP],
        [START, STEP, CALL, END, OUT, STEP, TEXT, WORD, DOT, END, STOP],
        [START, STEP, CALL, END, STEP, TEXT, OUT, WORD, DOT, END, STOP],
        [START, STEP, CALL, SO_FAR, SO_FAR, OUT, END, STEP, END, STOP],
        [START, STEP, CALL, SO_FAR, END, STOP],
        [START, STEP, BEGIN, BAD, END, STEP, END, STOP],
        [START, STEP, CALL, ASK, ANSWER, OUT, END, STEP, END, finish("length")],
        [START, STEP, CALL, ASK, DENY, END, STEP, END, finish("other")],
        [START, STEP, CALL, ASK, ANSWER, FAIL, END, STEP, END, finish("content-filter")],
        [START, STEP, TEXT, WORD, RESET, THINK, THOUGHT, THOUGHT_OUT, CALL, ASK, END, WAIT],
        [START, STEP, CALL, ASK, RESET, CALL, ASK, END, WAIT],
    ],
)
def test_a_response_that_a_client_can_read_is_accepted(chunks: list[BaseChunk]) -> None:
    judge(chunks)


@pytest.mark.parametrize(
    ("chunks", "why"),
    [
        ([], "without finish"),
        ([START], "without finish"),
        ([STOP], "before start"),
        ([ERROR], "before start"),
        ([DATA], "before start"),
        ([START, START], "twice"),
        ([START, STOP, STOP], "after the end"),
        ([START, STOP, DATA], "after the end"),
        ([START, STOP, START], "twice"),
        ([START, ERROR, STOP], "after the end"),
        ([START, STEP, TEXT, ERROR, WORD], "no open block"),
        ([START, STEP, THINK, ERROR, THOUGHT], "no open block"),
        ([START, STEP, BEGIN, ERROR, ARGS], "after the end"),
        ([START, STEP, STEP], "inside a step"),
        ([START, END], "outside a step"),
        ([START, RESET], "outside a step"),
        ([START, STEP, STOP], "step open"),
        ([START, TEXT], "outside a step"),
        ([START, THINK], "outside a step"),
        ([START, BEGIN], "outside a step"),
        ([START, CALL], "outside a step"),
        ([START, BAD], "outside a step"),
        ([START, STEP, TEXT, TEXT], "is open"),
        ([START, STEP, THINK, THINK], "is open"),
        ([START, STEP, WORD], "no open block"),
        ([START, STEP, DOT], "no open block"),
        ([START, STEP, THINK, WORD], "no open block"),
        ([START, STEP, TEXT, THOUGHT], "no open block"),
        ([START, STEP, TEXT, THOUGHT_OUT], "no open block"),
        ([START, STEP, TEXT, DOT, WORD], "no open block"),
        ([START, STEP, TEXT, END], "block open"),
        ([START, STEP, THINK, END], "block open"),
        ([START, STEP, TEXT, RESET, WORD], "no open block"),
        ([START, STEP, BEGIN, BEGIN], "again"),
        ([START, STEP, CALL, CALL], "again"),
        ([START, STEP, CALL, END, STEP, CALL], "again"),
        ([START, STEP, CALL, END, STEP, BEGIN], "again"),
        ([START, STEP, BEGIN, END, STEP, CALL], "another step"),
        ([START, STEP, BEGIN, DYNAMIC], "dynamic"),
        ([START, STEP, ARGS], "no call"),
        ([START, STEP, CALL, ARGS], "no call"),
        ([START, STEP, BEGIN, END, WAIT], "input of a call open"),
        ([START, OUT], "not in the message"),
        ([START, FAIL], "not in the message"),
        ([START, DENY], "not in the message"),
        ([START, ASK], "state None"),
        ([START, STEP, BEGIN, ASK], "input-streaming"),
        ([START, STEP, BEGIN, OUT], "not complete"),
        ([START, STEP, CALL, OUT, OUT], "again"),
        ([START, STEP, CALL, OUT, FAIL], "again"),
        ([START, STEP, CALL, OUT, SO_FAR], "again"),
        ([START, STEP, CALL, OUT, ASK], "output-available"),
        ([START, STEP, CALL, ASK, ASK], "approval-requested"),
        ([START, STEP, CALL, ASK, ANSWER, ASK], "approval id again"),
        ([START, STEP, CALL, ANSWER], "no open approval"),
        ([START, STEP, CALL, ASK, ANSWER, ANSWER], "no open approval"),
        ([START, STEP, CALL, ASK, RESET, ANSWER], "no open approval"),
        ([START, STEP, CALL, RESET, OUT], "not in the message"),
        ([START, STEP, CALL, DENY], "without an approval request"),
        ([START, STEP, CALL, ASK, RESET, CALL, DENY], "without an approval request"),
        ([START, STEP, CALL, OUT, END, STOP], "finished tool"),
        ([START, STEP, CALL, OUT, END, finish("other")], "finished tool"),
        ([START, STEP, CALL, END, FAIL, STOP], "finished tool"),
        ([START, STEP, CALL, ASK, DENY, END, STOP], "finished tool"),
        ([START, STEP, BAD, END, STOP], "finished tool"),
        ([START, finish(None)], "reason None"),
        ([START, finish("interrupted")], "reason interrupted"),
        ([START, FinishChunk(finish_reason="stop")], "no metadata"),
        ([START, AnyChunk()], "not a chunk"),
    ],
)
def test_a_response_that_a_client_cannot_read_is_refused(chunks: list[BaseChunk], why: str) -> None:
    with pytest.raises(ChunkOrderError, match=why):
        judge(chunks)


def test_calls_of_earlier_turns_can_end_but_not_be_announced() -> None:
    known = {"c": "approval-responded"}
    judge([START, OUT, STEP, END, STOP], known)
    judge([START, DENY, STEP, END, STOP], known)
    judge([START, ASK, WAIT], {"c": "input-available"})
    with pytest.raises(ChunkOrderError, match="again"):
        judge([START, STEP, CALL], known)
    with pytest.raises(ChunkOrderError, match="again"):
        judge([START, OUT], {"c": "output-error"})
    with pytest.raises(ChunkOrderError, match="without an approval request"):
        judge([START, DENY], {"c": "input-available"})
    with pytest.raises(ChunkOrderError, match="finished tool"):
        judge([START, OUT, STOP], known)


def test_an_approved_client_side_call_is_announced_again_once_and_before_any_step() -> None:
    known, again = {"c": "approval-responded", "d": "input-available"}, frozenset({"c"})
    judge([START, CALL, WAIT], known, again)
    for chunks in ([START, CALL, CALL], [START, STEP, CALL], [START, STEP, END, CALL]):
        with pytest.raises(ChunkOrderError):
            judge([*chunks, WAIT], known, again)
    with pytest.raises(ChunkOrderError, match="outside a step"):
        judge([START, CALL, WAIT], known)


def test_a_refusal_names_the_chunk_and_the_call_but_no_content() -> None:
    secret = ToolOutputAvailableChunk(tool_call_id="c", output="secret")
    with pytest.raises(ChunkOrderError) as refused:
        judge([START, secret])
    assert str(refused.value) == "tool-output-available names a call that is not in the message: c"


def confirmed(*, provider_executed: bool = True) -> AnyChunk:
    return ToolInputAvailableChunk(
        tool_call_id="c",
        tool_name="adk_request_confirmation",
        input={},
        provider_executed=True if provider_executed else None,
    )


def test_a_decided_confirmation_is_announced_again_before_the_next_step() -> None:
    card = confirmed(provider_executed=False)
    judge([START, STEP, card, ASK, END, ANSWER, confirmed(), STEP, END, DENY, WAIT])
    judge([START, confirmed(), STEP, END, DENY, STOP], {"c": "approval-responded"})
    for chunks in (
        [START, STEP, card, ASK, END, confirmed()],
        [START, STEP, card, ASK, END, ANSWER, card],
        [START, STEP, card, ASK, END, ANSWER, STEP, END, confirmed()],
    ):
        with pytest.raises(ChunkOrderError, match="outside a step"):
            judge([*chunks, WAIT])
