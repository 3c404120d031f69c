"""Signals of ADK events beside model responses: requests, answers, outcomes and progress.

Rule: reading never raises, for any content that a plugin or a custom agent put into the event.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from sluicegate.core.event_reading import (
    ABORTED,
    CONFIRMATION,
    CREDENTIAL,
    INPUT,
    NODE_CONFIRMATION,
    adk_calls_of,
    arguments_of,
    attribute,
    code_of,
    media_in,
    notes_of,
    parts_of,
    recorded_outcome,
    response_parts,
    responses_of,
    text,
)
from sluicegate.core.json_values import json_safe
from sluicegate.core.signals import (
    NOT_FINISHED,
    Answered,
    ApprovalRequest,
    ApprovalRequested,
    Call,
    InputAvailable,
    Outcome,
    ReadSignal,
    Settled,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pydantic import JsonValue


def requests_in(event: object) -> Iterator[ReadSignal]:
    """ADK's requests to the user in an event: confirmations, credentials, approvals of nodes.

    Calls of these names that a model makes are no requests.
    """
    for call in adk_calls_of(event):
        name, call_id = text(call, "name"), text(call, "id")
        if name == CONFIRMATION:
            yield _confirmation(call, event)
        elif name == CREDENTIAL:
            yield InputAvailable(Call(call_id, name, _shown_credential(attribute(call, "args"))))
        elif name == INPUT and call_id.startswith(NODE_CONFIRMATION):
            yield from _node_confirmation(call, event)


def _confirmation(call: object, event: object) -> ApprovalRequested:
    args = attribute(call, "args")
    original = attribute(args, "originalFunctionCall")
    confirmation = attribute(args, "toolConfirmation")
    return ApprovalRequested(
        _request(
            event,
            call_id=text(original, "id"),
            confirmation_id=text(call, "id"),
            answer_name="adk_request_confirmation",
            hint=text(confirmation, "hint"),
            payload=attribute(confirmation, "payload"),
        ),
        Call(text(original, "id"), text(original, "name"), arguments_of(original)),
    )


def _node_confirmation(call: object, event: object) -> Iterator[ReadSignal]:
    # ADK: the interrupt id of a node is the same in its next run, so it is no id for the wire.
    interrupt = text(call, "id")
    args = attribute(call, "args")
    payload = attribute(args, "payload")
    node_call = Call(
        f"{text(event, 'invocation_id')}:{interrupt}",
        text(payload, "tool_name"),
        arguments_of(payload),
        adk_id=interrupt,
    )
    yield InputAvailable(node_call)
    yield ApprovalRequested(
        _request(
            event,
            call_id=interrupt,
            confirmation_id=interrupt,
            answer_name="adk_request_input",
            hint=text(args, "message"),
            payload=attribute(payload, "confirmation_payload"),
        ),
        node_call,
    )


def _request(
    event: object,
    *,
    call_id: str,
    confirmation_id: str,
    answer_name: Literal["adk_request_confirmation", "adk_request_input"],
    hint: str,
    payload: object,
) -> ApprovalRequest:
    card = attribute(notes_of(event), "cards", call_id)
    arguments, defaults = attribute(card, "arguments"), attribute(card, "defaults")
    schema, covered = attribute(card, "schema"), attribute(card, "payload")
    return ApprovalRequest(
        approval_id=confirmation_id,
        call_id=call_id,
        confirmation_id=confirmation_id,
        answer_name=answer_name,
        hint=hint,
        payload=json_safe(payload if covered is None else covered),
        branch=None,
        invocation=text(event, "invocation_id"),
        arguments=arguments if isinstance(arguments, dict) else None,
        defaults=defaults if isinstance(defaults, dict) else None,
        schema=schema if isinstance(schema, dict) else None,
        covers_payload=covered is not None,
    )


def _shown_credential(args: object) -> JsonValue:
    """What a page needs to open the provider's consent screen, without the secrets."""
    config = attribute(args, "authConfig")
    shown = {
        "functionCallId": text(args, "functionCallId"),
        "authScheme": text(attribute(config, "authScheme"), "type"),
        "authUri": text(attribute(config, "exchangedAuthCredential", "oauth2"), "authUri"),
    }
    return {name: value for name, value in shown.items() if value}


def answers_in(event: object, files_url: str) -> Iterator[ReadSignal]:
    """The function responses of an event, except placeholders."""
    placeholders = _placeholders(event)
    aborted = code_of(event) == ABORTED
    for response in responses_of(event):
        name, call_id = text(response, "name"), text(response, "id")
        value = attribute(response, "response")
        if name == CONFIRMATION or (name == INPUT and call_id.startswith(NODE_CONFIRMATION)):
            # ADK: an abort also writes responses to open confirmations; they are no answers.
            if not aborted:
                yield _decision(call_id, value)
        elif call_id not in placeholders:
            outcome = recorded_outcome(event, call_id)
            if outcome is None:
                outcome = NOT_FINISHED if aborted else Outcome("output", json_safe(value))
            files = (media_in(part, files_url) for part in response_parts(response))
            yield Settled(
                call_id,
                outcome,
                files=tuple(file for file in files if file is not None),
                by_user=text(event, "author") == "user" and not aborted,
            )


def _placeholders(event: object) -> set[Any]:
    """Calls whose response in this event only says that they wait for the user (S2-R45)."""
    confirmations = attribute(event, "actions", "requested_tool_confirmations")
    credentials = attribute(event, "actions", "requested_auth_configs")
    return {*(confirmations or ()), *(credentials or ())}


def _decision(confirmation_id: str, response: object) -> Answered:
    approved = attribute(response, "confirmed") is True
    # The payload of an approval is for the tool.
    reason = "" if approved else text(attribute(response, "payload"), "reason")
    return Answered("", confirmation_id, approved, reason or None)


def progress_in(event: object, call_names: Mapping[str, str]) -> Settled | None:
    """The progress of a running tool; ``call_names`` are the names of calls by id.

    ADK: a generator tool runs as a node whose path ends in ``<tool>@<call id>``, and an
    ``Event(message=…)`` it yields is its progress. A task agent has such a path too, but also an
    isolation scope; its text belongs to the answer.
    """
    path = text(attribute(event, "node_info"), "path")
    name, at, call_id = path.rpartition("/")[2].partition("@")
    if not at or call_names.get(call_id) != name or attribute(event, "isolation_scope"):
        return None
    if text(event, "author") != name:
        return None
    output = "".join(text(part, "text") for part in parts_of(event))
    return Settled(call_id, Outcome("output", output), preliminary=True) if output else None
