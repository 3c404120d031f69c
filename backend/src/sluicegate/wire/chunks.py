"""The chunks of the AI SDK's UI message stream, one frozen model each.

Shapes are those of ``uiMessageChunkSchema`` of AI SDK 7; `for_major` says what of it a client of
AI SDK 6 may get. Fields are written in snake_case and stand in camelCase on the wire.

An optional field that is None is not on the wire (T6), so None may be passed. ``input``,
``output``, ``data`` and the metadata of `MessageMetadataChunk` are required, and their None is a
JSON null. Open values (typed Any) are neither checked nor copied when a chunk is made; `encode`
refuses what is not JSON.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias

from pydantic import Field, TypeAdapter

from sluicegate.wire.base_chunk import BaseChunk, ProviderMetadata
from sluicegate.wire.encoding import encode
from sluicegate.wire.message_chunks import (
    AbortChunk,
    CustomChunk,
    DataChunk,
    ErrorChunk,
    FileChunk,
    FinishChunk,
    FinishReason,
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
)
from sluicegate.wire.tool_chunks import (
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

__all__ = [
    "AbortChunk",
    "BaseChunk",
    "Chunk",
    "CustomChunk",
    "DataChunk",
    "ErrorChunk",
    "FileChunk",
    "FinishChunk",
    "FinishReason",
    "FinishStepChunk",
    "Major",
    "MessageMetadataChunk",
    "ProviderMetadata",
    "ReasoningDeltaChunk",
    "ReasoningEndChunk",
    "ReasoningFileChunk",
    "ReasoningStartChunk",
    "ResetStepChunk",
    "SourceDocumentChunk",
    "SourceUrlChunk",
    "StartChunk",
    "StartStepChunk",
    "SteeringMessageChunk",
    "TextDeltaChunk",
    "TextEndChunk",
    "TextStartChunk",
    "ToolApprovalRequestChunk",
    "ToolApprovalResponseChunk",
    "ToolInputAvailableChunk",
    "ToolInputDeltaChunk",
    "ToolInputErrorChunk",
    "ToolInputStartChunk",
    "ToolOutputAvailableChunk",
    "ToolOutputDeniedChunk",
    "ToolOutputErrorChunk",
    "decode",
    "encode",
    "for_major",
]

NamedChunk: TypeAlias = Annotated[
    StartChunk
    | StartStepChunk
    | FinishStepChunk
    | ResetStepChunk
    | FinishChunk
    | MessageMetadataChunk
    | AbortChunk
    | ErrorChunk
    | TextStartChunk
    | TextDeltaChunk
    | TextEndChunk
    | ReasoningStartChunk
    | ReasoningDeltaChunk
    | ReasoningEndChunk
    | CustomChunk
    | SourceUrlChunk
    | SourceDocumentChunk
    | FileChunk
    | ReasoningFileChunk
    | SteeringMessageChunk
    | ToolInputStartChunk
    | ToolInputDeltaChunk
    | ToolInputAvailableChunk
    | ToolInputErrorChunk
    | ToolApprovalRequestChunk
    | ToolApprovalResponseChunk
    | ToolOutputAvailableChunk
    | ToolOutputErrorChunk
    | ToolOutputDeniedChunk,
    Field(discriminator="type"),
]
Chunk: TypeAlias = NamedChunk | DataChunk
"""Every chunk; ``type`` tells which, and any ``data-NAME`` is a `DataChunk`."""

Major: TypeAlias = Literal[6, 7]
"""The major version of the AI SDK that a client announced."""

_ADAPTER: TypeAdapter[Chunk] = TypeAdapter(Chunk)

_DIFFERENT_FOR_6: Final = frozenset(
    {
        CustomChunk,
        FinishChunk,
        ReasoningFileChunk,
        ResetStepChunk,
        SteeringMessageChunk,
        TextEndChunk,
        ToolApprovalRequestChunk,
        ToolApprovalResponseChunk,
    }
)
"""Types of which AI SDK 6 takes another shape, or none."""


def decode(text: str | bytes) -> Chunk:
    """Read one chunk from its JSON text, as recordings and tests hold it.

    Raises:
        ValueError: the text is not the JSON of a chunk (pydantic's ValidationError is one).
    """
    return _ADAPTER.validate_json(text)


def for_major(chunk: BaseChunk, major: Major) -> BaseChunk | None:
    """Return the chunk as a client of this AI SDK major may get it, or None if it may not.

    What a 6 client gets is valid for both majors: an unknown type or finish reason would end its
    response, and it knows no automatic approvals, so neither half of one is sent.
    """
    if major == 7 or type(chunk) not in _DIFFERENT_FOR_6:
        return chunk
    match chunk:
        case (
            ResetStepChunk()
            | ToolApprovalResponseChunk()
            | CustomChunk()
            | ReasoningFileChunk()
            | SteeringMessageChunk()
            | ToolApprovalRequestChunk(is_automatic=True)
        ):
            return None
        case ToolApprovalRequestChunk():
            return ToolApprovalRequestChunk(
                approval_id=chunk.approval_id, tool_call_id=chunk.tool_call_id
            )
        case TextEndChunk(citations=list()):
            return TextEndChunk(id=chunk.id, provider_metadata=chunk.provider_metadata)
        case FinishChunk(finish_reason="interrupted"):
            return FinishChunk(finish_reason="other", message_metadata=chunk.message_metadata)
        case _:
            return chunk
