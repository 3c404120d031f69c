"""The operations of liveness and readiness probes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.responses import Response

from sluicegate.errors import RequestError, StoreError, Unavailable
from sluicegate.server.authentication import identify
from sluicegate.server.operation_types import Operation, Success

if TYPE_CHECKING:
    from starlette.requests import Request

    from sluicegate.server.authentication import Authenticate
    from sluicegate.server.engine_holder import EngineHolder

_NOT_READY: Final = "The server is not ready; try again."


def probe_operations(engine: EngineHolder, authenticate: Authenticate) -> list[Operation]:
    """Return the operations of liveness and readiness probes.

    Whether the server is ready is public; the reason and the notes are for users.
    """

    async def healthz(_: Request) -> Response:
        return Response("ok\n", media_type="text/plain")

    async def readyz(request: Request) -> Response:
        try:
            notes = await (await engine.get()).ready()
        except Unavailable as error:
            if await _is_user(authenticate, request):
                raise
            raise Unavailable(_NOT_READY, retry_after=error.retry_after) from error
        lines = ["ok"]
        if notes and await _is_user(authenticate, request):
            lines += [f"note: {note}" for note in notes]
        return Response("".join(f"{line}\n" for line in lines), media_type="text/plain")

    ok = (Success(200, "It is.", "text/plain", str),)
    return [
        Operation(
            "GET", "/healthz", "Is the process alive?", ok, open_endpoint=healthz, outside=True
        ),
        Operation(
            "GET",
            "/readyz",
            "Can it answer chats?",
            ok,
            open_endpoint=readyz,
            refusals=(Unavailable,),
            outside=True,
        ),
    ]


async def _is_user(authenticate: Authenticate, request: Request) -> bool:
    try:
        await identify(authenticate, request)
    except (RequestError, StoreError):
        # Without the database, a session in a cookie cannot be looked up.
        return False
    return True
