"""From chunks to the message a client holds: what AI SDK 7's ``processUIMessageStream`` does."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from sluicegate.errors import ChunkOrderError
from sluicegate.wire.message_chunks import (
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
)
from sluicegate.wire.messages import current_step
from sluicegate.wire.tool_parts import ToolChunk, ToolParts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sluicegate.wire.base_chunk import BaseChunk
    from sluicegate.wire.message_chunks import FinishReason
    from sluicegate.wire.messages import Part, UIMessage

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
