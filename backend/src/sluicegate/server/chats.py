"""The endpoints of stored chats: the list, and one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from starlette.responses import Response

from sluicegate.errors import Malformed
from sluicegate.server.responses import json_response
from sluicegate.transports.http_requests import chat_id, read_json

if TYPE_CHECKING:
    from starlette.requests import Request

    from sluicegate.engine.engine import Engine
    from sluicegate.transports.http_requests import BodyLimits

MAX_CHATS: Final = 100
"""Chats on one page of the list."""

DEFAULT_CHATS: Final = 30
"""Chats on a page where the request does not say."""

MAX_TITLE: Final = 200
"""Characters of a title."""

LIMIT_SCHEMA: Final[dict[str, Any]] = {
    "type": "integer",
    "minimum": 1,
    "maximum": MAX_CHATS,
    "default": DEFAULT_CHATS,
}

_MAX_TEXT: Final = 256


class StoredChats:
    """Reads and changes what is stored; nothing here runs the agent."""

    def __init__(self, *, body: BodyLimits) -> None:
        """Take the limits of a body."""
        self._body = body

    async def list_chats(self, request: Request, engine: Engine, user: str) -> Response:
        """``GET /chats``: newest first, ``?limit=&after=&q=``."""
        return json_response(
            await engine.list_chats(
                user=user,
                limit=limit_in(request),
                after=text_in(request, "after"),
                query=text_in(request, "q"),
            )
        )

    async def get_chat(self, request: Request, engine: Engine, user: str) -> Response:
        """``GET /chats/{id}``: title, messages and status."""
        return json_response(await engine.get_chat(chat_id(request), user=user))

    async def rename_chat(self, request: Request, engine: Engine, user: str) -> Response:
        """``PATCH /chats/{id}``: a new title."""
        chat = chat_id(request)
        body = await read_json(request, self._body)
        title = body.get("title") if isinstance(body, dict) else None
        if not isinstance(title, str) or not title.strip() or len(title) > MAX_TITLE:
            raise Malformed(f"The title must be text of 1 to {MAX_TITLE} characters.")
        if not title.isprintable():
            raise Malformed("The title must be one line of printable characters.")
        await engine.rename_chat(chat, title.strip(), user=user)
        return Response(status_code=204)

    async def delete_chat(self, request: Request, engine: Engine, user: str) -> Response:
        """``DELETE /chats/{id}``: forget the chat."""
        await engine.delete_chat(chat_id(request), user=user)
        return Response(status_code=204)


def limit_in(request: Request) -> int:
    """How many lines a page of a list may have; raises Malformed."""
    text = request.query_params.get("limit", str(DEFAULT_CHATS))
    if not (text.isascii() and text.isdigit() and len(text) <= 3 and 1 <= int(text) <= MAX_CHATS):
        raise Malformed(f"The parameter limit must be a number from 1 to {MAX_CHATS}.")
    return int(text)


def text_in(request: Request, name: str, *, most: int = _MAX_TEXT) -> str | None:
    """A parameter that is text of so many characters; raises Malformed."""
    text = request.query_params.get(name)
    if text is not None and (len(text) > most or not text.isprintable()):
        raise Malformed(f"The parameter {name} must be at most {most} printable characters.")
    return text or None
