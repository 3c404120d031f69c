"""What a browser sends for a client-side call, as ADK gets it and as the message shows it.

Credentials are the exception: the server keeps the auth config, and of the page only the address
that the provider sent the user back to is read.
"""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

from sluicegate.core.event_parts import CREDENTIAL
from sluicegate.core.signals import Outcome
from sluicegate.errors import Malformed
from sluicegate.wire.limits import check_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from google.adk.events.event import Event

    from sluicegate.core.call_state import CallState
    from sluicegate.wire.limits import RequestLimits
    from sluicegate.wire.requests import ClientOutput

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
