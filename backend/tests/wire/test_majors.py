import pytest

from sluicegate.wire.chunks import (
    Chunk,
    CustomChunk,
    FinishChunk,
    ReasoningFileChunk,
    ResetStepChunk,
    SteeringMessageChunk,
    TextEndChunk,
    ToolApprovalRequestChunk,
    ToolApprovalResponseChunk,
    chunk_for_major,
)
from sluicegate.wire.encoding import to_json
from tests.wire.chunk_samples import PM, PM_JSON, WIRE


@pytest.mark.parametrize(("chunk", "text"), WIRE)
def test_a_client_of_seven_gets_every_chunk_as_it_is(chunk: Chunk, text: str) -> None:
    assert chunk_for_major(chunk, 7) is chunk


UNKNOWN_TO_SIX = {
    ResetStepChunk,
    ToolApprovalResponseChunk,
    CustomChunk,
    ReasoningFileChunk,
    SteeringMessageChunk,
}
CHANGED_FOR_SIX = {TextEndChunk, ToolApprovalRequestChunk}


@pytest.mark.parametrize(("chunk", "text"), WIRE)
def test_a_client_of_six_gets_only_types_it_knows(chunk: Chunk, text: str) -> None:
    if type(chunk) in UNKNOWN_TO_SIX:
        assert chunk_for_major(chunk, 6) is None
    elif type(chunk) not in CHANGED_FOR_SIX:
        assert chunk_for_major(chunk, 6) is chunk


@pytest.mark.parametrize(
    ("chunk", "for_six"),
    [
        (
            ToolApprovalRequestChunk(
                approval_id="a",
                tool_call_id="c",
                reason="r",
                approval_descriptor={},
                is_automatic=False,
                signature="s",
                input_schema_input=None,
            ),
            '{"type":"tool-approval-request","approvalId":"a","toolCallId":"c"}',
        ),
        (
            TextEndChunk(id="t", citations=[], provider_metadata=PM),
            f'{{"type":"text-end","id":"t",{PM_JSON}}}',
        ),
        (
            FinishChunk(finish_reason="interrupted", message_metadata={"a": 1}),
            '{"type":"finish","finishReason":"other","messageMetadata":{"a":1}}',
        ),
    ],
)
def test_a_client_of_six_gets_only_fields_it_knows(chunk: Chunk, for_six: str) -> None:
    changed = chunk_for_major(chunk, 6)
    assert changed is not None
    assert to_json(changed) == for_six


def test_a_client_of_six_is_not_told_of_an_automatic_approval() -> None:
    request = ToolApprovalRequestChunk(approval_id="a", tool_call_id="c", is_automatic=True)
    assert chunk_for_major(request, 6) is None
