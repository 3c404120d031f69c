"""How much of its clients' messages a server holds while they arrive, and for how long."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from sluicegate.errors import RequestTimeout, TooLarge, TooManyRequests
from sluicegate.transports.large_request_queue import LARGE
from sluicegate.transports.socket_connection import (
    MESSAGE_TOO_BIG,
    POLICY_VIOLATION,
    TRY_AGAIN_LATER,
    sign_in_sentence,
)

if TYPE_CHECKING:
    import asyncio

    from sluicegate.errors import RequestError
    from sluicegate.transports.large_request_queue import LargeRequests
    from sluicegate.transports.slow_clients import Timer, Timers


@dataclass
class InputLimits:
    """The limits of all sockets of a server; times are in seconds.

    ``large`` and ``timeout`` are for messages of a user, the other fields for sockets without one:
    the bytes and the time of one message, and the bytes of all of them together.
    """

    large: LargeRequests
    timeout: float
    unauthenticated_frame: int
    unauthenticated_timeout: float
    unauthenticated_total: int
    unauthenticated_held: int = field(default=0, init=False)
    """Bytes that sockets without a user hold now."""


class Input(Protocol):
    """The connection of a socket."""

    def pause(self) -> None:
        """Stop reading."""

    def resume(self) -> None:
        """Read on, unless the application has not processed the last message."""

    def refuse(self, error: RequestError, close_code: int) -> None:
        """Answer the message that arrives with an error, and close the socket."""


class SocketInput:
    """The bytes of one socket that are not processed: messages, and the one that arrives.

    Before a user is accepted the message has a size and a deadline, and all such sockets share a
    total. Afterwards a large message waits for its admission, while the socket is not read.
    """

    def __init__(self, limits: InputLimits, loop: Timers, connection: Input) -> None:
        self._limits = limits
        self._loop = loop
        self._connection = connection
        self._user: str | None = None
        self._held = 0
        self._deadline: Timer | None = None
        self._admission: asyncio.Future[None] | None = None
        self._is_closed = False

    @property
    def is_waiting(self) -> bool:
        """Whether a large message waits for its admission."""
        return self._admission is not None and not self._admission.done()

    def authenticate(self, user: str) -> None:
        """Record the first user that is accepted."""
        if self._user is None and not self._is_closed:
            self._limits.unauthenticated_held -= self._held
            self._user = user
            is_arriving = self._deadline is not None
            self._set_deadline(is_needed=False)
            self._set_deadline(is_needed=is_arriving)

    def update(self, *, arriving: int, unread: int) -> None:
        """Record the bytes of the message that arrives, and of messages before it."""
        if self._is_closed:
            return
        before, self._held = self._held, arriving + unread
        if self._user is not None:
            self._admit(self._user)
        else:
            self._limits.unauthenticated_held += self._held - before
            if arriving and self._is_refused(arriving):
                return
        self._set_deadline(is_needed=arriving > 0 and not self.is_waiting)

    def close(self) -> None:
        """Release everything."""
        if not self._is_closed:
            self.update(arriving=0, unread=0)
            self._is_closed = True

    def _is_refused(self, arriving: int) -> bool:
        limits = self._limits
        if arriving > limits.unauthenticated_frame:
            error = TooLarge(sign_in_sentence(limits.unauthenticated_frame))
            self._connection.refuse(error, MESSAGE_TOO_BIG)
        elif limits.unauthenticated_held > limits.unauthenticated_total:
            busy = TooManyRequests("Too many users sign in at once; wait a moment and try again.")
            self._connection.refuse(busy, TRY_AGAIN_LATER)
        return self._is_closed

    def _admit(self, user: str) -> None:
        large, admission = self._limits.large, self._admission
        if self._held < LARGE and admission is not None:
            self._admission = None
            large.release(user, admission)
        elif self._held >= LARGE and admission is None:
            self._admission = large.request(user)
            if not self._admission.done():
                self._connection.pause()
                self._admission.add_done_callback(self._on_admission)

    def _on_admission(self, admission: asyncio.Future[None]) -> None:
        if admission is self._admission:
            self._set_deadline(is_needed=True)
            self._connection.resume()

    def _set_deadline(self, *, is_needed: bool) -> None:
        if not is_needed and self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        elif is_needed and self._deadline is None:
            limits = self._limits
            known = self._user is not None
            seconds = limits.timeout if known else limits.unauthenticated_timeout
            self._deadline = self._loop.call_later(seconds, self._expire)

    def _expire(self) -> None:
        self._deadline = None
        self._connection.refuse(RequestTimeout(), POLICY_VIOLATION)
