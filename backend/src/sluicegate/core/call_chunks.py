"""Builders of the chunks that show a call, its approval request and its outcome."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from sluicegate.core.confirmation_payload_form import is_form, seen_payload, seen_schema
from sluicegate.wire.chunks import (
    BaseChunk,
    DataChunk,
    TextDeltaChunk,
    TextEndChunk,
    TextStartChunk,
    ToolApprovalRequestChunk,
    ToolInputAvailableChunk,
    ToolInputStartChunk,
    ToolOutputAvailableChunk,
    ToolOutputDeniedChunk,
    ToolOutputErrorChunk,
)
from sluicegate.wire.iso_times import iso_time
from sluicegate.wire.limits import GRANT_TTL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic import JsonValue

    from sluicegate.core.call_state import CallState
    from sluicegate.core.signals import ApprovalRequest, Call, Outcome

_MAY_ASK: Final = ("gated", "conditional", "gated-client")

CONFIRMATION_TOOL = "adk_request_confirmation"
STANDARD_HINT = "Please approve or reject the tool call {}() by responding"
"""The beginning of ADK's own hint, which is written for a program.

ADK: a request has no field that says whether the hint is its own or the tool author's.
"""


def start_chunk(call: Call) -> BaseChunk:
    """``tool-input-start`` of a call (T7)."""
    return ToolInputStartChunk(
        tool_call_id=call.id,
        tool_name=call.name,
        provider_executed=True if call.facts.kind == "free" else None,
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
    """The chunk of an outcome (T8)."""
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


def result_texts(block: str, messages: Sequence[str]) -> list[BaseChunk]:
    """One text block with one delta for each message, as paragraphs (S2-R07)."""
    deltas = (f"\n\n{each}" if number else each for number, each in enumerate(messages))
    texts = [TextDeltaChunk(id=block, delta=delta) for delta in deltas]
    return [TextStartChunk(id=block), *texts, TextEndChunk(id=block)] if texts else []


def message_of(state: CallState) -> str | None:
    """The ``message`` of the result of a tool of the server, if it has one."""
    outcome = state.outcome
    if outcome is None or outcome.kind != "output" or state.is_client_side:
        return None
    message = outcome.output.get("message") if isinstance(outcome.output, dict) else None
    return message if isinstance(message, str) and message.strip() else None


def request_chunk(call: Call, request: ApprovalRequest, part_id: str) -> BaseChunk:
    """``tool-approval-request``; fields that only AI SDK 7 has are stripped for a 6 client."""
    if request.automatic:
        return ToolApprovalRequestChunk(
            approval_id=request.approval_id, tool_call_id=part_id, is_automatic=True
        )
    facts = call.facts
    descriptor: dict[str, JsonValue] = {
        "toolName": call.name,
        "agent": agent_path(call),
        "editable": facts.editable and not is_form(request.payload),
        "rememberable": facts.rememberable and not is_form(request.payload),
    }
    if descriptor["rememberable"] and facts.grant_ttl != GRANT_TTL:
        descriptor["grantTtl"] = facts.grant_ttl
    if facts.by_voice is not None:
        descriptor["byVoice"] = facts.by_voice
    if request.expires_at is not None:
        descriptor["expiresAt"] = iso_time(request.expires_at)
    if request.arguments is not None:
        # A part of an earlier step still has the model's.
        descriptor["arguments"] = dict(request.arguments)
    if request.covers_payload:
        descriptor |= _payload(request)
    if request.defaults:
        descriptor["defaults"] = dict(request.defaults)
    schema = facts.schema if request.schema is None else request.schema
    if schema is not None:
        descriptor["schema"] = dict(schema)
    if request.changed is not None:
        descriptor["changed"] = request.changed
    descriptor |= _people(call, request) | _preview(request)
    return ToolApprovalRequestChunk(
        approval_id=request.approval_id,
        tool_call_id=part_id,
        reason=shown_hint(call, request),
        approval_descriptor=descriptor,
    )


def _people(call: Call, request: ApprovalRequest) -> dict[str, JsonValue]:
    """Who decides in place of the user, and what may be answered in place of the tool."""
    people: dict[str, JsonValue] = {}
    if request.approvers is not None:
        people |= {"approvers": dict(request.approvers), "digest": request.digest}
    if call.facts.respond is not None:
        people["responseSchema"] = dict(call.facts.respond)
    return people


def _preview(request: ApprovalRequest) -> dict[str, JsonValue]:
    """What the call would do, with the digest that an approval of it states."""
    if request.preview is None:
        return {}
    return {"preview": dict(request.preview), "digest": request.digest}


def _payload(request: ApprovalRequest) -> dict[str, JsonValue]:
    payload, schema = seen_payload(request.payload), seen_schema(request.payload)
    return {"payload": payload} if schema is None else {"payload": payload, "payloadSchema": schema}


def agent_path(call: Call) -> str:
    """The path of the agent that calls, or its name where no path is known."""
    return call.facts.agent or call.author


def shown_hint(call: Call, request: ApprovalRequest) -> str | None:
    """The hint of the tool's author to the approver, if there is one."""
    return None if is_standard_hint(request.hint, call.name) else request.hint or None


def is_standard_hint(hint: str | None, tool: str) -> bool:
    """Whether a hint is ADK's own, of a tool whose author gave none."""
    return hint is not None and hint.startswith(STANDARD_HINT.format(tool))


def confirmation_chunks(call: Call, request: ApprovalRequest) -> list[BaseChunk]:
    """Style ``confirmation``: the tool part that carries the approval request."""
    started = ToolInputStartChunk(tool_call_id=request.approval_id, tool_name=CONFIRMATION_TOOL)
    return [started, confirmation_chunk(call, request, decided=False)]


def confirmation_chunk(
    call: Call, request: ApprovalRequest, *, decided: bool
) -> ToolInputAvailableChunk:
    """``tool-input-available`` of the part that carries the approval request (T9).

    A decided one is marked as executed by the server, so that ``onToolCall`` is not called again.
    """
    confirmation: dict[str, JsonValue] = {
        "hint": request.hint,
        **_payload(request),
        **_preview(request),
    }
    original: dict[str, JsonValue] = {"id": call.id, "name": call.name, "args": call.args}
    return ToolInputAvailableChunk(
        tool_call_id=request.approval_id,
        tool_name=CONFIRMATION_TOOL,
        input={"originalFunctionCall": original, "toolConfirmation": confirmation},
        provider_executed=True if decided else None,
    )


def progress_chunk(call: Call, state: Literal["running", "done", "failed"]) -> BaseChunk:
    """The transient notice of D2 and D6: it leaves no part, so no predicate sees it (S2-R28)."""
    return DataChunk(
        type="data-progress",
        data={"toolCallId": call.id, "toolName": call.name, "state": state},
        transient=True,
    )


def notice_chunk(sentence: str) -> BaseChunk:
    """A transient sentence for the user that belongs to no call."""
    return DataChunk(type="data-notice", data={"text": sentence}, transient=True)


def _metadata(call: Call) -> dict[str, JsonValue] | None:
    """The author's metadata, and the agent that calls a gated tool if it is not the root."""
    facts = call.facts
    if facts.kind in _MAY_ASK and "/" in facts.agent:
        return {**(facts.metadata or {}), "agent": facts.agent}
    return None if facts.metadata is None else dict(facts.metadata)
