"""Operations on approvals: list, decide, resolve unknown outcomes, list and revoke grants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from starlette.responses import Response

from sluicegate.errors import (
    AlreadyDecided,
    Changed,
    HeldByAnotherOwner,
    Malformed,
    NoPreview,
    NotEntitled,
    NotIdempotent,
    RequestTimeout,
    Superseded,
    TooManyRequests,
    Unknown,
    UnsupportedMediaType,
)
from sluicegate.server.approval_schemas import (
    Approval,
    ApprovalPage,
    Decision,
    Grants,
    Resolution,
)
from sluicegate.server.operation_types import BINARY, Operation, Parameter, Success
from sluicegate.server.query_parameters import LIMIT_SCHEMA, limit_of, text_of
from sluicegate.server.responses import json_response
from sluicegate.server.schemas import one_line
from sluicegate.stores.approvals.inbox import ApprovalFilter
from sluicegate.transports.http_requests import chat_id, read_json
from sluicegate.wire.ids import is_call_id

if TYPE_CHECKING:
    from starlette.requests import Request

    from sluicegate.engine.interface import Engine
    from sluicegate.transports.http_requests import BodyLimits

VIA: Final = "http"
"""The name of these endpoints in the audit trail."""

_MAX_CURSOR: Final = 2_000
_CURSOR_SCHEMA: Final = one_line(_MAX_CURSOR)
_MAX_NAME: Final = 256
_NAME_SCHEMA: Final = one_line(_MAX_NAME)
_MAX_AGE: Final = 999_999_999
_AGE_SCHEMA: Final[dict[str, Any]] = {"type": "integer", "minimum": 0, "maximum": _MAX_AGE}
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

    async def resolve(request: Request, engine: Engine, user: str) -> Response:
        approval_id = _approval_id(request)
        said = await read_json(request, body, user=user)
        if not isinstance(said, dict):
            raise Malformed("The body is not a JSON object; send outcome and reason.")
        approval = await engine.approvals.resolve(approval_id, said, user=user, via=VIA)
        return json_response(approval)

    return [
        Operation(
            "GET",
            "/approvals",
            "List the approvals of all chats that wait for the user, or whose outcome is unknown, "
            "newest first.",
            (Success(200, "One page of the list.", "application/json", ApprovalPage),),
            endpoint=_list,
            parameters=(
                Parameter(
                    "state",
                    "query",
                    {"type": "string", "enum": ["waiting", "unknown"], "default": "waiting"},
                    "What is listed.",
                ),
                Parameter("tool", "query", _NAME_SCHEMA, "The name of the tool."),
                Parameter("agent", "query", _NAME_SCHEMA, "The path of the agent."),
                Parameter("olderThan", "query", _AGE_SCHEMA, "Seconds since the request."),
                Parameter("limit", "query", LIMIT_SCHEMA, "Approvals on the page."),
                Parameter("after", "query", _CURSOR_SCHEMA, "The `next` of the page before."),
            ),
            refusals=(Unknown,),
        ),
        # Before the path of an approval, whose id may contain slashes.
        Operation(
            "POST",
            f"{_APPROVAL_PATH}/resolution",
            "Resolve an unknown outcome after a check of what happened.",
            (Success(200, "Recorded; the approval as it is now.", "application/json", Approval),),
            endpoint=resolve,
            body=Resolution,
            refusals=(
                RequestTimeout,
                UnsupportedMediaType,
                NotEntitled,
                Unknown,
                AlreadyDecided,
                NotIdempotent,
                HeldByAnotherOwner,
            ),
        ),
        Operation(
            "GET",
            "/previews/{approvalId:path}",
            "Load the picture that the preview of an approval shows.",
            (Success(200, "The picture.", "image/*", BINARY),),
            endpoint=_preview_image,
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
                NoPreview,
                Superseded,
                HeldByAnotherOwner,
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


async def _list(request: Request, engine: Engine, user: str) -> Response:
    state = request.query_params.get("state", "waiting")
    if state not in ("waiting", "unknown"):
        raise Malformed("The parameter state must be waiting or unknown.")
    approvals = engine.approvals
    listed = approvals.unknown_outcomes if state == "unknown" else approvals.waiting
    page = await listed(
        user=user,
        selection=ApprovalFilter(
            tool=text_of(request, "tool"),
            agent=text_of(request, "agent"),
            older_than=_age_of(request),
        ),
        limit=limit_of(request),
        after=text_of(request, "after", max_characters=_MAX_CURSOR),
    )
    return json_response(page)


def _age_of(request: Request) -> float | None:
    text = request.query_params.get("olderThan")
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(_MAX_AGE))):
        raise Malformed(f"The parameter olderThan must be seconds from 0 to {_MAX_AGE}.")
    return float(text)


async def _approval(request: Request, engine: Engine, user: str) -> Response:
    return json_response(await engine.approvals.get(_approval_id(request), user=user))


async def _preview_image(request: Request, engine: Engine, user: str) -> Response:
    data, media_type = await engine.approvals.preview_image(_approval_id(request), user=user)
    headers = {"cache-control": "private, no-cache", "x-content-type-options": "nosniff"}
    return Response(data, headers=headers, media_type=media_type)


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
