"""HTTP/1.1 with the limits that uvicorn's httptools protocol does not have.

A head must be short and arrive in time, and a body that nobody reads does not keep a connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from sluicegate.transports.backpressure import ABORT

if TYPE_CHECKING:
    import asyncio

    from sluicegate.server.settings import Settings

UNREAD_BODY_SECONDS: Final = 5.0
"""How long a client may go on sending a body after its request was answered."""


class LimitedHttpProtocol(HttpToolsProtocol):
    """One connection. The application judges whole heads; this judges those that never end."""

    max_head_bytes: ClassVar[int] = 32 * 1024
    max_head_fields: ClassVar[int] = 100
    head_seconds: ClassVar[float] = 10.0
    unread_body_seconds: ClassVar[float] = UNREAD_BODY_SECONDS

    # Set while the request line and headers of a message are incomplete.
    _in_head = False
    # Set from the end of a head to the end of its body.
    _in_body = False
    # Bytes of a head that has not ended with the packet it began in.
    _head_bytes = 0
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Give a new connection as long for its head as any other."""
        super().connection_made(transport)
        self._limit(self.head_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the deadline."""
        self._no_limit()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Count what belongs to a head that goes on."""
        if self.transport.is_closing():
            return
        was_in_head = self._in_head
        if self._deadline is None and not self._in_body:
            self._limit(self.head_seconds)
        super().data_received(data)
        if was_in_head and self._in_head:
            self._head_bytes += len(data)
            too_many = len(self.headers) > self.max_head_fields
            if too_many or self._head_bytes > self.max_head_bytes:
                self._refuse(413, "too_large", "The head of the request is too large; send less.")

    def on_message_begin(self) -> None:
        """Begin a head."""
        super().on_message_begin()
        self.scope["extensions"] = {ABORT: {"call": self.transport.abort}}
        self._in_head = True
        self._head_bytes = 0

    def on_headers_complete(self) -> None:
        """End the head; the body has its own deadline, in the application."""
        self._in_head = False
        self._in_body = True
        self._no_limit()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """End the body."""
        self._in_body = False
        self._no_limit()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Wait only a little for the rest of a body that was not wanted."""
        super().on_response_complete()
        if self._in_body:
            self._limit(self.unread_body_seconds)

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP."""
        self._refuse(400, "malformed", "The request is not valid HTTP; check it.")

    def _should_upgrade(self) -> bool:
        """Take a socket's upgrade with GET alone; uvicorn would leave another one unanswered."""
        return self.scope["method"] == "GET" and super()._should_upgrade()

    def _limit(self, seconds: float) -> None:
        self._no_limit()
        self._deadline = self.loop.call_later(seconds, self._too_late)

    def _no_limit(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _too_late(self) -> None:
        self._deadline = None
        if self._in_head:
            self._refuse(408, "timeout", "The request took too long to arrive; send it again.")
        else:
            self.transport.close()

    def _refuse(self, status: int, code: str, text: str) -> None:
        if self.transport.is_closing():
            return
        body = text.encode("ascii")
        head = (
            b"content-type: text/plain; charset=utf-8\r\n"
            b"x-content-type-options: nosniff\r\n"
            b"x-error-code: %b\r\ncontent-length: %d\r\nconnection: close\r\n\r\n"
        ) % (code.encode("ascii"), len(body))
        self.transport.write(STATUS_LINE[status] + head + body)
        self.transport.close()


def protocol(settings: Settings) -> type[LimitedHttpProtocol]:
    """Return the protocol with the limits that are set."""
    limits = {
        "max_head_bytes": settings.max_head_bytes,
        "max_head_fields": settings.max_head_fields,
        "head_seconds": settings.head_timeout,
    }
    return type("LimitedProtocol", (LimitedHttpProtocol,), limits)
