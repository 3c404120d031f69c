"""The endpoints of approvals: what a chat remembers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from starlette.responses import Response

from sluicegate.errors import Unknown
from sluicegate.server.answers import json_answer
from sluicegate.server.operations import Operation, Success
from sluicegate.transports.incoming import chat_id

if TYPE_CHECKING:
    from starlette.requests import Request

    from sluicegate.engine.chat_engine import ChatEngine

VIA: Final = "http"
"""What stands in the audit trail for a decision made at one of these addresses."""

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


def approval_operations() -> list[Operation]:
    """Return the operations on approvals."""
    return [
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


async def _grants(request: Request, engine: ChatEngine, user: str) -> Response:
    return json_answer(await engine.approvals.grants(chat_id(request), user=user))


async def _revoke(request: Request, engine: ChatEngine, user: str) -> Response:
    tool = str(request.path_params["tool"])
    if len(tool) > _MAX_NAME or not tool.isprintable():
        raise Unknown
    await engine.approvals.revoke(chat_id(request), tool, user=user, via=VIA)
    return Response(status_code=204)
