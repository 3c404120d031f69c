"""What tool chunks do to the tool parts of a message, as AI SDK 7's client does it."""

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
from sluicegate.wire.messages import current_step, is_tool_part, tool_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sluicegate.wire.chunks import BaseChunk, FinishReason
    from sluicegate.wire.messages import Part, UIMessage

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

_OVERWRITTEN: Final = ("input", "inputEncoding", "rawInput", "output", "errorText", "preliminary")
"""Every input and output sets these anew; title, metadata and providerExecuted stay once set."""


@dataclass
class _OpenCall:
    """What the client remembers of a call while its arguments are being written."""

    name: str
    dynamic: bool
    encoding: Literal["json", "text"] | None
    title: str | None = None
    metadata: dict[str, object] | None = None
    text: str = ""


class ToolParts:
    """Adds and changes the tool parts of one message; the list is shared with the message."""

    def __init__(self, parts: list[Part]) -> None:
        """Take a message's parts; calls of its last step may still be open."""
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
        """No call can be continued any more; what ``reset-step`` does."""
        self._open.clear()

    def feed(self, chunk: ToolChunk) -> None:
        """Take one chunk.

        Raises:
            ChunkOrderError: it names a call or an approval that this message does not hold.
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
        """Find a call in the current step, else in the whole message, the newest first."""
        for part in (*current_step(self._parts), *reversed(self._parts)):
            if is_tool_part(part) and part["toolCallId"] == call_id:
                return part
        raise ChunkOrderError(f"this message holds no call {call_id!r}")

    def _announced(self, call_id: str, name: str, *, dynamic: bool) -> Part:
        """Find a call of this kind in the current step, else add it."""
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
            # Here alone the kind of a part that is there already wins over the chunk's flag.
            for part in current_step(self._parts):
                if is_tool_part(part) and part["toolCallId"] == chunk.tool_call_id:
                    dynamic = part["type"] == "dynamic-tool"
                    break
        part = self._announced(chunk.tool_call_id, chunk.tool_name, dynamic=dynamic)
        match chunk:
            case ToolInputStartChunk():
                self._open[chunk.tool_call_id] = _OpenCall(
                    name=chunk.tool_name,
                    dynamic=dynamic,
                    encoding=chunk.input_encoding,
                    title=chunk.title,
                    metadata=chunk.tool_metadata,
                )
                _overwrite(part, "input-streaming", inputEncoding=chunk.input_encoding)
            case ToolInputAvailableChunk():
                _overwrite(part, "input-available")
                part["input"] = chunk.input
            case _:
                _overwrite(part, "output-error", errorText=chunk.error_text)
                part["input"] = chunk.input
        if not isinstance(chunk, ToolInputErrorChunk):
            _keep(part, title=chunk.title)
        _keep_common(part, chunk)

    def _feed_delta(self, chunk: ToolInputDeltaChunk) -> None:
        call = self._open.get(chunk.tool_call_id)
        if call is None:
            raise ChunkOrderError(f"{chunk.type} before the start of call {chunk.tool_call_id!r}")
        call.text += chunk.input_text_delta
        part = self._announced(chunk.tool_call_id, call.name, dynamic=call.dynamic)
        _overwrite(
            part,
            "input-streaming",
            inputEncoding=call.encoding,
            input=call.text if call.encoding == "text" else None,
        )
        _keep(part, title=call.title, toolMetadata=call.metadata)

    def _feed_response(self, chunk: ToolApprovalResponseChunk) -> None:
        for part in self._parts:
            if is_tool_part(part) and part.get("approval", {}).get("id") == chunk.approval_id:
                break
        else:
            raise ChunkOrderError(f"this message holds no approval {chunk.approval_id!r}")
        part["state"] = "approval-responded"
        part["approval"] = {**part["approval"], "approved": chunk.approved}
        _keep(part["approval"], reason=chunk.reason)
        _keep(
            part,
            providerExecuted=chunk.provider_executed,
            callProviderMetadata=chunk.provider_metadata,
        )

    def _feed_output(self, chunk: _Output) -> None:
        part = self._find(chunk.tool_call_id)
        known = {"input": part["input"]} if "input" in part else {}
        if isinstance(chunk, ToolOutputAvailableChunk):
            _overwrite(part, "output-available", preliminary=chunk.preliminary)
            part["output"] = chunk.output
        else:
            _overwrite(part, "output-error", errorText=chunk.error_text)
        part.update(known)
        _keep_common(part, chunk)


def _overwrite(part: Part, state: str, **values: object) -> None:
    for key in _OVERWRITTEN:
        part.pop(key, None)
    part["state"] = state
    _keep(part, **values)


def _keep(part: Part, **values: object) -> None:
    """Set what is there; what is not leaves the part as it was."""
    part.update((key, value) for key, value in values.items() if value is not None)


def _keep_common(part: Part, chunk: _Input | _Output) -> None:
    _keep(part, toolMetadata=chunk.tool_metadata, providerExecuted=chunk.provider_executed)
    if part["state"] in ("output-available", "output-error"):
        _keep(part, resultProviderMetadata=chunk.provider_metadata)
    else:
        _keep(part, callProviderMetadata=chunk.provider_metadata)


def _approval(chunk: ToolApprovalRequestChunk) -> Part:
    approval: Part = {"id": chunk.approval_id}
    _keep(
        approval,
        descriptor=chunk.approval_descriptor,
        requestReason=chunk.reason,
        isAutomatic=chunk.is_automatic or None,
        signature=chunk.signature,
    )
    if "input_schema_input" in chunk.model_fields_set:
        approval["inputSchemaInput"] = chunk.input_schema_input
    return approval


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

_PROTOTYPE_KEYS: Final = frozenset({"__proto__", "constructor", "prototype"})


def reduce_chunks(chunks: Iterable[BaseChunk], message: UIMessage | None = None) -> UIMessage:
    """Return the message that a client holds after these chunks.

    Args:
        chunks: One response, or several of one exchange; after an error chunk none is read.
        message: The assistant message that the response continues; it is not changed.

    Raises:
        ChunkOrderError: the client would end the response at one of the chunks.
    """
    reducer = MessageReducer(message)
    for chunk in chunks:
        reducer.feed(chunk)
    return reducer.message


class MessageReducer:
    """Builds a message chunk by chunk, as the client does for a request it has sent.

    The message shares its values with the chunks. It differs from the client's in one thing: while
    the JSON arguments of a call are being written, the part has no ``input`` and no ``rawInput``,
    where the client guesses the first and keeps the text in the second.
    """

    def __init__(self, message: UIMessage | None = None) -> None:
        """Begin with a copy of the message that is continued, or with an empty one."""
        self.message: UIMessage = (
            {"id": "", "role": "assistant", "parts": []} if message is None else deepcopy(message)
        )
        self.finish_reason: FinishReason | None = None
        self.error_text: str | None = None
        self._parts = self.message["parts"]
        self._tools = ToolParts(self._parts)
        self._open_blocks: dict[tuple[str, str], Part] = {}

    def feed(self, chunk: BaseChunk) -> None:
        """Take the next chunk; ``abort``, and all after an error chunk, change nothing.

        Raises:
            ChunkOrderError: the client would end the response at this chunk.
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
            known = self.message.get("metadata")
            self.message["metadata"] = _merged(known, chunk.message_metadata)

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


def _part(chunk: _Content | DataChunk) -> Part:
    """Return the part that holds just what its chunk says."""
    return chunk.model_dump(by_alias=True, exclude_none=True)


def _merged(known: Any, update: Any) -> Any:
    """Merge metadata deeply: objects are merged, everything else is replaced."""
    if not (isinstance(known, dict) and isinstance(update, dict)):
        return update
    merged = dict(known)
    for key, value in update.items():
        if key not in _PROTOTYPE_KEYS:
            merged[key] = _merged(known.get(key), value)
    return merged
