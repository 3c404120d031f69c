"""The chunks that tell how a tool call goes, from its first argument to its end."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from sluicegate.wire.base_chunk import BaseChunk, ProviderMetadata


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
