"""The ledger's row for an approval request of the log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluicegate.core.approvals import NewApproval
from sluicegate.core.call_chunks import agent_path, shown_hint
from sluicegate.core.call_keys import CallKey
from sluicegate.core.json_values import hash_arguments
from sluicegate.core.payload_validation import covered_payload

if TYPE_CHECKING:
    from sluicegate.core.call_state import CallState
    from sluicegate.core.chat_and_turn_keys import ChatKey


def call_key(chat: ChatKey, state: CallState) -> CallKey:
    """The ledger's key of the last request for a gated call (A1)."""
    if state.request is None:
        return CallKey(*chat, invocation="", call=state.call.id)
    first = CallKey(*chat, state.request.invocation, state.call.id_in_adk)
    return first.with_request_number(len(state.requests))


def new_approval(chat: ChatKey, state: CallState, *, ttl: float) -> NewApproval:
    """The approval request of a gated call for the ledger; ``ttl`` in seconds."""
    call, request = state.call, state.request
    arguments, defaults, payload = call.args, None, covered_payload(state)
    if request is not None:
        arguments = call.args if request.arguments is None else dict(request.arguments)
        defaults = request.defaults
    return NewApproval(
        key=call_key(chat, state),
        approval_id=request.approval_id if request else "",
        tool=call.name,
        args_hash=hash_arguments(arguments, defaults, payload),
        ttl=ttl,
        arguments=arguments,
        hint=shown_hint(call, request) if request else None,
        agent=agent_path(call),
        payload=payload,
    )
