"""The operations on stored chats: list, load, rename, delete."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from starlette.responses import Response

from sluicegate.errors import (
    Malformed,
    RequestTimeout,
    TurnRunning,
    Unknown,
    UnsupportedMediaType,
)
from sluicegate.server.operation_types import Operation, Parameter, Success
from sluicegate.server.query_parameters import LIMIT_SCHEMA, TEXT_SCHEMA, limit_of, text_of
from sluicegate.server.responses import json_response
from sluicegate.server.schemas import (
    MAX_TITLE,
    Chat,
    ChatPage,
    ChatTitle,
    MessageVersion,
)
from sluicegate.transports.http_requests import chat_id, read_json
from sluicegate.wire.ids import is_valid_id
from sluicegate.wire.one_line_pattern import is_one_line

if TYPE_CHECKING:
    from starlette.requests import Request

    from sluicegate.engine.interface import Engine
    from sluicegate.transports.http_requests import BodyLimits

_VERSION: Final = re.compile(r"[1-9][0-9]{0,8}")


class ChatEndpoints:
    """The endpoints of stored chats; none of them runs the agent."""

    def __init__(self, body: BodyLimits) -> None:
        self._body = body

    async def list_chats(self, request: Request, engine: Engine, user: str) -> Response:
        """``GET /chats``: newest first, ``?limit=&after=&q=``."""
        return json_response(
            await engine.list_chats(
                user=user,
                limit=limit_of(request),
                after=text_of(request, "after"),
                query=text_of(request, "q"),
            )
        )

    async def get_chat(self, request: Request, engine: Engine, user: str) -> Response:
        """``GET /chats/{id}``: title, messages and status."""
        return json_response(await engine.get_chat(chat_id(request), user=user))

    async def get_version(self, request: Request, engine: Engine, user: str) -> Response:
        """``GET /chats/{id}/messages/{messageId}/versions/{version}``: what a message replaced."""
        chat = chat_id(request)
        message, version = (str(request.path_params[name]) for name in ("messageId", "version"))
        if not is_valid_id(message) or not _VERSION.fullmatch(version):
            raise Unknown
        return json_response(await engine.get_version(chat, message, int(version), user=user))

    async def rename_chat(self, request: Request, engine: Engine, user: str) -> Response:
        """``PATCH /chats/{id}``: a new title."""
        chat = chat_id(request)
        body = await read_json(request, self._body, user=user)
        title = body.get("title") if isinstance(body, dict) else None
        if not isinstance(title, str) or not title.strip() or len(title) > MAX_TITLE:
            raise Malformed(f"The title must be text of 1 to {MAX_TITLE} characters.")
        if not is_one_line(title):
            raise Malformed("The title must be one line, without invisible characters.")
        await engine.rename_chat(chat, title.strip(), user=user)
        return Response(status_code=204)

    async def delete_chat(self, request: Request, engine: Engine, user: str) -> Response:
        """``DELETE /chats/{id}``: delete the conversation."""
        await engine.delete_chat(chat_id(request), user=user)
        return Response(status_code=204)


def chat_list_operations(body: BodyLimits) -> list[Operation]:
    """Return the operations on stored chats."""
    chats = ChatEndpoints(body)
    return [
        Operation(
            "GET",
            "/chats",
            "List the chats, newest first.",
            (Success(200, "One page of the list.", "application/json", ChatPage),),
            endpoint=chats.list_chats,
            parameters=(
                Parameter("limit", "query", LIMIT_SCHEMA, "Chats on the page."),
                Parameter("after", "query", TEXT_SCHEMA, "The `next` of the page before."),
                Parameter("q", "query", TEXT_SCHEMA, "Text that the titles contain."),
            ),
            refusals=(Unknown,),
        ),
        Operation(
            "GET",
            "/chats/{id}",
            "Load a chat.",
            (Success(200, "The chat with its messages.", "application/json", Chat),),
            endpoint=chats.get_chat,
            refusals=(Unknown,),
        ),
        Operation(
            "GET",
            "/chats/{id}/messages/{messageId}/versions/{version}",
            "Load what an edit or another answer replaced.",
            (
                Success(
                    200,
                    "The earlier version, with the messages that followed it.",
                    "application/json",
                    MessageVersion,
                ),
            ),
            endpoint=chats.get_version,
            refusals=(Unknown,),
        ),
        Operation(
            "PATCH",
            "/chats/{id}",
            "Give a chat another title.",
            (Success(204, "Renamed."),),
            endpoint=chats.rename_chat,
            body=ChatTitle,
            refusals=(RequestTimeout, UnsupportedMediaType, Unknown),
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
