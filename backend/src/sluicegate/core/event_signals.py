"""Signals of ADK events that are not a model's words: requests, answers, outcomes and sources.

Rule: reading never raises, whatever a plugin or an agent of one's own put into the event.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sluicegate.core.events import (
    ABORTED,
    CONFIRMATION,
    CREDENTIAL,
    INPUT,
    NODE_CONFIRMATION,
    arguments_of,
    attribute,
    calls_of,
    code_of,
    media_in,
    notes_of,
    parts_of,
    response_parts,
    responses_of,
    text,
)
from sluicegate.core.json_values import json_safe
from sluicegate.core.release.base import NOT_FINISHED
from sluicegate.core.signals import (
    CallCompleted,
    Cited,
    ConfirmationAnswer,
    ConfirmationRequest,
    Item,
    Outcome,
    Progress,
    ResponseReceived,
)
from sluicegate.wire.files import UNKNOWN_TYPE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pydantic import JsonValue


def requests_in(event: object) -> Iterator[Item]:
    """What ADK asks the user for in an event: confirmations, credentials, approvals of nodes."""
    for call in calls_of(event):
        name, call_id = text(call, "name"), text(call, "id")
        if name == CONFIRMATION:
            yield _confirmation(call, event)
        elif name == CREDENTIAL:
            yield CallCompleted(call_id, name, _shown_credential(attribute(call, "args")))
        elif name == INPUT and call_id.startswith(NODE_CONFIRMATION):
            yield from _node_confirmation(call, event)


def _confirmation(call: object, event: object) -> ConfirmationRequest:
    args = attribute(call, "args")
    original = attribute(args, "originalFunctionCall")
    made = CallCompleted(text(original, "id"), text(original, "name"), arguments_of(original))
    asked = attribute(args, "toolConfirmation")
    return ConfirmationRequest(
        id=text(call, "id"),
        original=made,
        answer_name="adk_request_confirmation",
        hint=text(asked, "hint"),
        payload=json_safe(attribute(asked, "payload")),
        invocation=text(event, "invocation_id"),
    )


def _node_confirmation(call: object, event: object) -> Iterator[Item]:
    # ADK: the interrupt id of a node is the same in its next run, so it is no id for the wire.
    interrupt, invocation = text(call, "id"), text(event, "invocation_id")
    args = attribute(call, "args")
    payload = attribute(args, "payload")
    made = CallCompleted(
        interrupt,
        text(payload, "tool_name"),
        arguments_of(payload),
        kind="gated",
        wire_id=f"{invocation}:{interrupt}",
    )
    yield made
    yield ConfirmationRequest(
        id=interrupt,
        original=made,
        answer_name="adk_request_input",
        hint=text(args, "message"),
        payload=json_safe(attribute(payload, "confirmation_payload")),
        invocation=invocation,
    )


def _shown_credential(args: object) -> JsonValue:
    """What a page needs to open the provider's consent screen; nothing of the secrets beside it."""
    config = attribute(args, "authConfig")
    found = {
        "functionCallId": text(args, "functionCallId"),
        "authScheme": text(attribute(config, "authScheme"), "type"),
        "authUri": text(attribute(config, "exchangedAuthCredential", "oauth2"), "authUri"),
    }
    return {name: value for name, value in found.items() if value}


def answers_in(event: object, files_url: str) -> Iterator[Item]:
    """The function responses of an event, but for placeholders."""
    notes = attribute(notes_of(event), "outcomes")
    waiting = _waiting(event)
    aborted = code_of(event) == ABORTED
    for response in responses_of(event):
        name, call_id = text(response, "name"), text(response, "id")
        given = attribute(response, "response")
        if name == CONFIRMATION or (name == INPUT and call_id.startswith(NODE_CONFIRMATION)):
            # ADK: an abort seals open confirmations too; nobody has answered those.
            if not aborted:
                yield _verdict(call_id, given)
        elif call_id not in waiting:
            outcome = noted(notes, call_id)
            if outcome is None:
                outcome = NOT_FINISHED if aborted else Outcome("output", json_safe(given))
            found = (media_in(part, files_url) for part in response_parts(response))
            yield ResponseReceived(
                call_id,
                name,
                outcome,
                tuple(media for media in found if media is not None),
                by_user=text(event, "author") == "user" and not aborted,
            )


def _waiting(event: object) -> set[Any]:
    """Calls whose response in this event only says that they wait for the user (S2-R45)."""
    confirmations = attribute(event, "actions", "requested_tool_confirmations")
    credentials = attribute(event, "actions", "requested_auth_configs")
    return {*(confirmations or ()), *(credentials or ())}


def _verdict(call_id: str, given: object) -> ConfirmationAnswer:
    reason = text(attribute(given, "payload"), "reason")
    return ConfirmationAnswer(call_id, attribute(given, "confirmed") is True, reason or None)


def noted(notes: object, *names: str) -> Outcome | None:
    """The outcome the gate plugin noted under one of the names of a call."""
    for name in names:
        note = attribute(notes, name)
        kind = attribute(note, "kind")
        if kind in ("error", "denied"):
            return Outcome(kind, text=text(note, "text"))
    return None


def progress_in(event: object, names: Mapping[str, str]) -> Progress | None:
    """What a tool that still runs has to show; ``names`` are names of calls by id.

    ADK: a generator tool runs as a node whose path ends in ``<tool>@<call id>``, and an
    ``Event(message=…)`` it yields is its progress. A task agent has such a path too, but also an
    isolation scope; what it says is speech.
    """
    name, at, call_id = (
        text(attribute(event, "node_info"), "path").rpartition("/")[2].partition("@")
    )
    if not at or names.get(call_id) != name or attribute(event, "isolation_scope"):
        return None
    if text(event, "author") != name:
        return None
    said = [text(part, "text") for part in parts_of(event)]
    return Progress(call_id, "".join(said)) if any(said) else None


_MEDIA_TYPES: Final = {
    "csv": "text/csv",
    "doc": "application/msword",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "html": "text/html",
    "json": "application/json",
    "md": "text/markdown",
    "pdf": "application/pdf",
    "txt": "text/plain",
}
_KINDS: Final = ("web", "maps", "retrieved_context", "image")


def cited_in(event: object) -> list[Cited]:
    """Sources of ``grounding_metadata`` and ``citation_metadata``, in order, each with its URI."""
    return [*_grounding(event), *_citations(event)]


def _grounding(event: object) -> Iterator[Cited]:
    for chunk in _list(attribute(event, "grounding_metadata", "grounding_chunks")):
        for kind in _KINDS:
            source = attribute(chunk, kind)
            uri = text(source, "uri") or text(source, "source_uri")
            if uri:
                yield _cited(uri, text(source, "title"))


def _citations(event: object) -> Iterator[Cited]:
    for citation in _list(attribute(event, "citation_metadata", "citations")):
        if text(citation, "uri"):
            yield _cited(text(citation, "uri"), text(citation, "title"))


def _cited(uri: str, title: str) -> Cited:
    """A web address is a page; what only a cloud can open (``gs://``) is a document."""
    if uri.startswith(("https://", "http://")):
        return Cited(uri, title)
    name = uri.rstrip("/").rpartition("/")[2]
    media_type = _MEDIA_TYPES.get(name.rpartition(".")[2].lower(), UNKNOWN_TYPE)
    return Cited(uri, title or name or uri, media_type)


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []
