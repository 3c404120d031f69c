"""The operations of turns and probes, and the routes of all operations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.responses import Response
from starlette.routing import Route

from sluicegate.errors import (
    AlreadyDecided,
    HeldElsewhere,
    NotRewindable,
    RequestError,
    RequestTimeout,
    StoreError,
    Superseded,
    TooManyRequests,
    TurnRunning,
    Unavailable,
    Unknown,
    UnsupportedMediaType,
    WouldForgetEffect,
)
from sluicegate.server.authentication import identify
from sluicegate.server.operations import Operation, Parameter, Success
from sluicegate.server.schemas import ChatRequest

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from starlette.requests import Request

    from sluicegate.server.authentication import Authenticate
    from sluicegate.server.engine_holder import EngineHolder
    from sluicegate.server.operations import OpenEndpoint
    from sluicegate.server.user_limits import UserLimits
    from sluicegate.transports.sse import SseTransport

_STREAM: Final = Success(
    200, "A UI message stream (version 1), ended by `data: [DONE]`.", "text/event-stream", str
)
_CLIENT: Final = (
    Parameter(
        "x-ai-sdk",
        "header",
        {"enum": ["6", "7"], "type": "string", "default": "6"},
        "The major version of the client's AI SDK; chunks are valid under its schema.",
    ),
    Parameter(
        "x-release",
        "header",
        {"type": "string", "enum": ["deferred", "preview", "progressive"]},
        "When text and results are released while approvals are open.",
    ),
)
_NOT_READY: Final = "The server is not ready; try again."
_START_REFUSALS: Final = (
    RequestTimeout,
    UnsupportedMediaType,
    Unknown,
    TurnRunning,
    AlreadyDecided,
    Superseded,
    WouldForgetEffect,
    NotRewindable,
    HeldElsewhere,
    TooManyRequests,
)


def turn_operations(sse: SseTransport) -> list[Operation]:
    """Return the operations that send, resume and stop a turn."""
    return [
        Operation(
            "POST",
            "/chat",
            "Send a message or answers, and stream the turn.",
            (_STREAM,),
            endpoint=sse.send,
            body=ChatRequest,
            parameters=_CLIENT,
            refusals=_START_REFUSALS,
        ),
        Operation(
            "GET",
            "/chat/{id}/stream",
            "Resume: stream the running message from its beginning.",
            (_STREAM, Success(204, "Nothing runs.")),
            endpoint=sse.resume,
            parameters=_CLIENT,
            refusals=(Unknown,),
        ),
        Operation(
            "POST",
            "/chat/{id}/stop",
            "Stop the running turn.",
            (Success(204, "Stopped, or nothing ran."),),
            endpoint=sse.stop,
            refusals=(Unknown,),
        ),
    ]


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


def routes(
    operations: Iterable[Operation],
    *,
    prefix: str,
    authenticate: Authenticate,
    engine: EngineHolder,
    limits: UserLimits,
) -> list[Route]:
    """Return one route per path; other methods are answered with 405 and the header ``allow``."""
    endpoints: dict[str, dict[str, OpenEndpoint]] = {}
    for operation in operations:
        path = operation.path if operation.outside else prefix + operation.path
        methods = endpoints.setdefault(path, {})
        methods[operation.method] = _open_endpoint(operation, authenticate, engine, limits)
    return [_route(path, methods) for path, methods in endpoints.items()]


def _open_endpoint(
    operation: Operation, authenticate: Authenticate, engine: EngineHolder, limits: UserLimits
) -> OpenEndpoint:
    endpoint = operation.endpoint
    if endpoint is None:
        if operation.open_endpoint is None:
            raise ValueError(f"{operation.method} {operation.path} has no endpoint")
        return operation.open_endpoint

    async def authenticated(request: Request) -> Response:
        user = await identify(authenticate, request)
        limits.count_request(user)
        limits.hold_connection(request, user)
        return await endpoint(request, await engine.get(), user)

    return authenticated


def _route(path: str, methods: dict[str, OpenEndpoint]) -> Route:
    async def dispatch(request: Request) -> Response:
        return await methods[request.method](request)

    endpoint: Callable[[Request], Awaitable[Response]] = dispatch
    route = Route(path, endpoint, methods=list(methods))
    # A HEAD request would start the work of a GET and discard it.
    route.methods = set(methods)
    return route
