"""Function responses for ADK: the outputs of client-side calls, and the decisions.

Of credentials the server keeps the auth config; the page sends only the address to which the
provider redirected the user.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from sluicegate.core.approvals import EFFECTFUL
from sluicegate.core.event_reading import CREDENTIAL
from sluicegate.core.missing_requests import calls_without_request
from sluicegate.core.signals import CONNECTED, Outcome
from sluicegate.errors import Malformed
from sluicegate.wire.limits import check_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from google.adk.events.event import Event

    from sluicegate.core.approvals import Rows
    from sluicegate.core.call_state import CallState
    from sluicegate.core.history import RebuiltExchange
    from sluicegate.wire.limits import RequestLimits
    from sluicegate.wire.posted_assistant_message import ClientOutput


_CONFIRMED: Final = frozenset({"approved", "asked_again", *EFFECTFUL})
"""The states of a row whose call ADK is to run, or to answer from the row."""


def check_output(state: CallState, output: ClientOutput, limits: RequestLimits) -> None:
    """Check an output before anything has changed.

    Raises:
        Malformed: A credential without ``authResponseUri``.
        TooLarge: More values or longer texts than an output may have.
    """
    check_size(output.output, limits)
    if state.call.name == CREDENTIAL and output.error_text is None and _uri(output) is None:
        raise Malformed("Send the address the provider returned to as authResponseUri.")


def response_of(state: CallState, output: ClientOutput, events: Sequence[Event]) -> dict[str, Any]:
    """The output as ADK's ``FunctionResponse.response``, which is an object."""
    if output.error_text is not None:
        return {"error": output.error_text}
    if state.call.name == CREDENTIAL:
        return _auth_config(state.call.id_in_adk, _uri(output) or "", events)
    return output.output if isinstance(output.output, dict) else {"result": output.output}


def outcome_of(state: CallState, output: ClientOutput) -> Outcome:
    """The output as the message shows it."""
    if output.error_text is not None:
        return Outcome("error", text=output.error_text)
    return CONNECTED if state.call.name == CREDENTIAL else Outcome("output", output=output.output)


def shape_of(state: CallState, output: ClientOutput) -> str | None:
    """The note from which a replay restores the output that the browser sent.

    The log's response to a credential request is never shown, so the note holds its error text.
    """
    if output.error_text is not None:
        return f"error {output.error_text}" if state.call.name == CREDENTIAL else "error"
    return None if isinstance(output.output, dict) else "result"


def _uri(output: ClientOutput) -> str | None:
    uri = output.output.get("authResponseUri") if isinstance(output.output, dict) else None
    return uri if isinstance(uri, str) and uri.startswith(("http://", "https://")) else None


def _auth_config(call_id: str, uri: str, events: Sequence[Event]) -> dict[str, Any]:
    """ADK's auth config of the request with ``uri`` as the response address."""
    for event in reversed(events):
        for call in event.get_function_calls():
            if call.id == call_id and call.args:
                config: dict[str, Any] = deepcopy(call.args.get("authConfig") or {})
                exchanged = config.setdefault("exchangedAuthCredential", {})
                exchanged.setdefault("oauth2", {})["authResponseUri"] = uri
                return config
    return {}


@dataclass(frozen=True, slots=True)
class Reply:
    """One function response for ADK."""

    id: str
    name: str
    response: dict[str, object]
    branch: str | None
    invocation: str


@dataclass(frozen=True, slots=True)
class Delivery:
    """The responses for ADK (A3): groups to append as user events, then the message to run with."""

    appended: Sequence[Sequence[Reply]]
    message: Sequence[Reply]


def delivery(exchange: RebuiltExchange, rows: Rows, outputs: Sequence[Reply]) -> Delivery | None:
    """Group the responses of an exchange by branch (A3); None if there are none.

    A call that asks again has used its answer, although a crash has lost its next request.
    """
    decisions: dict[str | None, list[Reply]] = {}
    used = calls_without_request(exchange.exchange.events)
    for state in exchange.buffer.calls.values():
        request = state.request
        if request is None or not state.was_requested or state.outcome is not None:
            continue
        if state.call.id_in_adk in used:
            continue
        row = rows.get(request.approval_id)
        confirmed = row is not None and row.state in _CONFIRMED
        response: dict[str, object] = {"confirmed": confirmed}
        if confirmed and row is not None and row.approved_payload is not None:
            response["payload"] = row.approved_payload
        reply = Reply(
            request.confirmation_id,
            request.answer_name,
            response,
            request.branch,
            request.invocation,
        )
        decisions.setdefault(request.branch, []).append(reply)
    others: dict[str | None, list[Reply]] = {}
    for output in outputs:
        others.setdefault(output.branch, []).append(output)
    # ADK makes the calls again in which something waits if the last answer is of one of them.
    outermost_first = sorted(others.items(), key=lambda each: (each[0] or "").count("@"))
    groups = [*(group for _, group in outermost_first), *decisions.values()]
    return Delivery(groups[:-1], groups[-1]) if groups else None
