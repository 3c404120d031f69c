"""The bodies of events: what a receiver learns about an approval."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from sluicegate.core.approval_metadata import edits_of
from sluicegate.core.confirmation_payload_form import seen_payload
from sluicegate.wire.iso_times import iso_time

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sluicegate.core.approvals import ApprovalRow
    from sluicegate.engine.webhooks.webhook_settings import WebhookOptions
    from sluicegate.stores.approvals.outbox import QueuedEvent

TEST: Final = "webhook.test"
"""The type of the event that the command line sends."""

_TYPES: Final[Mapping[str, str]] = {
    "approved": "approval.decided",
    "denied": "approval.decided",
}
_UNDECIDED: Final = frozenset({"requested", "expired", "reminder"})
"""States in which there is no decision, or one without effect."""


def is_of_nobody(event: QueuedEvent) -> bool:
    """Whether an event is a request never shown, because a grant has approved it at once."""
    return event.state == "requested" and event.approval.is_automatic


def event_id(event: QueuedEvent) -> str:
    """Return the id of an event: the same for each attempt, each endpoint and each replica."""
    parts = (*event.approval.key, event.state, event.at.hex())
    # Lengths separate the parts, which may contain any character.
    text = "".join(f"{len(part)}:{part}" for part in parts)
    return f"evt_{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def event_body(event: QueuedEvent, options: WebhookOptions) -> str:
    """Return the JSON of an event, in ASCII, so that receivers verify the same bytes."""
    row = event.approval
    data: dict[str, Any] = {
        "approvalId": row.approval_id,
        "state": event.state,
        "app": row.key.app,
        "user": row.key.user,
        "chatId": row.key.chat,
        "agent": row.agent or "",
        "tool": row.tool,
        "requestedAt": iso_time(row.requested_at),
        "expiresAt": iso_time(row.deadline),
        **({} if row.approvers is None else {"approvers": row.approvers.as_json()}),
        **_decision(event),
        **({} if options.inbox_url is None else {"url": inbox_link(options.inbox_url, row)}),
        **(_details(event) if options.has_details else {}),
    }
    return encode_event(kind_of(event.state), event.at, data)


def kind_of(state: str) -> str:
    """Return the type of the event of a state."""
    return _TYPES.get(state, f"approval.{state}")


def encode_event(kind: str, at: float, data: Mapping[str, Any]) -> str:
    """Return the body of an event of a type."""
    event = {"type": kind, "timestamp": iso_time(at), "data": data}
    return json.dumps(event, separators=(",", ":"))


def inbox_link(inbox_url: str, row: ApprovalRow) -> str:
    """Return the address of an approval on the page; its reader must be entitled to it."""
    return f"{inbox_url}/{quote(row.approval_id, safe='', errors='replace')}"


def _decision(event: QueuedEvent) -> dict[str, Any]:
    row = event.approval
    if event.state in _UNDECIDED or row.decided_by is None or row.decided_at is None:
        return {}
    decision: dict[str, Any] = {"decidedBy": row.decided_by, "decidedAt": iso_time(row.decided_at)}
    if row.via is not None:
        decision["via"] = row.via
    if row.is_automatic:
        decision["automatic"] = True
    return decision


def _details(event: QueuedEvent) -> dict[str, Any]:
    row = event.approval
    details = {
        "title": event.title,
        "hint": row.hint,
        "arguments": row.arguments,
        "payload": seen_payload(row.payload),
    }
    if event.state not in _UNDECIDED:
        details |= {"reason": row.reason, "response": row.response, **edits_of(row)}
    return {name: value for name, value in details.items() if value is not None}
