"""One call of an exchange: what it is, who was asked, how it ended, what of it is shown."""

from __future__ import annotations

from dataclasses import dataclass
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

    from sluicegate.core.signals import Answered, ApprovalRequest, Call, Outcome


@dataclass(slots=True)
class CallState:
    """All that is known of one call of the exchange.

    ``announced``: its tool part is complete in the message. ``shown``: its outcome was written.
    ``closed``: style ``confirmation``, the part that carries the approval has ended.
    """

    call: Call
    ask: ApprovalRequest | None = None
    answer: Answered | None = None
    outcome: Outcome | None = None
    announced: bool = False
    shown: bool = False
    closed: bool = False

    @property
    def is_client_side(self) -> bool:
        """Whether the browser runs it."""
        return self.call.facts.kind in ("client", "gated-client")

    @property
    def waits(self) -> bool:
        """Whether a person or a browser still has to act on it."""
        if self.outcome is not None:
            return False
        if self.ask is not None:
            undecided = self.answer is None
            return undecided or (self.is_client_side and self.is_approved)
        return self.is_client_side

    @property
    def was_asked(self) -> bool:
        """Whether ADK waits, or has waited, for a person's answer; not if one was remembered."""
        return self.ask is not None and not self.ask.automatic

    @property
    def is_approved(self) -> bool:
        """Whether a person said yes."""
        return self.answer is not None and self.answer.approved

    @property
    def runs_unasked(self) -> bool:
        """Whether it carries ``providerExecuted: true`` once it has settled (T7)."""
        if self.is_client_side:
            return self.ask is None and not self.is_for_browser
        return self.call.facts.kind in ("free", "conditional") and self.ask is None

    @property
    def is_for_browser(self) -> bool:
        """Whether a browser runs it; not if the server refused it, or if it was cut short."""
        ended_here = self.ask is None and self.answer is None and self.outcome is not None
        return self.is_client_side and not ended_here


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


def request_chunk(call: Call, ask: ApprovalRequest, part_id: str) -> BaseChunk:
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


def shown_hint(call: Call, ask: ApprovalRequest) -> str | None:
    """What the author of the tool says to the person, if anything."""
    return None if ask.hint.startswith(STANDARD_HINT.format(call.name)) else ask.hint or None


def confirmation_chunks(call: Call, ask: ApprovalRequest) -> list[BaseChunk]:
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
