"""A chunk of every class with its encoded text."""

from typing import Any, get_args

from sluicegate.wire.chunks import (
    AbortChunk,
    BaseChunk,
    Chunk,
    CustomChunk,
    DataChunk,
    ErrorChunk,
    FileChunk,
    FinishChunk,
    FinishStepChunk,
    MessageMetadataChunk,
    ReasoningDeltaChunk,
    ReasoningEndChunk,
    ReasoningFileChunk,
    ReasoningStartChunk,
    ResetStepChunk,
    SourceDocumentChunk,
    SourceUrlChunk,
    StartChunk,
    StartStepChunk,
    SteeringMessageChunk,
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

PM: dict[str, dict[str, Any]] = {"google": {"signature": "x"}}
PM_JSON = '"providerMetadata":{"google":{"signature":"x"}}'

WIRE: list[tuple[Chunk, str]] = [
    (StartChunk(), '{"type":"start"}'),
    (
        StartChunk(message_id="m1", message_metadata={"model": "g"}),
        '{"type":"start","messageId":"m1","messageMetadata":{"model":"g"}}',
    ),
    (StartStepChunk(), '{"type":"start-step"}'),
    (FinishStepChunk(), '{"type":"finish-step"}'),
    (ResetStepChunk(), '{"type":"reset-step"}'),
    (
        FinishChunk(finish_reason="tool-calls", message_metadata={"usage": {"totalTokens": 3}}),
        '{"type":"finish","finishReason":"tool-calls","messageMetadata":{"usage":{"totalTokens":3}}}',
    ),
    (
        MessageMetadataChunk(message_metadata={"a": 1}),
        '{"type":"message-metadata","messageMetadata":{"a":1}}',
    ),
    (AbortChunk(reason="stopped"), '{"type":"abort","reason":"stopped"}'),
    (ErrorChunk(error_text="No."), '{"type":"error","errorText":"No."}'),
    (TextStartChunk(id="t1"), '{"type":"text-start","id":"t1"}'),
    (TextDeltaChunk(id="t1", delta='a"\n'), '{"type":"text-delta","id":"t1","delta":"a\\"\\n"}'),
    (
        TextEndChunk(id="t1", citations=[{"startIndex": 0}], provider_metadata=PM),
        f'{{"type":"text-end","id":"t1","citations":[{{"startIndex":0}}],{PM_JSON}}}',
    ),
    (
        ReasoningStartChunk(id="r1", provider_metadata=PM),
        f'{{"type":"reasoning-start","id":"r1",{PM_JSON}}}',
    ),
    (
        ReasoningDeltaChunk(id="r1", delta="é"),
        '{"type":"reasoning-delta","id":"r1","delta":"é"}',
    ),
    (ReasoningEndChunk(id="r1"), '{"type":"reasoning-end","id":"r1"}'),
    (CustomChunk(kind="google.map"), '{"type":"custom","kind":"google.map"}'),
    (
        SourceUrlChunk(source_id="s1", url="https://a", title="A"),
        '{"type":"source-url","sourceId":"s1","url":"https://a","title":"A"}',
    ),
    (
        SourceDocumentChunk(source_id="s1", media_type="a/b", title="A", filename="f"),
        '{"type":"source-document","sourceId":"s1","mediaType":"a/b","title":"A","filename":"f"}',
    ),
    (
        FileChunk(url="data:,", media_type="a/b"),
        '{"type":"file","url":"data:,","mediaType":"a/b"}',
    ),
    (
        ReasoningFileChunk(url="data:,", media_type="a/b"),
        '{"type":"reasoning-file","url":"data:,","mediaType":"a/b"}',
    ),
    (
        SteeringMessageChunk(id="u1", parts=[{"type": "text", "text": "wait"}]),
        '{"type":"steering-message","id":"u1","parts":[{"type":"text","text":"wait"}]}',
    ),
    (
        DataChunk(type="data-agent", data={"name": "a"}, transient=True),
        '{"type":"data-agent","data":{"name":"a"},"transient":true}',
    ),
    (
        DataChunk(type="data-progress", id="p", data=None, transient=False),
        '{"type":"data-progress","id":"p","data":null,"transient":false}',
    ),
    (
        ToolInputStartChunk(
            tool_call_id="c1", tool_name="pay", input_encoding="json", provider_executed=True
        ),
        '{"type":"tool-input-start","toolCallId":"c1","toolName":"pay","inputEncoding":"json",'
        '"providerExecuted":true}',
    ),
    (
        ToolInputDeltaChunk(tool_call_id="c1", input_text_delta="{"),
        '{"type":"tool-input-delta","toolCallId":"c1","inputTextDelta":"{"}',
    ),
    (
        ToolInputAvailableChunk(
            tool_call_id="c1",
            tool_name="pay",
            input={"amount": 1},
            dynamic=True,
            title="Pay",
            tool_metadata={"icon": None},
        ),
        '{"type":"tool-input-available","toolCallId":"c1","toolName":"pay","input":{"amount":1},'
        '"dynamic":true,"title":"Pay","toolMetadata":{"icon":null}}',
    ),
    (
        ToolInputErrorChunk(tool_call_id="c1", tool_name="pay", input=None, error_text="No."),
        '{"type":"tool-input-error","toolCallId":"c1","toolName":"pay","input":null,'
        '"errorText":"No."}',
    ),
    (
        ToolApprovalRequestChunk(
            approval_id="a1",
            tool_call_id="c1",
            reason="over the limit",
            approval_descriptor={"toolName": "pay"},
            is_automatic=False,
            signature="s",
            input_schema_input=None,
        ),
        '{"type":"tool-approval-request","approvalId":"a1","toolCallId":"c1",'
        '"reason":"over the limit","approvalDescriptor":{"toolName":"pay"},"isAutomatic":false,'
        '"signature":"s","inputSchemaInput":null}',
    ),
    (
        ToolApprovalResponseChunk(approval_id="a1", approved=False, reason="no"),
        '{"type":"tool-approval-response","approvalId":"a1","approved":false,"reason":"no"}',
    ),
    (
        ToolOutputAvailableChunk(tool_call_id="c1", output=None, preliminary=True),
        '{"type":"tool-output-available","toolCallId":"c1","output":null,"preliminary":true}',
    ),
    (
        ToolOutputErrorChunk(tool_call_id="c1", error_text="No."),
        '{"type":"tool-output-error","toolCallId":"c1","errorText":"No."}',
    ),
    (ToolOutputDeniedChunk(tool_call_id="c1"), '{"type":"tool-output-denied","toolCallId":"c1"}'),
]


def every_class() -> set[type[BaseChunk]]:
    """Return the class of every chunk that there is."""
    named, data = get_args(Chunk)
    return {*get_args(get_args(named)[0]), data}
