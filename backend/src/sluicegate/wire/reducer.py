"""Builds UI messages from chunks in the same way as the client of AI SDK 7."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from sluicegate.errors import ChunkOrderError
from sluicegate.wire.chunks import (
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
from sluicegate.wire.ui_messages import current_step, is_tool_part, tool_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sluicegate.wire.chunks import BaseChunk, FinishReason
    from sluicegate.wire.ui_messages import Part, UIMessage

_Block: TypeAlias = (
    TextStartChunk
    | TextDeltaChunk
    | TextEndChunk
    | ReasoningStartChunk
    | ReasoningDeltaChunk
    | ReasoningEndChunk
)
_Content: TypeAlias = (
    SourceUrlChunk
    | SourceDocumentChunk
    | FileChunk
    | ReasoningFileChunk
    | CustomChunk
    | SteeringMessageChunk
)

ToolChunk: TypeAlias = (
    ToolInputStartChunk
    | ToolInputDeltaChunk
    | ToolInputAvailableChunk
    | ToolInputErrorChunk
    | ToolApprovalRequestChunk
    | ToolApprovalResponseChunk
    | ToolOutputAvailableChunk
    | ToolOutputErrorChunk
    | ToolOutputDeniedChunk
)
_Input: TypeAlias = ToolInputStartChunk | ToolInputAvailableChunk | ToolInputErrorChunk
_Output: TypeAlias = ToolOutputAvailableChunk | ToolOutputErrorChunk

_CALL_VALUES: Final = ("input", "inputEncoding", "rawInput", "output", "errorText", "preliminary")
"""Keys that every input and output resets; title, metadata and providerExecuted are kept."""


_PROTOTYPE_KEYS: Final = frozenset({"__proto__", "constructor", "prototype"})


def reduce_chunks(chunks: Iterable[BaseChunk], message: UIMessage | None = None) -> UIMessage:
    """Return the message that a client has after these chunks.

    Args:
        chunks: One response, or several of one exchange; chunks after an error chunk are ignored.
        message: The assistant message that the response continues; it is not changed.

    Raises:
        ChunkOrderError: The client would end the response at one of the chunks.
    """
    reducer = MessageReducer(message)
    for chunk in chunks:
        reducer.feed(chunk)
    return reducer.message


class MessageReducer:
    """Builds a message chunk by chunk, as the client does for a request it has sent.

    It continues a copy of ``message``, or an empty message. The message shares its values with the
    chunks. It differs from the client's in one way: while the JSON arguments of a call are being
    streamed, the part has no ``input`` and no ``rawInput``; the client repairs partial JSON for the
    first and keeps the text in the second.
    """

    def __init__(self, message: UIMessage | None = None) -> None:
        self.message: UIMessage = (
            {"id": "", "role": "assistant", "parts": []} if message is None else deepcopy(message)
        )
        self.finish_reason: FinishReason | None = None
        self.error_text: str | None = None
        self._parts = self.message["parts"]
        self._tools = _ToolParts(self._parts)
        self._open_blocks: dict[tuple[str, str], Part] = {}

    def feed(self, chunk: BaseChunk) -> None:
        """Apply the next chunk; ``abort``, and chunks after an error chunk, change nothing.

        Raises:
            ChunkOrderError: The client would end the response at this chunk.
        """
        if self.error_text is not None:
            return
        if isinstance(chunk, StartChunk | FinishChunk | MessageMetadataChunk):
            self._feed_message(chunk)
        elif isinstance(chunk, StartStepChunk | FinishStepChunk | ResetStepChunk):
            self._feed_step(chunk)
        elif isinstance(chunk, _Block):
            self._feed_block(chunk)
        elif isinstance(chunk, _Content):
            self._parts.append(_part(chunk))
        elif isinstance(chunk, DataChunk):
            self._feed_data(chunk)
        elif isinstance(chunk, ErrorChunk):
            self.error_text = chunk.error_text
        elif isinstance(chunk, ToolChunk):
            self._tools.feed(chunk)

    def _feed_message(self, chunk: StartChunk | FinishChunk | MessageMetadataChunk) -> None:
        if isinstance(chunk, StartChunk) and chunk.message_id is not None:
            self.message["id"] = chunk.message_id
        if isinstance(chunk, FinishChunk) and chunk.finish_reason is not None:
            self.finish_reason = chunk.finish_reason
        if chunk.message_metadata is not None:
            previous = self.message.get("metadata")
            self.message["metadata"] = _merged(previous, chunk.message_metadata)

    def _feed_step(self, chunk: StartStepChunk | FinishStepChunk | ResetStepChunk) -> None:
        if isinstance(chunk, StartStepChunk):
            self._parts.append({"type": "step-start"})
        elif isinstance(chunk, ResetStepChunk):
            del self._parts[len(self._parts) - len(current_step(self._parts)) :]
            self._open_blocks.clear()
            self._tools.forget_open_calls()

    def _feed_block(self, chunk: _Block) -> None:
        kind = "text" if chunk.type.startswith("text-") else "reasoning"
        key = (kind, chunk.id)
        if isinstance(chunk, TextStartChunk | ReasoningStartChunk):
            part: Part = {"type": kind, "text": "", "state": "streaming"}
            if kind == "reasoning":
                part["id"] = chunk.id
            self._open_blocks[key] = part
            self._parts.append(part)
        elif key not in self._open_blocks:
            raise ChunkOrderError(f"{chunk.type} without an open block {chunk.id!r}")
        elif isinstance(chunk, TextDeltaChunk | ReasoningDeltaChunk):
            part = self._open_blocks[key]
            part["text"] += chunk.delta
        else:
            part = self._open_blocks.pop(key)
            part["state"] = "done"
            if isinstance(chunk, TextEndChunk) and chunk.citations is not None:
                part["citations"] = chunk.citations
        if chunk.provider_metadata is not None:
            part["providerMetadata"] = chunk.provider_metadata

    def _feed_data(self, chunk: DataChunk) -> None:
        if chunk.transient:
            return
        if chunk.id is not None:
            for part in self._parts:
                if part["type"] == chunk.type and part.get("id") == chunk.id:
                    part["data"] = chunk.data
                    return
        self._parts.append(_part(chunk) | {"data": chunk.data})


@dataclass
class _OpenCall:
    """A call whose arguments are being streamed."""

    name: str
    dynamic: bool
    encoding: Literal["json", "text"] | None
    title: str | None = None
    metadata: dict[str, object] | None = None
    text: str = ""


class _ToolParts:
    """Adds and changes the tool parts of one message, in the message's own list of parts."""

    def __init__(self, parts: list[Part]) -> None:
        self._parts = parts
        self._open = {
            part["toolCallId"]: _OpenCall(
                name=tool_name(part),
                dynamic=part["type"] == "dynamic-tool",
                encoding=part.get("inputEncoding"),
                title=part.get("title"),
                metadata=part.get("toolMetadata"),
                text=part.get("rawInput", ""),
            )
            for part in current_step(parts)
            if is_tool_part(part) and part["state"] == "input-streaming"
        }

    def forget_open_calls(self) -> None:
        """Forget the arguments that are being streamed, at ``reset-step``."""
        self._open.clear()

    def feed(self, chunk: ToolChunk) -> None:
        """Apply one chunk.

        Raises:
            ChunkOrderError: The message has no such call or approval.
        """
        match chunk:
            case ToolInputStartChunk() | ToolInputAvailableChunk() | ToolInputErrorChunk():
                self._feed_input(chunk)
            case ToolInputDeltaChunk():
                self._feed_delta(chunk)
            case ToolApprovalRequestChunk():
                part = self._find(chunk.tool_call_id)
                part["state"] = "approval-requested"
                part["approval"] = _approval(chunk)
            case ToolApprovalResponseChunk():
                self._feed_response(chunk)
            case ToolOutputAvailableChunk() | ToolOutputErrorChunk():
                self._feed_output(chunk)
            case _:
                self._find(chunk.tool_call_id)["state"] = "output-denied"

    def _find(self, call_id: str) -> Part:
        """Find a call in the current step, or else in the whole message, the newest first."""
        for part in (*current_step(self._parts), *reversed(self._parts)):
            if is_tool_part(part) and part["toolCallId"] == call_id:
                return part
        raise ChunkOrderError(f"this message holds no call {call_id!r}")

    def _find_or_add(self, call_id: str, name: str, *, dynamic: bool) -> Part:
        """Find a call of this kind in the current step, or else add it."""
        for part in current_step(self._parts):
            if (
                is_tool_part(part)
                and part["toolCallId"] == call_id
                and (part["type"] == "dynamic-tool") == dynamic
            ):
                break
        else:
            part = {"type": "dynamic-tool", "toolCallId": call_id}
            self._parts.append(part)
        if dynamic:
            part["toolName"] = name
        else:
            part["type"] = f"tool-{name}"
        return part

    def _feed_input(self, chunk: _Input) -> None:
        dynamic = chunk.dynamic is True
        if isinstance(chunk, ToolInputErrorChunk):
            # Only here does the kind of an existing part take precedence over the chunk's flag.
            for part in current_step(self._parts):
                if is_tool_part(part) and part["toolCallId"] == chunk.tool_call_id:
                    dynamic = part["type"] == "dynamic-tool"
                    break
        part = self._find_or_add(chunk.tool_call_id, chunk.tool_name, dynamic=dynamic)
        match chunk:
            case ToolInputStartChunk():
                self._open[chunk.tool_call_id] = _OpenCall(
                    name=chunk.tool_name,
                    dynamic=dynamic,
                    encoding=chunk.input_encoding,
                    title=chunk.title,
                    metadata=chunk.tool_metadata,
                )
                _reset(part, "input-streaming", inputEncoding=chunk.input_encoding)
            case ToolInputAvailableChunk():
                _reset(part, "input-available")
                part["input"] = chunk.input
            case _:
                _reset(part, "output-error", errorText=chunk.error_text)
                part["input"] = chunk.input
        if not isinstance(chunk, ToolInputErrorChunk):
            _set(part, title=chunk.title)
        _set_common(part, chunk)

    def _feed_delta(self, chunk: ToolInputDeltaChunk) -> None:
        call = self._open.get(chunk.tool_call_id)
        if call is None:
            raise ChunkOrderError(f"{chunk.type} before the start of call {chunk.tool_call_id!r}")
        call.text += chunk.input_text_delta
        part = self._find_or_add(chunk.tool_call_id, call.name, dynamic=call.dynamic)
        _reset(
            part,
            "input-streaming",
            inputEncoding=call.encoding,
            input=call.text if call.encoding == "text" else None,
        )
        _set(part, title=call.title, toolMetadata=call.metadata)

    def _feed_response(self, chunk: ToolApprovalResponseChunk) -> None:
        for part in self._parts:
            if is_tool_part(part) and part.get("approval", {}).get("id") == chunk.approval_id:
                break
        else:
            raise ChunkOrderError(f"this message holds no approval {chunk.approval_id!r}")
        part["state"] = "approval-responded"
        part["approval"] = {**part["approval"], "approved": chunk.approved}
        _set(part["approval"], reason=chunk.reason)
        _set(
            part,
            providerExecuted=chunk.provider_executed,
            callProviderMetadata=chunk.provider_metadata,
        )

    def _feed_output(self, chunk: _Output) -> None:
        part = self._find(chunk.tool_call_id)
        previous_input = {"input": part["input"]} if "input" in part else {}
        if isinstance(chunk, ToolOutputAvailableChunk):
            _reset(part, "output-available", preliminary=chunk.preliminary)
            part["output"] = chunk.output
        else:
            _reset(part, "output-error", errorText=chunk.error_text)
        part.update(previous_input)
        _set_common(part, chunk)


def _part(chunk: _Content | DataChunk) -> Part:
    """Return the part with the fields of its chunk."""
    return chunk.model_dump(by_alias=True, exclude_none=True)


def _merged(previous: Any, update: Any) -> Any:
    """Merge metadata deeply: objects are merged, other values are replaced."""
    if not (isinstance(previous, dict) and isinstance(update, dict)):
        return update
    merged = dict(previous)
    for key, value in update.items():
        if key not in _PROTOTYPE_KEYS:
            merged[key] = _merged(previous.get(key), value)
    return merged


def _reset(part: Part, state: str, **values: object) -> None:
    for key in _CALL_VALUES:
        part.pop(key, None)
    part["state"] = state
    _set(part, **values)


def _set(part: Part, **values: object) -> None:
    """Set the values that are not None; the other keys stay unchanged."""
    part.update((key, value) for key, value in values.items() if value is not None)


def _set_common(part: Part, chunk: _Input | _Output) -> None:
    _set(part, toolMetadata=chunk.tool_metadata, providerExecuted=chunk.provider_executed)
    if part["state"] in ("output-available", "output-error"):
        _set(part, resultProviderMetadata=chunk.provider_metadata)
    else:
        _set(part, callProviderMetadata=chunk.provider_metadata)


def _approval(chunk: ToolApprovalRequestChunk) -> Part:
    approval: Part = {"id": chunk.approval_id}
    _set(
        approval,
        descriptor=chunk.approval_descriptor,
        requestReason=chunk.reason,
        isAutomatic=chunk.is_automatic or None,
        signature=chunk.signature,
    )
    if "input_schema_input" in chunk.model_fields_set:
        approval["inputSchemaInput"] = chunk.input_schema_input
    return approval
