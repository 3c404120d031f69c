"""The chunks of one call: its input, its question, its outcome (T7, T8)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

from sluicegate.wire.chunks import (
    BaseChunk,
    DataChunk,
    ToolApprovalRequestChunk,
    ToolInputAvailableChunk,
    ToolInputStartChunk,
    ToolOutputAvailableChunk,
    ToolOutputDeniedChunk,
    ToolOutputErrorChunk,
)

if TYPE_CHECKING:
    from pydantic import JsonValue

    from sluicegate.core.signals import Ask, Call, Outcome

CONFIRMATION_TOOL = "adk_request_confirmation"
STANDARD_HINT = "Please approve or reject the tool call {}() by responding"
"""What ADK says for a tool whose author said nothing: words for a program, not for a person."""


def start_chunk(call: Call, *, provider_executed: bool) -> BaseChunk:
    """``tool-input-start`` of a call (T7)."""
    return ToolInputStartChunk(
        tool_call_id=call.id,
        tool_name=call.name,
        provider_executed=True if provider_executed else None,
        dynamic=True if call.facts.dynamic else None,
        title=call.facts.title,
        tool_metadata=_metadata(call),
    )


def input_chunk(call: Call, *, provider_executed: bool) -> BaseChunk:
    """``tool-input-available`` of a call (T7)."""
    return ToolInputAvailableChunk(
        tool_call_id=call.id,
        tool_name=call.name,
        input=call.args,
        provider_executed=True if provider_executed else None,
        dynamic=True if call.facts.dynamic else None,
        title=call.facts.title,
        tool_metadata=_metadata(call),
    )


def outcome_chunk(call_id: str, outcome: Outcome, *, preliminary: bool = False) -> BaseChunk:
    """How a call ended, as its final chunk (T8)."""
    match outcome.kind:
        case "output":
            return ToolOutputAvailableChunk(
                tool_call_id=call_id,
                output=outcome.output,
                preliminary=True if preliminary else None,
            )
        case "error":
            return ToolOutputErrorChunk(tool_call_id=call_id, error_text=outcome.text)
        case "denied":
            return ToolOutputDeniedChunk(tool_call_id=call_id)


def request_chunk(call: Call, ask: Ask, part_id: str) -> BaseChunk:
    """``tool-approval-request``; what only AI SDK 7 knows is stripped for a 6 client."""
    if ask.automatic:
        return ToolApprovalRequestChunk(
            approval_id=ask.approval_id, tool_call_id=part_id, is_automatic=True
        )
    descriptor: dict[str, JsonValue] = {
        "toolName": call.name,
        "agent": call.author,
        "editable": call.facts.editable,
        "rememberable": call.facts.rememberable,
    }
    if ask.expires_at is not None:
        moment = datetime.fromtimestamp(ask.expires_at, UTC)
        descriptor["expiresAt"] = moment.isoformat(timespec="milliseconds")
    if call.facts.schema is not None:
        descriptor["schema"] = dict(call.facts.schema)
    return ToolApprovalRequestChunk(
        approval_id=ask.approval_id,
        tool_call_id=part_id,
        reason=shown_hint(call, ask),
        approval_descriptor=descriptor,
    )


def shown_hint(call: Call, ask: Ask) -> str | None:
    """What the author of the tool says to the person, if anything."""
    return None if ask.hint.startswith(STANDARD_HINT.format(call.name)) else ask.hint or None


def confirmation_chunks(call: Call, ask: Ask) -> list[BaseChunk]:
    """Style ``confirmation``: the tool part that stands for the question."""
    confirmation: dict[str, JsonValue] = {"hint": ask.hint, "payload": ask.payload}
    original: dict[str, JsonValue] = {"id": call.id, "name": call.name, "args": call.args}
    return [
        ToolInputStartChunk(tool_call_id=ask.approval_id, tool_name=CONFIRMATION_TOOL),
        ToolInputAvailableChunk(
            tool_call_id=ask.approval_id,
            tool_name=CONFIRMATION_TOOL,
            input={"originalFunctionCall": original, "toolConfirmation": confirmation},
        ),
    ]


def progress_chunk(call: Call, state: Literal["running", "done", "failed"]) -> BaseChunk:
    """The transient notice of D2 and D6: it leaves no part, so it blocks no predicate (S2-R28)."""
    return DataChunk(
        type="data-progress",
        data={"toolCallId": call.id, "toolName": call.name, "state": state},
        transient=True,
    )


def notice_chunk(sentence: str) -> BaseChunk:
    """One sentence for the user that belongs to no call and stays in no message."""
    return DataChunk(type="data-notice", data={"text": sentence}, transient=True)


def _metadata(call: Call) -> dict[str, JsonValue] | None:
    return None if call.facts.metadata is None else dict(call.facts.metadata)
