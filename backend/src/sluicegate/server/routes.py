"""The table of operations, and the routes made from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from starlette.responses import Response
from starlette.routing import Route

from sluicegate.errors import (
    AlreadyDecided,
    HeldElsewhere,
    NotRewindable,
    RequestTimeout,
    Superseded,
    TooManyRequests,
    TurnRunning,
    Unavailable,
    Unknown,
    UnsupportedMediaType,
    WouldForgetEffect,
)
from sluicegate.server.authentication import identify
from sluicegate.server.chats import LIMIT_SCHEMA, MAX_TITLE
from sluicegate.server.operations import Operation, Parameter, Success

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from starlette.requests import Request

    from sluicegate.server.app import EngineHolder
    from sluicegate.server.authentication import Authenticate
    from sluicegate.server.chats import StoredChats
    from sluicegate.server.operations import OpenEndpoint
    from sluicegate.transports.sse import SseTransport

_TEXT: Final[dict[str, Any]] = {"type": "string"}
_MESSAGE: Final[dict[str, Any]] = {
    "type": "object",
    "description": "A UIMessage of the AI SDK.",
    "properties": {
        "id": _TEXT,
        "role": {"type": "string", "enum": ["system", "user", "assistant"]},
        "metadata": {"type": "object"},
        "parts": {"type": "array", "items": {"type": "object"}},
    },
    "required": ["id", "role", "parts"],
}
_CHAT_REQUEST: Final[dict[str, Any]] = {
    "type": "object",
    "description": "The body of DefaultChatTransport, or `message` with the last message only.",
    "properties": {
        "id": {"type": "string", "pattern": "^[A-Za-z0-9._:-]{1,128}$"},
        "messages": {"type": "array", "items": _MESSAGE},
        "message": _MESSAGE,
        "trigger": {"type": "string", "enum": ["submit-message", "regenerate-message"]},
        "messageId": _TEXT,
        "tools": {
            "type": "object",
            "description": "Tools of the page, by names that the setting page_tools lists.",
            "additionalProperties": {
                "type": "object",
                "properties": {"description": _TEXT, "parameters": {"type": "object"}},
                "required": ["description", "parameters"],
            },
        },
    },
    "required": ["id"],
}
_CHAT: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "id": _TEXT,
        "title": _TEXT,
        "messages": {"type": "array", "items": _MESSAGE},
        "status": {"type": "string", "enum": ["ready", "running", "waiting"]},
    },
    "required": ["id", "title", "messages", "status"],
}
_CHATS: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "chats": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "id": _TEXT,
                    "title": _TEXT,
                    "updatedAt": _TEXT,
                    "pendingApprovals": {"type": "integer"},
                },
                "required": ["id", "title", "updatedAt", "pendingApprovals"],
            },
        },
        "next": {"type": ["string", "null"]},
    },
    "required": ["chats", "next"],
}
_TITLE: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"title": {"type": "string", "minLength": 1, "maxLength": MAX_TITLE}},
    "required": ["title"],
}
_STREAM: Final = Success(
    200, "A UI message stream (version 1), ended by `data: [DONE]`.", "text/event-stream", _TEXT
)
_CLIENT: Final = (
    Parameter(
        "x-ai-sdk",
        "header",
        {"type": "string", "enum": ["6", "7"], "default": "6"},
        "The major version of the client's AI SDK; chunks are valid under its schema.",
    ),
    Parameter(
        "x-release",
        "header",
        {"type": "string", "enum": ["deferred", "preview", "progressive"]},
        "When text and results are released while approvals are open.",
    ),
)
_BODY: Final = (RequestTimeout, UnsupportedMediaType)
_DECISIONS: Final = (
    Unknown,
    TurnRunning,
    AlreadyDecided,
    Superseded,
    WouldForgetEffect,
    NotRewindable,
    HeldElsewhere,
    TooManyRequests,
)


def chat_operations(sse: SseTransport) -> list[Operation]:
    """Return the operations that send, resume and stop a turn."""
    return [
        Operation(
            "POST",
            "/chat",
            "Send a message or answers, and stream the turn.",
            (_STREAM,),
            endpoint=sse.send,
            body=_CHAT_REQUEST,
            parameters=_CLIENT,
            refusals=(*_BODY, *_DECISIONS),
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


def stored_operations(chats: StoredChats) -> list[Operation]:
    """Return the operations on stored chats."""
    return [
        Operation(
            "GET",
            "/chats",
            "List the chats, newest first.",
            (Success(200, "One page of the list.", "application/json", _CHATS),),
            endpoint=chats.list_chats,
            parameters=(
                Parameter(
                    "limit",
                    "query",
                    LIMIT_SCHEMA,
                    "Chats on the page.",
                ),
                Parameter("after", "query", _TEXT, "The `next` of the page before."),
                Parameter("q", "query", _TEXT, "Text that the titles contain."),
            ),
        ),
        Operation(
            "GET",
            "/chats/{id}",
            "Load a chat.",
            (Success(200, "The chat with its messages.", "application/json", _CHAT),),
            endpoint=chats.get_chat,
            refusals=(Unknown,),
        ),
        Operation(
            "PATCH",
            "/chats/{id}",
            "Give a chat another title.",
            (Success(204, "Renamed."),),
            endpoint=chats.rename_chat,
            body=_TITLE,
            refusals=(*_BODY, Unknown),
        ),
        Operation(
            "DELETE",
            "/chats/{id}",
            "Delete a chat.",
            (Success(204, "Deleted."),),
            endpoint=chats.delete_chat,
            refusals=(Unknown, TurnRunning),
        ),
    ]


def probe_operations(engine: EngineHolder) -> list[Operation]:
    """Return what a supervisor asks."""

    async def healthz(_: Request) -> Response:
        return Response("ok\n", media_type="text/plain")

    async def readyz(_: Request) -> Response:
        notes = await (await engine.get()).ready()
        lines = ["ok", *(f"note: {note}" for note in notes)]
        return Response("".join(f"{line}\n" for line in lines), media_type="text/plain")

    ok = (Success(200, "It is.", "text/plain", _TEXT),)
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


def routes(
    operations: Iterable[Operation],
    *,
    prefix: str,
    authenticate: Authenticate,
    engine: EngineHolder,
) -> list[Route]:
    """Make one route per path; a path that does not take a method answers 405 and which it does."""
    methods: dict[str, dict[str, OpenEndpoint]] = {}
    for operation in operations:
        path = operation.path if operation.outside else prefix + operation.path
        of_path = methods.setdefault(path, {})
        of_path[operation.method] = _for_anybody(operation, authenticate, engine)
    return [_route(path, endpoints) for path, endpoints in methods.items()]


def _for_anybody(
    operation: Operation, authenticate: Authenticate, engine: EngineHolder
) -> OpenEndpoint:
    endpoint = operation.endpoint
    if endpoint is None:
        if operation.open_endpoint is None:
            raise ValueError(f"{operation.method} {operation.path} has no endpoint")
        return operation.open_endpoint

    async def for_a_user(request: Request) -> Response:
        user = await identify(authenticate, request)
        return await endpoint(request, await engine.get(), user)

    return for_a_user


def _route(path: str, endpoints: dict[str, OpenEndpoint]) -> Route:
    async def answer(request: Request) -> Response:
        return await endpoints[request.method](request)

    call: Callable[[Request], Awaitable[Response]] = answer
    # The id of an approval of a workflow has slashes in it.
    route = Route(path.replace("{approvalId}", "{approvalId:path}"), call, methods=list(endpoints))
    route.path = path
    # A HEAD request would start the work of a GET and throw it away.
    route.methods = set(endpoints)
    return route
