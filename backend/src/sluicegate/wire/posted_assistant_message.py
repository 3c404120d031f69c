"""The assistant message that a request continues: the decisions and outputs that it carries."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pydantic import JsonValue

from sluicegate.errors import Malformed, TooLarge
from sluicegate.wire.decisions import (
    NO_STAGED_OPTIONS,
    PostedDecision,
    StagedOptions,
    parse_decision,
    with_staged_options,
)
from sluicegate.wire.ids import is_call_id
from sluicegate.wire.ui_messages import is_tool_part, tool_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sluicegate.wire.limits import RequestLimits
    from sluicegate.wire.ui_messages import Part

_LATER_STATES: Final = ("input-available", "output-available", "output-error", "output-denied")
"""The states of a part whose decision the server has: announced again (T9), or ended."""


@dataclass(frozen=True)
class ClientOutput:
    """The output or the error of a call, as the client reports it.

    It counts only for an open call of a client-side tool; for any other call it is ignored.
    ``error_text`` is None unless the call failed, and ``output`` is None if it did.
    """

    tool_call_id: str
    tool_name: str
    output: JsonValue
    error_text: str | None


@dataclass(frozen=True)
class PostedPart:
    """The type, state and ids of one part; None for an id that is missing or not valid."""

    type: str
    tool_call_id: str | None
    state: str | None
    approval_id: str | None


@dataclass(frozen=True)
class PostedAssistantMessage:
    """The message that a request continues, with its parts in order.

    ``decisions`` holds each approval once. ``known_edits`` are the ``edits`` and ``editedPayload``
    that the server has reported in the message's metadata, by approval id.
    """

    id: str
    parts: tuple[PostedPart, ...]
    decisions: tuple[PostedDecision, ...]
    outputs: tuple[ClientOutput, ...]
    known_edits: Mapping[str, Mapping[str, JsonValue]] = field(default_factory=dict)


def parse_assistant_message(
    message_id: str,
    parts: Sequence[Part],
    limits: RequestLimits,
    staged: StagedOptions = NO_STAGED_OPTIONS,
    metadata: JsonValue = None,
) -> PostedAssistantMessage:
    """Parse the parts of a continued message; each is an object with a ``type``.

    ``metadata`` is the message's.

    Raises:
        Malformed: The decision of a part in ``approval-responded`` is not valid, or two parts
            decide one approval differently.
        TooLarge: There are more decisions than ``limits.parts``.
    """
    decisions: dict[str, PostedDecision] = {}
    outputs: list[ClientOutput] = []
    for part in parts:
        if not is_tool_part(part):
            continue
        decision = _part_decision(part, limits, staged)
        if decision is not None:
            first = decisions.setdefault(decision.approval_id, decision)
            if first.approved is not decision.approved:
                raise Malformed("One approval is answered both yes and no; answer it once.")
        output = _client_output(part)
        if output is not None:
            outputs.append(output)
    if len(decisions) > limits.parts:
        raise TooLarge(f"There are more than {limits.parts} answers in one request; send fewer.")
    return PostedAssistantMessage(
        id=message_id,
        parts=tuple(_posted_part(part) for part in parts),
        decisions=tuple(decisions.values()),
        outputs=tuple(outputs),
        known_edits=_known_edits(metadata),
    )


def _part_decision(
    part: Part, limits: RequestLimits, staged: StagedOptions
) -> PostedDecision | None:
    approval = part.get("approval")
    if part.get("state") == "approval-responded":
        return with_staged_options(parse_decision(approval, limits), staged)
    if part.get("state") not in _LATER_STATES or not isinstance(approval, dict):
        return None
    approval_id, approved = approval.get("id"), approval.get("approved")
    reason = approval.get("reason")
    if not is_call_id(approval_id) or not isinstance(approved, bool):
        return None
    reason = reason if isinstance(reason, str) else None
    return PostedDecision(approval_id, approved, reason, form="known")


def _known_edits(metadata: JsonValue) -> dict[str, dict[str, JsonValue]]:
    approvals = metadata.get("approvals") if isinstance(metadata, dict) else None
    if not isinstance(approvals, dict):
        return {}
    return {
        approval_id: entry for approval_id, entry in approvals.items() if isinstance(entry, dict)
    }


def _client_output(part: Part) -> ClientOutput | None:
    state, call_id = part.get("state"), part.get("toolCallId")
    if state not in ("output-available", "output-error") or not is_call_id(call_id):
        return None
    if part.get("preliminary") is True or not isinstance(part.get("toolName", ""), str):
        return None
    if part["type"] == "dynamic-tool" and "toolName" not in part:
        return None
    if state == "output-available":
        return ClientOutput(call_id, tool_name(part), part.get("output"), None)
    error_text = part.get("errorText")
    return ClientOutput(
        call_id,
        tool_name(part),
        None,
        error_text if isinstance(error_text, str) else "The tool failed in the browser.",
    )


def _posted_part(part: Part) -> PostedPart:
    call_id, state, approval = part.get("toolCallId"), part.get("state"), part.get("approval")
    approval_id = approval.get("id") if isinstance(approval, dict) else None
    return PostedPart(
        type=part["type"],
        tool_call_id=call_id if is_call_id(call_id) else None,
        state=state if isinstance(state, str) else None,
        approval_id=approval_id if is_call_id(approval_id) else None,
    )
