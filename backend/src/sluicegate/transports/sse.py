"""The chat over server-sent events: the transport of ``DefaultChatTransport``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.responses import Response

from sluicegate.transports.event_stream import EventStream, OpenStreams
from sluicegate.transports.incoming import chat_id, client_of, read_json
from sluicegate.wire.requests import parse_chat_request

if TYPE_CHECKING:
    from starlette.requests import Request

    from sluicegate.engine.chat_engine import ChatEngine
    from sluicegate.engine.running.turn_reader import TurnReader
    from sluicegate.transports.backlog import Patience
    from sluicegate.transports.incoming import BodyLimits
    from sluicegate.wire.limits import RequestLimits

NAME: Final = "sse"
"""What the transport is called in the audit trail."""


class ChatOverSse:
    """The endpoints that send, resume and stop a turn, and the streams that are open.

    Every endpoint takes the request, the engine and the user who was authenticated, and raises
    a RequestError before anything has changed.
    """

    def __init__(
        self,
        *,
        body: BodyLimits,
        limits: RequestLimits,
        own_files: str,
        keep_alive: float,
        patience: Patience,
    ) -> None:
        """Take the limits of a body, of what is read of it, and of a client that does not read.

        ``own_files`` is what the URLs of a chat's files begin with, ``{id}`` standing for the
        chat; ``keep_alive`` the seconds between two comments.
        """
        self._body = body
        self._limits = limits
        self._own_files = own_files
        self._keep_alive = keep_alive
        self._patience = patience
        self._open = OpenStreams()

    async def send(self, request: Request, engine: ChatEngine, user: str) -> Response:
        """``POST /chat``: start or join a turn and stream it."""
        client = client_of(request.headers, via=NAME)
        body = await read_json(request, self._body)
        chat_request = parse_chat_request(body, self._limits, own_files=self._own_files)
        return self._stream(await engine.start(chat_request, user=user, client=client))

    async def resume(self, request: Request, engine: ChatEngine, user: str) -> Response:
        """``GET /chat/{id}/stream``: stream the running message from its beginning, or 204."""
        client = client_of(request.headers, via=NAME)
        reader = await engine.resume(chat_id(request), user=user, client=client)
        return Response(status_code=204) if reader is None else self._stream(reader)

    async def stop(self, request: Request, engine: ChatEngine, user: str) -> Response:
        """``POST /chat/{id}/stop``: stop the running turn for real."""
        await engine.stop(chat_id(request), user=user)
        return Response(status_code=204)

    @property
    def is_busy(self) -> bool:
        """Whether a stream is open."""
        return bool(self._open)

    def go_away(self) -> None:
        """Do nothing: a stream has no words for it but its end."""

    def cut(self) -> None:
        """Break every open connection; their clients resume, the turns are not touched."""
        self._open.cut()

    def _stream(self, reader: TurnReader) -> Response:
        return EventStream(
            reader,
            open_streams=self._open,
            keep_alive=self._keep_alive,
            patience=self._patience,
        )
