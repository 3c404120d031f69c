"""Operations on approvals: list open requests, record a decision, list and revoke grants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.responses import Response

from sluicegate.errors import (
    AlreadyDecided,
    Changed,
    HeldElsewhere,
    Malformed,
    NotEntitled,
    RequestTimeout,
    Superseded,
    TooManyRequests,
    Unknown,
    UnsupportedMediaType,
)
from sluicegate.server.approval_schemas import Approval, ApprovalPage, Decision, Grants
from sluicegate.server.chats import LIMIT_SCHEMA, limit_of, text_of
from sluicegate.server.operations import Operation, Parameter, Success
from sluicegate.server.responses import json_response
from sluicegate.server.schemas import printable
from sluicegate.transports.http_requests import chat_id, read_json
from sluicegate.wire.posted_assistant_message import is_call_id

if TYPE_CHECKING:
    from starlette.requests import Request

    from sluicegate.engine.interface import Engine
    from sluicegate.transports.http_requests import BodyLimits

VIA: Final = "http"
"""The name of these endpoints in the audit trail."""

_MAX_CURSOR: Final = 2_000
_CURSOR_SCHEMA: Final = printable(_MAX_CURSOR)
_MAX_NAME: Final = 256
# The id of an approval of a workflow contains slashes.
_APPROVAL_PATH: Final = "/approvals/{approvalId:path}"


def approval_operations(body: BodyLimits) -> list[Operation]:
    """Return the operations on approvals."""

    async def decide(request: Request, engine: Engine, user: str) -> Response:
        approval_id = _approval_id(request)
        decision = await read_json(request, body, user=user)
        if not isinstance(decision, dict):
            raise Malformed("The body is not a JSON object; send approved and maybe a reason.")
        approval = await engine.approvals.decide(approval_id, decision, user=user, via=VIA)
        return json_response(approval, status=202)

    return [
        Operation(
            "GET",
            "/approvals",
            "List all of the user's approvals that wait, newest first.",
            (Success(200, "One page of the list.", "application/json", ApprovalPage),),
            endpoint=_waiting,
            parameters=(
                Parameter("limit", "query", LIMIT_SCHEMA, "Approvals on the page."),
                Parameter("after", "query", _CURSOR_SCHEMA, "The `next` of the page before."),
            ),
            refusals=(Unknown,),
        ),
        Operation(
            "GET",
            _APPROVAL_PATH,
            "Load an approval.",
            (Success(200, "The approval.", "application/json", Approval),),
            endpoint=_approval,
            refusals=(Unknown,),
        ),
        Operation(
            "POST",
            _APPROVAL_PATH,
            "Answer an approval from anywhere; the turn goes on by itself.",
            (Success(202, "Recorded; the approval as it is now.", "application/json", Approval),),
            endpoint=decide,
            body=Decision,
            refusals=(
                RequestTimeout,
                UnsupportedMediaType,
                Unknown,
                NotEntitled,
                AlreadyDecided,
                Changed,
                Superseded,
                HeldElsewhere,
                TooManyRequests,
            ),
        ),
        Operation(
            "GET",
            "/chats/{id}/grants",
            "List the grants of a chat: decisions that approve later calls too.",
            (Success(200, "The grants that have not expired.", "application/json", Grants),),
            endpoint=_grants,
            refusals=(Unknown,),
        ),
        Operation(
            "DELETE",
            "/chats/{id}/grants/{grantId}",
            "Revoke a grant.",
            (Success(204, "The next call that it covered asks."),),
            endpoint=_revoke,
            refusals=(Unknown,),
        ),
    ]


async def _waiting(request: Request, engine: Engine, user: str) -> Response:
    after = text_of(request, "after", max_characters=_MAX_CURSOR)
    page = await engine.approvals.waiting(user=user, limit=limit_of(request), after=after)
    return json_response(page)


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
    grant = str(request.path_params["grantId"])
    if len(grant) > _MAX_NAME or not grant.isprintable():
        raise Unknown
    await engine.approvals.revoke(chat_id(request), grant, user=user, via=VIA)
    return Response(status_code=204)
