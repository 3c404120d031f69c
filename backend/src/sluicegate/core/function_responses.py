"""What a browser sends for a client-side call, as ADK gets it and as the message shows it.

Credentials are the exception: the server keeps the auth config, and of the page only the address
that the provider sent the user back to is read.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sluicegate.core.approvals import EFFECTFUL
from sluicegate.core.events import CREDENTIAL
from sluicegate.core.signals import Outcome
from sluicegate.errors import Malformed
from sluicegate.wire.requests import check_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from google.adk.events.event import Event

    from sluicegate.core.calls import CallState
    from sluicegate.core.history import RebuiltExchange
    from sluicegate.core.ledger_overlay import Rows
    from sluicegate.wire.decisions import ClientOutput
    from sluicegate.wire.requests import RequestLimits

CONNECTED = Outcome("output", output={"connected": True})


def check_output(state: CallState, output: ClientOutput, limits: RequestLimits) -> None:
    """Refuse an output that cannot be taken, before anything has changed.

    Raises:
        Malformed: a credential without ``authResponseUri``.
        TooLarge: more values or longer texts than an output may have.
    """
    check_size(output.output, limits)
    if state.call.name == CREDENTIAL and output.error_text is None and _uri(output) is None:
        raise Malformed("Send the address the provider returned to as authResponseUri.")


def response_of(state: CallState, output: ClientOutput, events: Sequence[Event]) -> dict[str, Any]:
    """The output as ADK's ``FunctionResponse.response``, which is an object."""
    if output.error_text is not None:
        return {"error": output.error_text}
    if state.call.name == CREDENTIAL:
        return _filled(state.call.id_in_adk, _uri(output) or "", events)
    return output.output if isinstance(output.output, dict) else {"result": output.output}


def outcome_of(state: CallState, output: ClientOutput) -> Outcome:
    """The output as the message shows it."""
    if output.error_text is not None:
        return Outcome("error", text=output.error_text)
    return CONNECTED if state.call.name == CREDENTIAL else Outcome("output", output=output.output)


def shape_of(state: CallState, output: ClientOutput) -> str | None:
    """The note that tells a replay how the output looked before ADK's own shape.

    Of a credential the log is never shown, so the words of a refusal stand in the note.
    """
    if output.error_text is not None:
        return f"error {output.error_text}" if state.call.name == CREDENTIAL else "error"
    return None if isinstance(output.output, dict) else "result"


def _uri(output: ClientOutput) -> str | None:
    uri = output.output.get("authResponseUri") if isinstance(output.output, dict) else None
    return uri if isinstance(uri, str) and uri.startswith(("http://", "https://")) else None


def _filled(call_id: str, uri: str, events: Sequence[Event]) -> dict[str, Any]:
    """ADK's own auth config of that request with the address filled in."""
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
    """What ADK is told (A3): groups to append as user events, then the message to run with."""

    appended: Sequence[Sequence[Reply]]
    message: Sequence[Reply]


def delivery(exchange: RebuiltExchange, rows: Rows, outputs: Sequence[Reply]) -> Delivery | None:
    """Group the answers of an exchange by branch (A3); None when nothing is left to tell."""
    groups: dict[str | None, list[Reply]] = {}
    for state in exchange.gate.calls.values():
        if state.ask is None or not state.was_asked or state.outcome is not None:
            continue
        row = rows.get(state.ask.approval_id)
        confirmed = row is not None and (row.state == "approved" or row.state in EFFECTFUL)
        ask = state.ask
        reply = Reply(
            ask.confirmation_id,
            ask.answer_name,
            {"confirmed": confirmed},
            ask.branch,
            ask.invocation,
        )
        groups.setdefault(ask.branch, []).append(reply)
    others: dict[str | None, list[Reply]] = {}
    for output in outputs:
        others.setdefault(output.branch, []).append(output)
    ordered = [*others.values(), *groups.values()]
    if not ordered:
        return None
    return Delivery(ordered[:-1], ordered[-1])
