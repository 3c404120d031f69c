from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from sluicegate.wire import chunks
from sluicegate.wire.chunks import (
    BaseChunk,
    Chunk,
    CustomChunk,
    DataChunk,
    FinishChunk,
    ReasoningFileChunk,
    ResetStepChunk,
    SteeringMessageChunk,
    TextDeltaChunk,
    TextEndChunk,
    ToolApprovalRequestChunk,
    ToolApprovalResponseChunk,
    chunk_for_major,
    decode_chunk,
)
from sluicegate.wire.encoding import to_json
from tests.wire.chunk_samples import PM, PM_JSON, WIRE, every_class


@pytest.mark.parametrize(("chunk", "text"), WIRE)
def test_a_chunk_is_encoded_as_the_client_reads_it(chunk: Chunk, text: str) -> None:
    assert to_json(chunk) == text


@pytest.mark.parametrize(("chunk", "text"), WIRE)
def test_an_encoded_chunk_is_decoded_unchanged(chunk: Chunk, text: str) -> None:
    read = decode_chunk(text)
    assert read == chunk
    assert to_json(read) == text
    assert decode_chunk(text.encode()) == chunk


def test_the_samples_cover_every_chunk() -> None:
    assert {type(chunk) for chunk, _ in WIRE} == every_class()
    assert len(every_class()) == 30


def test_every_chunk_can_be_imported_from_one_module() -> None:
    assert {cls.__name__ for cls in every_class()} <= set(vars(chunks))


@pytest.mark.parametrize("cls", sorted(every_class(), key=str))
def test_a_class_is_named_after_its_type(cls: type[BaseChunk]) -> None:
    if cls is not DataChunk:
        words = str(cls.model_fields["type"].default).split("-")
        assert cls.__name__ == "".join(map(str.capitalize, words)) + "Chunk"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "null",
        "{}",
        '{"type":"text-delta","id":"t"}',
        '{"type":"text-delta","id":"t","delta":null}',
        '{"type":"text-delta","id":"t","delta":"a","extra":1}',
        '{"type":"tool-approval-response","approvalId":"a","approved":"yes"}',
        '{"type":"tool-approval-response","approvalId":"a","approved":1}',
        '{"type":"finish","finishReason":"STOP"}',
        '{"type":"text-start","id":"t","providerMetadata":{"google":1}}',
        '{"type":"tool-output-available","toolCallId":"c"}',
        '{"type":"data-","data":1}',
        '{"type":"data-x"}',
        '{"type":"unheard-of"}',
        '{"id":"t"}',
    ],
)
def test_text_that_is_not_a_chunk_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"validation error|JSON"):
        decode_chunk(text)


@pytest.mark.parametrize(
    ("cls", "fields"),
    [
        (ToolApprovalResponseChunk, {"approval_id": "a", "approved": "yes"}),
        (ToolApprovalResponseChunk, {"approval_id": "a", "approved": 1}),
        (TextDeltaChunk, {"id": 1, "delta": "a"}),
        (TextDeltaChunk, {"id": "t", "delta": "a", "dleta": "b"}),
        (DataChunk, {"type": "text-delta", "data": 1}),
        (FinishChunk, {"finish_reason": "tool_calls"}),
    ],
)
def test_a_wrong_value_is_refused_and_never_coerced(
    cls: type[BaseChunk], fields: dict[str, Any]
) -> None:
    with pytest.raises(ValidationError):
        cls(**fields)


def test_a_chunk_cannot_be_changed() -> None:
    chunk = TextDeltaChunk(id="t", delta="a")
    with pytest.raises(ValidationError):
        setattr(chunk, "delta", "b")  # noqa: B010 (mypy sees the plain assignment)


def test_the_union_is_a_type_for_other_models() -> None:
    adapter: TypeAdapter[list[Chunk]] = TypeAdapter(list[Chunk])
    read = adapter.validate_json("[" + ",".join(text for _, text in WIRE) + "]")
    assert read == [chunk for chunk, _ in WIRE]


@pytest.mark.parametrize(("chunk", "text"), WIRE)
def test_ai_sdk_7_receives_every_chunk_unchanged(chunk: Chunk, text: str) -> None:
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
def test_ai_sdk_6_receives_only_its_own_types(chunk: Chunk, text: str) -> None:
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
def test_ai_sdk_6_receives_only_its_own_fields(chunk: Chunk, for_six: str) -> None:
    changed = chunk_for_major(chunk, 6)
    assert changed is not None
    assert to_json(changed) == for_six


def test_ai_sdk_6_receives_no_automatic_approval() -> None:
    request = ToolApprovalRequestChunk(approval_id="a", tool_call_id="c", is_automatic=True)
    assert chunk_for_major(request, 6) is None
