"""The endpoints of approvals: what waits, the answer from elsewhere, what a chat remembers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from starlette.responses import Response

from sluicegate.core.approvals import TRANSITIONS
from sluicegate.errors import (
    AlreadyDecided,
    HeldElsewhere,
    Malformed,
    RequestTimeout,
    Superseded,
    TooManyRequests,
    Unknown,
    UnsupportedMediaType,
)
from sluicegate.server.chats import LIMIT_SCHEMA, limit_in, text_in
from sluicegate.server.operations import Operation, Parameter, Success
from sluicegate.server.responses import json_response
from sluicegate.transports.http_requests import chat_id, read_json
from sluicegate.wire.decisions import is_call_id

if TYPE_CHECKING:
    from starlette.requests import Request

    from sluicegate.engine.engine import Engine
    from sluicegate.transports.http_requests import BodyLimits

VIA: Final = "http"
"""What stands in the audit trail for a decision made at one of these addresses."""

_MAX_CURSOR: Final = 2_000
_MAX_NAME: Final = 256
_TEXT: Final[dict[str, Any]] = {"type": "string"}
_GRANTS: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "grants": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"tool": _TEXT, "approvalId": _TEXT, "grantedAt": _TEXT},
                "required": ["tool", "approvalId", "grantedAt"],
            },
        },
    },
    "required": ["grants"],
}


_APPROVAL: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "approvalId": _TEXT,
        "chatId": _TEXT,
        "tool": _TEXT,
        "arguments": {"type": "object"},
        "state": {"type": "string", "enum": list(TRANSITIONS)},
        "requestedAt": _TEXT,
        "expiresAt": _TEXT,
        "editable": {"type": "boolean"},
        "rememberable": {"type": "boolean"},
        "hint": _TEXT,
        "schema": {"type": "object"},
        "approved": {"type": "boolean"},
        "reason": _TEXT,
        "edits": {"type": "object"},
        "decidedBy": _TEXT,
        "decidedAt": _TEXT,
    },
    "required": ["approvalId", "chatId", "tool", "state", "requestedAt", "expiresAt"],
}
_WAITING: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "approvals": {"type": "array", "items": _APPROVAL},
        "next": {"type": ["string", "null"]},
    },
    "required": ["approvals", "next"],
}
_ANSWER: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "approved": {"type": "boolean"},
        "reason": _TEXT,
        "edits": {"type": "object", "description": "Arguments to run with in place of the first."},
        "remember": {"type": "string", "enum": ["chat"]},
    },
    "required": ["approved"],
}


def approval_operations(body: BodyLimits) -> list[Operation]:
    """Return the operations on approvals."""

    async def decide(request: Request, engine: Engine, user: str) -> Response:
        approval_id = _approval_id(request)
        said = await read_json(request, body)
        if not isinstance(said, dict):
            raise Malformed("The body is not a JSON object; send approved and maybe a reason.")
        shown = await engine.approvals.decide(approval_id, said, user=user, via=VIA)
        return json_response(shown, status=202)

    return [
        Operation(
            "GET",
            "/approvals",
            "List all of the user's approvals that wait, newest first.",
            (Success(200, "One page of the list.", "application/json", _WAITING),),
            endpoint=_waiting,
            parameters=(
                Parameter("limit", "query", LIMIT_SCHEMA, "Approvals on the page."),
                Parameter("after", "query", _TEXT, "The `next` of the page before."),
            ),
        ),
        Operation(
            "GET",
            "/approvals/{approvalId}",
            "Load an approval.",
            (Success(200, "The approval.", "application/json", _APPROVAL),),
            endpoint=_approval,
            refusals=(Unknown,),
        ),
        Operation(
            "POST",
            "/approvals/{approvalId}",
            "Answer an approval from anywhere; the turn goes on by itself.",
            (Success(202, "Recorded; the approval as it is now.", "application/json", _APPROVAL),),
            endpoint=decide,
            body=_ANSWER,
            refusals=(
                RequestTimeout,
                UnsupportedMediaType,
                Unknown,
                AlreadyDecided,
                Superseded,
                HeldElsewhere,
                TooManyRequests,
            ),
        ),
        Operation(
            "GET",
            "/chats/{id}/grants",
            "List the tools whose approval a chat remembers.",
            (Success(200, "The remembered approvals.", "application/json", _GRANTS),),
            endpoint=_grants,
            refusals=(Unknown,),
        ),
        Operation(
            "DELETE",
            "/chats/{id}/grants/{tool}",
            "Let a tool ask again.",
            (Success(204, "Its next call asks."),),
            endpoint=_revoke,
            refusals=(Unknown,),
        ),
    ]


async def _waiting(request: Request, engine: Engine, user: str) -> Response:
    return json_response(
        await engine.approvals.waiting(
            user=user, limit=limit_in(request), after=text_in(request, "after", most=_MAX_CURSOR)
        )
    )


async def _approval(request: Request, engine: Engine, user: str) -> Response:
    return json_response(await engine.approvals.get(_approval_id(request), user=user))


def _approval_id(request: Request) -> str:
    approval_id = str(request.path_params["approvalId"])
    if not is_call_id(approval_id):
        raise Unknown
    return approval_id


async def _grants(request: Request, engine: Engine, user: str) -> Response:
    return json_response(await engine.approvals.grants(chat_id(request), user=user))


async def _revoke(request: Request, engine: Engine, user: str) -> Response:
    tool = str(request.path_params["tool"])
    if len(tool) > _MAX_NAME or not tool.isprintable():
        raise Unknown
    await engine.approvals.revoke(chat_id(request), tool, user=user, via=VIA)
    return Response(status_code=204)
