"""Operations that begin, describe and end a session in a cookie."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import Response

from sluicegate.server.authentication import Authenticate, bearer_token, local_user
from sluicegate.server.cookie_authentication import CookieAuthentication
from sluicegate.server.demo_users import DemoUsers
from sluicegate.server.operation_types import Operation, Success
from sluicegate.server.responses import json_response
from sluicegate.server.schemas import Session
from sluicegate.server.session_cookie import (
    MAX_AGE,
    accepted_session_id,
    session_cookie_header,
    session_id_of,
)

if TYPE_CHECKING:
    from starlette.requests import Request

    from sluicegate.engine.interface import Engine


def session_operations(authenticate: Authenticate) -> list[Operation]:
    """Return the operations that begin, describe and end a session."""
    cookies = authenticate if isinstance(authenticate, CookieAuthentication) else None
    others: dict[str, list[str]] = {}
    if isinstance(authenticate, DemoUsers):
        others = {"demoUsers": [user.id for user in authenticate.users]}

    async def sign_in(request: Request, _engine: Engine, user: str) -> Response:
        response = Response(status_code=204, headers={"cache-control": "no-store"})
        token = bearer_token(request.headers.getlist("authorization"))
        if token is None or cookies is None:
            # A user who is authenticated without a token needs no cookie.
            return response
        before = session_id_of(request)
        if before is not None:
            # Each sign-in has an id of its own, so one that was planted or copied before ends.
            await cookies.end(before)
        session_id = await cookies.begin(user, token)
        response.headers.append(
            "set-cookie", session_cookie_header(request, session_id, max_age=MAX_AGE)
        )
        return response

    async def sign_out(request: Request) -> Response:
        # The token may have expired, so nothing but the cookie is checked.
        session_id = session_id_of(request)
        if session_id is not None and cookies is not None:
            await cookies.end(session_id)
        response = Response(status_code=204, headers={"cache-control": "no-store"})
        response.headers.append("set-cookie", session_cookie_header(request, "", max_age=0))
        return response

    async def describe(request: Request, _engine: Engine, user: str) -> Response:
        response = json_response(
            {
                "user": None if authenticate is local_user else user,
                "canSignOut": cookies is not None and accepted_session_id(request) is not None,
                **others,
            }
        )
        response.headers["cache-control"] = "no-store"
        return response

    return [
        Operation(
            "GET",
            "/session",
            "Describe the user of the request.",
            (Success(200, "The user.", "application/json", Session),),
            endpoint=describe,
        ),
        Operation(
            "POST",
            "/session",
            "Begin a session with the bearer token, for sockets and images.",
            (Success(204, "Begun, with a new id in a cookie; without a token there is none."),),
            endpoint=sign_in,
        ),
        Operation(
            "DELETE",
            "/session",
            "End the session of the cookie.",
            (Success(204, "Ended."),),
            open_endpoint=sign_out,
        ),
    ]
