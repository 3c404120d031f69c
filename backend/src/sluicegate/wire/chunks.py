"""What all chunks share."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter
from pydantic.alias_generators import to_camel

ProviderMetadata: TypeAlias = dict[str, dict[str, Any]]
"""Metadata by provider name; the client refuses a flat record."""


class BaseChunk(BaseModel):
    """A chunk of any type. Fields cannot be set again and values are never coerced.

    An optional field that is None is not on the wire (T6), but for those in ``nullable``, whose
    null is a value: they are on the wire whenever they were passed.
    """

    model_config = ConfigDict(
        frozen=True,
        strict=True,
        extra="forbid",
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
    )

    nullable: ClassVar[frozenset[str]] = frozenset()


FinishReason: TypeAlias = Literal[
    "stop", "length", "content-filter", "tool-calls", "error", "other", "interrupted"
]
"""``interrupted`` is known to AI SDK 7 only; a server turn ends with one of the others (T3)."""


class StartChunk(BaseChunk):
    """Begins a response and names its message (T1); metadata is merged deeply."""

    type: Literal["start"] = "start"
    message_id: str | None = None
    message_metadata: Any = None


class StartStepChunk(BaseChunk):
    """Begins the chunks of one model call (T2)."""

    type: Literal["start-step"] = "start-step"


class FinishStepChunk(BaseChunk):
    """Ends the chunks of one model call (T2)."""

    type: Literal["finish-step"] = "finish-step"


class ResetStepChunk(BaseChunk):
    """Takes back every part of the current step. AI SDK 7 only."""

    type: Literal["reset-step"] = "reset-step"


class FinishChunk(BaseChunk):
    """Ends a response (T3)."""

    type: Literal["finish"] = "finish"
    finish_reason: FinishReason | None = None
    message_metadata: Any = None


class MessageMetadataChunk(BaseChunk):
    """Merges metadata into the message, deeply; arrays are replaced."""

    type: Literal["message-metadata"] = "message-metadata"
    message_metadata: Any


class AbortChunk(BaseChunk):
    """Says that the run was stopped. The client's chat ignores it."""

    type: Literal["abort"] = "abort"
    reason: str | None = None


class ErrorChunk(BaseChunk):
    """Ends the response with one public sentence (T10); nothing after it is read."""

    type: Literal["error"] = "error"
    error_text: str


class TextStartChunk(BaseChunk):
    """Opens a text block; the id is free again after its end."""

    type: Literal["text-start"] = "text-start"
    id: str
    provider_metadata: ProviderMetadata | None = None


class TextDeltaChunk(BaseChunk):
    """Appends to an open text block."""

    type: Literal["text-delta"] = "text-delta"
    id: str
    delta: str
    provider_metadata: ProviderMetadata | None = None


class TextEndChunk(BaseChunk):
    """Closes a text block; citations are known to AI SDK 7 only."""

    type: Literal["text-end"] = "text-end"
    id: str
    citations: list[dict[str, Any]] | None = None
    provider_metadata: ProviderMetadata | None = None


class ReasoningStartChunk(BaseChunk):
    """Opens a reasoning block; its ids are apart from those of text."""

    type: Literal["reasoning-start"] = "reasoning-start"
    id: str
    provider_metadata: ProviderMetadata | None = None


class ReasoningDeltaChunk(BaseChunk):
    """Appends to an open reasoning block."""

    type: Literal["reasoning-delta"] = "reasoning-delta"
    id: str
    delta: str
    provider_metadata: ProviderMetadata | None = None


class ReasoningEndChunk(BaseChunk):
    """Closes a reasoning block."""

    type: Literal["reasoning-end"] = "reasoning-end"
    id: str
    provider_metadata: ProviderMetadata | None = None


class CustomChunk(BaseChunk):
    """An artefact of one provider; ``kind`` is ``provider.kind``. AI SDK 7 only."""

    type: Literal["custom"] = "custom"
    kind: str
    provider_metadata: ProviderMetadata | None = None


class SourceUrlChunk(BaseChunk):
    """A page the answer rests on."""

    type: Literal["source-url"] = "source-url"
    source_id: str
    url: str
    title: str | None = None
    provider_metadata: ProviderMetadata | None = None


class SourceDocumentChunk(BaseChunk):
    """A document the answer rests on; the title is required."""

    type: Literal["source-document"] = "source-document"
    source_id: str
    media_type: str
    title: str
    filename: str | None = None
    provider_metadata: ProviderMetadata | None = None


class FileChunk(BaseChunk):
    """A file by its URL (``data:`` or http)."""

    type: Literal["file"] = "file"
    url: str
    media_type: str
    provider_metadata: ProviderMetadata | None = None


class ReasoningFileChunk(BaseChunk):
    """A file that belongs to the model's reasoning. AI SDK 7 only."""

    type: Literal["reasoning-file"] = "reasoning-file"
    url: str
    media_type: str
    provider_metadata: ProviderMetadata | None = None


class SteeringMessageChunk(BaseChunk):
    """A user's message put into the running answer; text and file parts. AI SDK 7 only."""

    type: Literal["steering-message"] = "steering-message"
    id: str
    parts: list[dict[str, Any]]


class DataChunk(BaseChunk):
    """Data of the application, ``data-NAME``.

    With an id it replaces the data of the same type and id; transient data is never stored.
    """

    type: Annotated[str, Field(pattern="^data-.")]
    id: str | None = None
    data: Any
    transient: bool | None = None


class ToolInputStartChunk(BaseChunk):
    """Announces a call whose arguments are still being written."""

    type: Literal["tool-input-start"] = "tool-input-start"
    tool_call_id: str
    tool_name: str
    input_encoding: Literal["json", "text"] | None = None
    provider_executed: bool | None = None
    dynamic: bool | None = None
    title: str | None = None
    tool_metadata: dict[str, Any] | None = None
    provider_metadata: ProviderMetadata | None = None


class ToolInputDeltaChunk(BaseChunk):
    """A piece of the arguments' text."""

    type: Literal["tool-input-delta"] = "tool-input-delta"
    tool_call_id: str
    input_text_delta: str


class ToolInputAvailableChunk(BaseChunk):
    """A call with its whole arguments (T7)."""

    type: Literal["tool-input-available"] = "tool-input-available"
    tool_call_id: str
    tool_name: str
    input: Any
    provider_executed: bool | None = None
    dynamic: bool | None = None
    title: str | None = None
    tool_metadata: dict[str, Any] | None = None
    provider_metadata: ProviderMetadata | None = None


class ToolInputErrorChunk(BaseChunk):
    """A call whose arguments cannot be used."""

    type: Literal["tool-input-error"] = "tool-input-error"
    tool_call_id: str
    tool_name: str
    input: Any
    error_text: str
    provider_executed: bool | None = None
    dynamic: bool | None = None
    title: str | None = None
    tool_metadata: dict[str, Any] | None = None
    provider_metadata: ProviderMetadata | None = None


class ToolApprovalRequestChunk(BaseChunk):
    """Asks a person about a call. Everything but the two ids is for AI SDK 7."""

    nullable: ClassVar[frozenset[str]] = frozenset({"input_schema_input"})

    type: Literal["tool-approval-request"] = "tool-approval-request"
    approval_id: str
    tool_call_id: str
    reason: str | None = None
    approval_descriptor: Any = None
    is_automatic: bool | None = None
    signature: str | None = None
    input_schema_input: Any = None


class ToolApprovalResponseChunk(BaseChunk):
    """Says how an approval was decided. AI SDK 7 only: it ends the response of a 6 client."""

    type: Literal["tool-approval-response"] = "tool-approval-response"
    approval_id: str
    approved: bool
    reason: str | None = None
    provider_executed: bool | None = None
    provider_metadata: ProviderMetadata | None = None


class ToolOutputAvailableChunk(BaseChunk):
    """A call's result; a preliminary one is replaced by the next (T8)."""

    type: Literal["tool-output-available"] = "tool-output-available"
    tool_call_id: str
    output: Any
    preliminary: bool | None = None
    provider_executed: bool | None = None
    dynamic: bool | None = None
    tool_metadata: dict[str, Any] | None = None
    provider_metadata: ProviderMetadata | None = None


class ToolOutputErrorChunk(BaseChunk):
    """A call that failed, with one public sentence (T8)."""

    type: Literal["tool-output-error"] = "tool-output-error"
    tool_call_id: str
    error_text: str
    provider_executed: bool | None = None
    dynamic: bool | None = None
    tool_metadata: dict[str, Any] | None = None
    provider_metadata: ProviderMetadata | None = None


class ToolOutputDeniedChunk(BaseChunk):
    """A call that a person denied (T8)."""

    type: Literal["tool-output-denied"] = "tool-output-denied"
    tool_call_id: str


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


def decode_chunk(text: str | bytes) -> Chunk:
    """Read one chunk from its JSON text, as recordings and tests hold it.

    Raises:
        ValueError: the text is not the JSON of a chunk (pydantic's ValidationError is one).
    """
    return _ADAPTER.validate_json(text)


def chunk_for_major(chunk: BaseChunk, major: Major) -> BaseChunk | None:
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
