"""One application served by uvicorn on one listening socket, until a signal ends it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

import uvicorn
from sse_starlette.sse import AppStatus
from uvicorn.server import HANDLED_SIGNALS

from sluicegate.errors import ConfigurationError
from sluicegate.server.arriving_message_limits import InputLimits
from sluicegate.server.asgi_private_api_check import check_private_apis
from sluicegate.server.connection_limits import ConnectionLimits, connections_possible
from sluicegate.server.limit_refusal_log import RefusalLog
from sluicegate.server.uvicorn_protocols import LimitedHttpProtocol

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from types import FrameType

    from sluicegate.server.app import Application
    from sluicegate.server.settings import Settings

    OnReady = Callable[[str], None]

CLOSING_SECONDS: Final = 5
"""Seconds in which connections may close after every turn has ended."""

FORCED: Final = 1
"""The exit code of a server that was ended by a second signal."""

_POLL_SECONDS: Final = 0.02

UNSENT_BYTES: Final = 64 * 1024
"""Bytes of unsent output that the kernel accepts for one connection."""


@dataclass(frozen=True)
class ServerTimings:
    """Intervals and timeouts of a server that no setting changes, in seconds."""

    ping: float = 10.0
    """Between two pings of a socket, and from a ping to the end of a peer that does not answer: one
    that is frozen is found within 20 seconds."""

    live_ping: float = 3.0
    """Between two pings of a live socket: a frozen page is found within ten seconds."""

    live_pong: float = 7.0
    """From such a ping to the end of a peer that does not answer."""

    unread_body: float = 5.0
    """How long a client may send the rest of a body after its request was answered."""


class Drainable(Protocol):
    """An application that ends its turns before the server closes connections."""

    def begin(self) -> None:
        """Refuse new requests; called by a signal handler."""

    async def finish(self, within: float, hurried: asyncio.Event) -> None:
        """Wait ``within`` seconds at most until every turn has ended, or ``hurried`` is set."""

    async def drain(self, within: float, hurried: asyncio.Event) -> None:
        """End every turn within so many seconds, or once ``hurried`` is set."""

    def abort(self) -> None:
        """Break the open connections."""


class Server(uvicorn.Server):
    """A uvicorn server that drains its application and leaves the process to the caller.

    The first signal drains the application while requests are still answered, a second signal
    cancels every wait, and a third has the system's own effect.

    Args:
        config: The configuration of uvicorn.
        drainable: Is drained before connections are closed.
        drain_timeout: Seconds for `Drainable.drain`.
        on_ready: Is called once requests are answered.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        *,
        drainable: Drainable | None = None,
        drain_timeout: float = 0.0,
        on_ready: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(config)
        self.drainable = drainable
        self._drain_timeout = drain_timeout
        self._on_ready = on_ready
        self._is_signalled = False
        self._is_replaced = False
        self._signalled = asyncio.Event()
        self._hurried = asyncio.Event()
        self._draining: asyncio.Task[None] | None = None

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Handle SIGINT and SIGTERM; uvicorn's own version raises them again afterwards."""
        before: dict[int, Any] = {}
        if threading.current_thread() is threading.main_thread():
            before = {number: signal.signal(number, self.on_signal) for number in HANDLED_SIGNALS}
        try:
            yield
        finally:
            for number, previous in before.items():
                signal.signal(number, previous)

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        """Begin the shutdown; the second signal ends every wait."""
        if self._is_signalled:
            self.force_exit = self.should_exit = True
            signal.signal(number, signal.SIG_DFL)
        elif self.drainable is None:
            self.should_exit = True
        else:
            self.drainable.begin()
        self._is_signalled = True

    def replace(self) -> None:
        """Leave new connections to another process on the same socket; end with the last turn."""
        self._is_replaced = True

    async def on_tick(self, counter: int) -> bool:
        """Start draining after a signal or `replace`; uvicorn calls this ten times a second."""
        if self._is_signalled:
            self._signalled.set()
        is_ending = self._is_signalled or self._is_replaced
        if is_ending and self._draining is None and self.drainable is not None:
            self._draining = asyncio.create_task(self._drain(self.drainable))
        return await super().on_tick(counter)

    async def _drain(self, drainable: Drainable) -> None:
        try:
            if not self._is_signalled:
                await self._stop_accepting()
                await drainable.finish(self._drain_timeout, self._signalled)
            await drainable.drain(self._drain_timeout, self._hurried)
        finally:
            self.should_exit = True

    async def _stop_accepting(self) -> None:
        """Close this process's own copy of the listening socket, and idle connections of HTTP.

        The first request of a new connection may be on its way: it is answered. The deadline of
        the request closes a connection that sends none.
        """
        for server in self.servers:
            server.close()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._drain_timeout
        self._close_answered()
        while loop.time() < deadline and not self._is_signalled:
            # A connection that has just been accepted is registered only then.
            await asyncio.sleep(_POLL_SECONDS)
            if not self._close_answered():
                break

    def _close_answered(self) -> bool:
        """Close idle connections of HTTP; return whether one has sent no request yet."""
        is_one_new = False
        for connection in list(self.server_state.connections):
            if isinstance(connection, LimitedHttpProtocol):
                is_one_new |= not connection.finish()
            elif isinstance(connection, self.config.http_protocol_class):
                connection.shutdown()
        return is_one_new

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then call ``on_ready``."""
        await super().startup(sockets)
        self._on_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Abort the open streams first: uvicorn waits for every response to end."""
        if self._draining is not None:
            self._hurried.set()
            await asyncio.wait([self._draining])
        if self.drainable is not None:
            self.drainable.abort()
        await super().shutdown(sockets)


def bind(settings: Settings) -> socket.socket:
    """Listen on the host and port of the settings.

    Raises:
        ConfigurationError: They cannot be used, for example because the port is in use.
    """
    host, port = settings.host, settings.port
    try:
        addresses = socket.getaddrinfo(
            host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        family, kind, protocol, _, address = addresses[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise _not_bound(host, port, error) from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        _limit_unsent_output(listener)
        listener.bind(address)
        listener.listen(2048)
    except OSError as error:
        listener.close()
        raise _not_bound(host, port, error) from None
    return listener


def _limit_unsent_output(listener: socket.socket) -> None:
    """Limit what the kernel holds for a client that does not read; connections inherit it.

    The default is megabytes for each connection. Output in flight to a client that reads does not
    count, so nothing gets slower.
    """
    option = getattr(socket, "TCP_NOTSENT_LOWAT", None)
    if option is not None:
        # A system may define the name without supporting the option.
        with contextlib.suppress(OSError):
            listener.setsockopt(socket.IPPROTO_TCP, option, UNSENT_BYTES)


def _not_bound(host: str, port: int, error: OSError) -> ConfigurationError:
    reason = (error.strerror or type(error).__name__).lower()
    return ConfigurationError(
        f"Port {port} of {host} cannot be used: {reason}; choose another with --port or --host."
    )


def url_of(listener: socket.socket) -> str:
    """Return the URL of a listening socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def server_of(
    application: Application,
    settings: Settings,
    *,
    timings: ServerTimings | None = None,
    on_ready: Callable[[], None] = lambda: None,
) -> Server:
    """Return a server with the limits of the settings.

    Raises:
        ConfigurationError: The installed uvicorn or websockets cannot be used.
    """
    check_private_apis("uvicorn", "websockets")
    # After the check, which says in one sentence what an import could not.
    from sluicegate.server.uvicorn_protocols import (  # noqa: PLC0415
        http_protocol,
        socket_protocol,
    )

    chosen = timings or ServerTimings()
    connections = connection_limits(settings)
    config = uvicorn.Config(
        application.app,
        http=http_protocol(settings, connections, unread_body_timeout=chosen.unread_body),
        ws=socket_protocol(
            settings,
            connections,
            input_limits(application, settings),
            live_ping=(chosen.live_ping, chosen.live_pong),
        ),
        ws_max_size=settings.max_body_bytes,
        ws_ping_interval=chosen.ping,
        ws_ping_timeout=chosen.ping,
        # Compression costs memory for every socket, and a bomb costs its sender nothing.
        ws_per_message_deflate=False,
        # The lifespan is entered around the server: its errors are for the command line.
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=True,
        # The peer is the caller; a header names the user only where a setting says so.
        proxy_headers=False,
        # Longer than clients and proxies keep an idle connection: if the server closed first, a
        # request that is on its way would be lost.
        timeout_keep_alive=75,
        timeout_graceful_shutdown=CLOSING_SECONDS,
        h11_max_incomplete_event_size=settings.max_head_bytes,
    )
    return Server(
        config,
        drainable=application.shutdown,
        drain_timeout=settings.shutdown_timeout,
        on_ready=on_ready,
    )


def connection_limits(settings: Settings) -> ConnectionLimits:
    """Return the limits of the connections of a server."""
    return ConnectionLimits(
        total=connections_possible(settings.max_connections),
        per_peer=settings.max_connections_per_peer,
        trusted=settings.trusted_proxies,
        refusals=RefusalLog(),
    )


def input_limits(application: Application, settings: Settings) -> InputLimits:
    """Return the limits that all sockets of a server share."""
    return InputLimits(
        large=application.large,
        timeout=settings.body_timeout,
        unauthenticated_frame=settings.max_unauthenticated_frame_bytes,
        unauthenticated_timeout=settings.unauthenticated_frame_timeout,
        unauthenticated_total=settings.max_unauthenticated_bytes,
    )


def run(
    application: Application,
    settings: Settings,
    listener: socket.socket,
    on_ready: OnReady,
    leave: Callable[[int], None] = os._exit,
    on_start: Callable[[Callable[[], None]], None] = lambda replace: None,
) -> None:
    """Serve until a signal comes; ``on_ready`` gets the URL once requests are answered.

    A second signal ends the process with ``leave`` and the code `FORCED`. ``on_start`` gets
    `Server.replace`.

    Raises:
        ConfigurationError: The engine refuses the agent or a setting.
    """
    server = server_of(application, settings, on_ready=lambda: on_ready(url_of(listener)))

    on_start(server.replace)

    async def serve() -> None:
        async with application.app.router.lifespan_context(application.app):
            await server.serve(sockets=[listener])
            if server.force_exit:
                # The threads of tools cannot be stopped and would keep the process alive.
                leave(FORCED)

    try:
        with asyncio.Runner(loop_factory=server.config.get_loop_factory()) as runner:
            runner.run(serve())
    finally:
        # Some versions of sse-starlette keep this flag; the streams of a later server would end.
        AppStatus.should_exit = False
        listener.close()
