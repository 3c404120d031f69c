"""What JSON Schema cannot say of a valid request: Schemathesis sends these requests repaired.

The requests that break the schema are sent as they are generated.
"""

from __future__ import annotations

import os
from typing import Any, TypeAlias

import schemathesis

Case: TypeAlias = schemathesis.Case[Any]

_FILE = "data:text/plain;base64,aGVsbG8="
_USER = {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "Hi"}]}
_waiting = iter(os.environ["WAITING_APPROVALS"].split())


@schemathesis.hook
def before_call(_context: schemathesis.HookContext, case: Case, **_: Any) -> None:
    if case.path == "/api/chats/{id}/files" and case.method == "POST":
        # A file's content belongs to its type; Schemathesis fails to read one that is no YAML.
        case.media_type, case.body = "text/plain", b"hello"
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return
    # Bodies may have further members of any value, but JavaScript reads no larger number exactly.
    body: Any = _with_exact_numbers(case.body)
    case.body = body
    match case.method, case.path:
        case "POST", "/api/chat":
            _repair_chat_request(body)
        case "POST", "/api/approvals/{approvalId}":
            # Of other approvals than these the body is not read.
            case.path_parameters = {"approvalId": next(_waiting, "unknown")}
            _repair_decision(body)


def _with_exact_numbers(value: Any) -> Any:
    match value:
        case dict():
            return {name: _with_exact_numbers(item) for name, item in value.items()}
        case list():
            return [_with_exact_numbers(item) for item in value]
        case int() if abs(value) >= 2**53:
            return 2**53 - 1
    return value


def _repair_chat_request(body: dict[str, Any]) -> None:
    message: Any = body.get("message")
    if "messages" in body:
        # Only the last message is read, and JSON Schema has no last item.
        message = body["messages"][-1]
        if not {"id", "role", "parts"} <= message.keys():
            body["messages"].append(_USER)
            return
    for part in message["parts"] if message["role"] == "user" else ():
        if part["type"] == "file":
            # A URL names the chat, and the content of a data URL belongs to the type.
            part.update(url=_FILE, mediaType="text/plain")


def _repair_decision(body: dict[str, Any]) -> None:
    # An answer needs the schema of the tool.
    body.pop("response", None)
    # The tool has these arguments and this payload, and any JSON in a place of each.
    if body.get("edits") is not None:
        body["edits"] = {"amount": 5, "note": body["edits"]}
    if body.get("payload") is not None:
        body["payload"] = {"note": body["payload"]}
    scope = body.get("remember")
    if isinstance(scope, dict):
        if scope.get("where"):
            scope["where"] = ["amount"]
        if scope.get("ttl") is not None:
            scope["ttl"] = 60
