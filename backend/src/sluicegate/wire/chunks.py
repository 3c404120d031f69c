"""The chunks of the AI SDK's UI message stream: one frozen model each, and their union.

"AI SDK 7 only" marks what a client of AI SDK 6 does not accept; `chunk_for_major` adapts or drops
it.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter
from pydantic.alias_generators import to_camel

ProviderMetadata: TypeAlias = dict[str, dict[str, Any]]
"""Metadata by provider name; the client refuses a record that is not nested."""


class BaseChunk(BaseModel):
    """The base of all chunks: immutable, and values are never coerced.

    An optional field that is None is not encoded (T6). Null is a value for the fields in
    ``nullable``: they are encoded whenever they were passed.
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
"""``interrupted`` is AI SDK 7 only; the server ends a turn with one of the others (T3)."""


class StartChunk(BaseChunk):
    """Starts a response and names its message (T1); metadata is merged deeply."""

    type: Literal["start"] = "start"
    message_id: str | None = None
    message_metadata: Any = None


class StartStepChunk(BaseChunk):
    """Starts the chunks of one model call (T2)."""

    type: Literal["start-step"] = "start-step"


class FinishStepChunk(BaseChunk):
    """Ends the chunks of one model call (T2)."""

    type: Literal["finish-step"] = "finish-step"


class ResetStepChunk(BaseChunk):
    """Removes every part of the current step. AI SDK 7 only."""

    type: Literal["reset-step"] = "reset-step"


class FinishChunk(BaseChunk):
    """Ends a response (T3)."""

    type: Literal["finish"] = "finish"
    finish_reason: FinishReason | None = None
    message_metadata: Any = None


class MessageMetadataChunk(BaseChunk):
    """Merges metadata deeply into the message; arrays are replaced."""

    type: Literal["message-metadata"] = "message-metadata"
    message_metadata: Any


class AbortChunk(BaseChunk):
    """Reports that the run was stopped; the client's chat ignores it."""

    type: Literal["abort"] = "abort"
    reason: str | None = None


class ErrorChunk(BaseChunk):
    """Ends the response with one public sentence (T10); the client reads nothing after it."""

    type: Literal["error"] = "error"
    error_text: str


class TextStartChunk(BaseChunk):
    """Opens a text block; its id can be used again after its end."""

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
    """Closes a text block; citations are AI SDK 7 only."""

    type: Literal["text-end"] = "text-end"
    id: str
    citations: list[dict[str, Any]] | None = None
    provider_metadata: ProviderMetadata | None = None


class ReasoningStartChunk(BaseChunk):
    """Opens a reasoning block; text blocks may use the same ids."""

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
    """Content that one provider defines; ``kind`` is ``provider.kind``. AI SDK 7 only."""

    type: Literal["custom"] = "custom"
    kind: str
    provider_metadata: ProviderMetadata | None = None


class SourceUrlChunk(BaseChunk):
    """A web page that is a source of the answer."""

    type: Literal["source-url"] = "source-url"
    source_id: str
    url: str
    title: str | None = None
    provider_metadata: ProviderMetadata | None = None


class SourceDocumentChunk(BaseChunk):
    """A document that is a source of the answer; the title is required."""

    type: Literal["source-document"] = "source-document"
    source_id: str
    media_type: str
    title: str
    filename: str | None = None
    provider_metadata: ProviderMetadata | None = None


class FileChunk(BaseChunk):
    """A file by its URL (``data:`` or HTTP)."""

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
    """A user's message inside the running answer: text and file parts. AI SDK 7 only."""

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
    """Announces a call whose arguments are being streamed."""

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
    """Appends to the text of the arguments."""

    type: Literal["tool-input-delta"] = "tool-input-delta"
    tool_call_id: str
    input_text_delta: str


class ToolInputAvailableChunk(BaseChunk):
    """A call with its complete arguments (T7)."""

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
    """A call whose arguments are not valid."""

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
    """Requests the approval of a call. All fields but the two ids are AI SDK 7 only."""

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
    """Reports a decision. AI SDK 7 only: a client of AI SDK 6 ends the response at it."""

    type: Literal["tool-approval-response"] = "tool-approval-response"
    approval_id: str
    approved: bool
    reason: str | None = None
    provider_executed: bool | None = None
    provider_metadata: ProviderMetadata | None = None


class ToolOutputAvailableChunk(BaseChunk):
    """The output of a call; a preliminary one is replaced by the next (T8)."""

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
    """A call that was denied (T8)."""

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
"""Every chunk, distinguished by ``type``; any ``data-NAME`` is a `DataChunk`."""

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
"""Types that a client of AI SDK 6 accepts in another form only, or not at all."""


def decode_chunk(text: str | bytes) -> Chunk:
    """Parse the JSON text of one chunk.

    Raises:
        ValueError: The text is not the JSON of a chunk (pydantic's ValidationError is one).
    """
    return _ADAPTER.validate_json(text)


def chunk_for_major(chunk: BaseChunk, major: Major) -> BaseChunk | None:
    """Return the chunk in the form for clients of this AI SDK major; None if there is none.

    A client of AI SDK 6 ends the response at an unknown type or finish reason. It has no automatic
    approvals, so neither their request nor their response is sent to it.
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
