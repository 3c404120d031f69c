"""The chunks of a response, its steps and its content; tools have their own module."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field

from sluicegate.wire.base_chunk import BaseChunk, ProviderMetadata

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
