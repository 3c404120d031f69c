import copy
import json
from pathlib import Path
from typing import Any

import pytest

from sluicegate.errors import ChunkOrderError
from sluicegate.wire.chunks import (
    AbortChunk,
    Chunk,
    DataChunk,
    ErrorChunk,
    FinishChunk,
    FinishStepChunk,
    MessageMetadataChunk,
    ReasoningDeltaChunk,
    ReasoningEndChunk,
    ReasoningStartChunk,
    ResetStepChunk,
    StartChunk,
    StartStepChunk,
    TextDeltaChunk,
    TextEndChunk,
    TextStartChunk,
    ToolApprovalRequestChunk,
    ToolApprovalResponseChunk,
    ToolInputAvailableChunk,
    ToolInputDeltaChunk,
    ToolInputStartChunk,
    ToolOutputAvailableChunk,
    ToolOutputDeniedChunk,
    ToolOutputErrorChunk,
    decode_chunk,
)
from sluicegate.wire.reducer import MessageReducer, reduce_chunks
from sluicegate.wire.ui_messages import Part, UIMessage
from tests.wire.chunk_samples import WIRE

CALL = ToolInputAvailableChunk(tool_call_id="c1", tool_name="pay", input={"amount": 1})
ASK = ToolApprovalRequestChunk(approval_id="a1", tool_call_id="c1")
CALL_PART: Part = {"type": "tool-pay", "toolCallId": "c1", "input": {"amount": 1}}
STEP: Part = {"type": "step-start"}

PARTS: list[tuple[str, list[Chunk], list[Part]]] = [
    ("nothing", [StartChunk(message_id="m"), FinishStepChunk(), AbortChunk()], []),
    (
        "text and reasoning may share an id",
        [
            TextStartChunk(id="1"),
            ReasoningStartChunk(id="1"),
            TextDeltaChunk(id="1", delta="a"),
            ReasoningDeltaChunk(id="1", delta="b"),
            ReasoningEndChunk(id="1"),
        ],
        [
            {"type": "text", "text": "a", "state": "streaming"},
            {"type": "reasoning", "id": "1", "text": "b", "state": "done"},
        ],
    ),
    (
        "an id is free again after its end",
        [TextStartChunk(id="1"), TextEndChunk(id="1"), TextStartChunk(id="1")],
        [
            {"type": "text", "text": "", "state": "done"},
            {"type": "text", "text": "", "state": "streaming"},
        ],
    ),
    (
        "an approval and its answer",
        [
            CALL,
            ToolApprovalRequestChunk(
                approval_id="a1", tool_call_id="c1", reason="why", approval_descriptor={"x": 1}
            ),
            ToolApprovalResponseChunk(approval_id="a1", approved=True, reason="ok"),
        ],
        [
            {
                **CALL_PART,
                "state": "approval-responded",
                "approval": {
                    "id": "a1",
                    "requestReason": "why",
                    "descriptor": {"x": 1},
                    "approved": True,
                    "reason": "ok",
                },
            }
        ],
    ),
    (
        "a denial",
        [CALL, ASK, ToolOutputDeniedChunk(tool_call_id="c1")],
        [{**CALL_PART, "state": "output-denied", "approval": {"id": "a1"}}],
    ),
    (
        "an output replaces a preliminary one",
        [
            CALL,
            ToolOutputAvailableChunk(tool_call_id="c1", output=1, preliminary=True),
            ToolOutputAvailableChunk(tool_call_id="c1", output=None),
        ],
        [{**CALL_PART, "state": "output-available", "output": None}],
    ),
    (
        "an error replaces an output",
        [
            CALL,
            ToolOutputAvailableChunk(tool_call_id="c1", output=1),
            ToolOutputErrorChunk(tool_call_id="c1", error_text="No."),
        ],
        [{**CALL_PART, "state": "output-error", "errorText": "No."}],
    ),
    (
        "an output for a call of an earlier step",
        [StartStepChunk(), CALL, StartStepChunk(), ToolOutputDeniedChunk(tool_call_id="c1")],
        [STEP, {**CALL_PART, "state": "output-denied"}, STEP],
    ),
    (
        "a call that is announced again after a step stands twice",
        [CALL, StartStepChunk(), CALL],
        [
            {**CALL_PART, "state": "input-available"},
            STEP,
            {**CALL_PART, "state": "input-available"},
        ],
    ),
    (
        "a call that is announced again before a step keeps its approval",
        [CALL, ASK, CALL],
        [{**CALL_PART, "state": "input-available", "approval": {"id": "a1"}}],
    ),
    (
        "the input of arguments that are still being written is not guessed",
        [
            ToolInputStartChunk(tool_call_id="c1", tool_name="pay"),
            ToolInputDeltaChunk(tool_call_id="c1", input_text_delta='{"am'),
        ],
        [{"type": "tool-pay", "toolCallId": "c1", "state": "input-streaming"}],
    ),
    (
        "an input that is text is there from its first delta",
        [
            ToolInputStartChunk(tool_call_id="c1", tool_name="pay", input_encoding="text"),
            ToolInputDeltaChunk(tool_call_id="c1", input_text_delta="a"),
            ToolInputDeltaChunk(tool_call_id="c1", input_text_delta="b"),
        ],
        [
            {
                "type": "tool-pay",
                "toolCallId": "c1",
                "state": "input-streaming",
                "inputEncoding": "text",
                "input": "ab",
            }
        ],
    ),
    (
        "a reset takes back the step and nothing else",
        [CALL, StartStepChunk(), TextStartChunk(id="1"), ResetStepChunk()],
        [{**CALL_PART, "state": "input-available"}, STEP],
    ),
    ("a reset without a step takes back everything", [CALL, ResetStepChunk()], []),
    (
        "data with an id is replaced, without one it is added, transient it is dropped",
        [
            DataChunk(type="data-a", id="1", data={"x": 1}),
            DataChunk(type="data-b", id="1", data=2),
            StartStepChunk(),
            DataChunk(type="data-a", id="1", data=None),
            DataChunk(type="data-a", data=3),
            DataChunk(type="data-a", data=3),
            DataChunk(type="data-a", id="1", data=4, transient=True),
        ],
        [
            {"type": "data-a", "id": "1", "data": None},
            {"type": "data-b", "id": "1", "data": 2},
            STEP,
            {"type": "data-a", "data": 3},
            {"type": "data-a", "data": 3},
        ],
    ),
    (
        "nothing is read after an error",
        [TextStartChunk(id="1"), ErrorChunk(error_text="No."), TextEndChunk(id="1"), CALL],
        [{"type": "text", "text": "", "state": "streaming"}],
    ),
]


@pytest.mark.parametrize(("chunks", "parts"), [r[1:] for r in PARTS], ids=[r[0] for r in PARTS])
def test_chunks_become_parts(chunks: list[Chunk], parts: list[Part]) -> None:
    assert reduce_chunks(chunks)["parts"] == parts


METADATA: list[tuple[list[Any], Any]] = [
    (
        [{"a": {"b": 1, "c": [1, 2]}}, {"a": {"c": [3], "d": None}}],
        {"a": {"b": 1, "c": [3], "d": None}},
    ),
    ([{"a": 1}, None], {"a": 1}),
    ([{"a": {"b": 1}}, {"a": 2}], {"a": 2}),
    ([{"a": 2}, {"a": {"b": 1}}], {"a": {"b": 1}}),
    ([{"a": 1}, {"__proto__": 1, "constructor": 1, "prototype": 1}], {"a": 1}),
]


@pytest.mark.parametrize(("updates", "merged"), METADATA)
def test_metadata_is_merged_deeply(updates: list[Any], merged: Any) -> None:
    first, *others = updates
    sent = copy.deepcopy(updates)
    for last in (FinishChunk, MessageMetadataChunk):
        message = reduce_chunks(
            [
                StartChunk(message_metadata=first),
                *(last(message_metadata=update) for update in others),
            ]
        )
        assert message.get("metadata") == merged
    assert updates == sent


def test_without_metadata_there_is_no_key_for_it() -> None:
    bare: UIMessage = {"id": "m", "role": "assistant", "parts": []}
    assert reduce_chunks([StartChunk(message_id="m"), FinishChunk()]) == bare


def test_a_response_renames_the_message_it_continues() -> None:
    message: UIMessage = {"id": "old", "role": "assistant", "parts": [{"type": "step-start"}]}
    renamed = reduce_chunks([StartChunk(message_id="new")], message)
    assert renamed == {**message, "id": "new"}


ORDER: list[tuple[str, list[Chunk]]] = [
    ("a text delta without a start", [TextDeltaChunk(id="1", delta="a")]),
    ("a text end without a start", [TextEndChunk(id="1")]),
    ("a text delta in a reasoning block", [ReasoningStartChunk(id="1"), TextEndChunk(id="1")]),
    ("a second end", [TextStartChunk(id="1"), TextEndChunk(id="1"), TextEndChunk(id="1")]),
    ("a delta after a reset", [TextStartChunk(id="1"), ResetStepChunk(), TextEndChunk(id="1")]),
    ("arguments without a start", [ToolInputDeltaChunk(tool_call_id="c1", input_text_delta="")]),
    (
        "arguments after a reset",
        [
            ToolInputStartChunk(tool_call_id="c1", tool_name="pay"),
            ResetStepChunk(),
            ToolInputDeltaChunk(tool_call_id="c1", input_text_delta=""),
        ],
    ),
    ("an output without a call", [ToolOutputAvailableChunk(tool_call_id="c1", output=1)]),
    ("an error without a call", [ToolOutputErrorChunk(tool_call_id="c1", error_text="")]),
    ("a denial without a call", [CALL, ToolOutputDeniedChunk(tool_call_id="c2")]),
    ("an approval without a call", [ASK]),
    (
        "an answer without an approval",
        [CALL, ToolApprovalResponseChunk(approval_id="a1", approved=True)],
    ),
]


@pytest.mark.parametrize("chunks", [row[1] for row in ORDER], ids=[row[0] for row in ORDER])
def test_a_chunk_at_which_the_client_ends_the_response_is_an_error(chunks: list[Chunk]) -> None:
    reducer = MessageReducer()
    for chunk in chunks[:-1]:
        reducer.feed(chunk)
    with pytest.raises(ChunkOrderError):
        reducer.feed(chunks[-1])


def test_a_call_with_streaming_arguments_can_continue_in_the_next_response() -> None:
    started = reduce_chunks(
        [
            StartStepChunk(),
            ToolInputStartChunk(
                tool_call_id="c1", tool_name="pay", dynamic=True, title="Pay", input_encoding="text"
            ),
        ]
    )
    continued = reduce_chunks(
        [ToolInputDeltaChunk(tool_call_id="c1", input_text_delta="a")], started
    )
    assert continued["parts"][1] == {**started["parts"][1], "input": "a"}


def test_the_finish_reason_and_the_error_are_kept() -> None:
    reducer = MessageReducer()
    reducer.feed(FinishChunk(finish_reason="tool-calls"))
    reducer.feed(FinishChunk())
    assert (reducer.finish_reason, reducer.error_text) == ("tool-calls", None)
    reducer.feed(ErrorChunk(error_text="No."))
    assert reducer.error_text == "No."


CLIENT_MESSAGES: list[dict[str, Any]] = json.loads(
    Path(__file__).with_name("client_messages.json").read_text(encoding="utf-8")
)
"""Random chunks, and the message that ``readUIMessageStream`` of ai 7.0.173 made of them."""


def without_guesses(message: UIMessage) -> UIMessage:
    """Leave out what the client keeps of arguments that are still being written."""
    message = copy.deepcopy(message)
    for part in message["parts"]:
        part.pop("rawInput", None)
        if part.get("state") == "input-streaming" and part.get("inputEncoding") != "text":
            part.pop("input", None)
    return message


@pytest.mark.parametrize("case", CLIENT_MESSAGES)
def test_the_message_is_the_one_that_the_client_builds(case: dict[str, Any]) -> None:
    chunks = [decode_chunk(json.dumps(chunk)) for chunk in case["chunks"]]
    built = reduce_chunks(chunks, case["continues"])
    assert built == without_guesses(case["message"])


def test_the_recorded_messages_cover_every_chunk() -> None:
    asked = {chunk["type"] for case in CLIENT_MESSAGES for chunk in case["chunks"]}
    known = {chunk.type for chunk, _ in WIRE if not isinstance(chunk, DataChunk)}
    assert known - asked == {"abort", "error"}


def test_the_continued_message_is_not_changed() -> None:
    for case in CLIENT_MESSAGES:
        before = copy.deepcopy(case["continues"])
        reduce_chunks(
            [decode_chunk(json.dumps(chunk)) for chunk in case["chunks"]], case["continues"]
        )
        assert case["continues"] == before
