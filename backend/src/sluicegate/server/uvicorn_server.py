"""One application on one socket, until a signal ends it."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import importlib.util
import os
import signal
import socket
import threading
from typing import TYPE_CHECKING, Any, Final, Protocol

import uvicorn
from sse_starlette.sse import AppStatus
from uvicorn.server import HANDLED_SIGNALS

from sluicegate.errors import ConfigurationError
from sluicegate.server.socket_protocol import PING_SECONDS, socket_protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from types import FrameType

    from sluicegate.server.app import Application
    from sluicegate.server.settings import Settings

    Ready = Callable[[str], None]

CLOSING_SECONDS: Final = 5
"""How long connections may take to close when nothing runs any more."""

FORCED: Final = 1
"""The exit code of a server that was not given the time to end."""

UNSENT_BYTES: Final = 64 * 1024
"""Bytes that the kernel takes of an answer before the client makes room."""


class Ends(Protocol):
    """What comes to an end before the connections are closed."""

    def begin(self) -> None:
        """Take nothing new; called by a signal."""

    async def end(self, within: float, hurried: asyncio.Event) -> None:
        """Come to an end in so many seconds, or as soon as ``hurried`` is set."""

    def abort(self) -> None:
        """Break what is still open."""


class Server(uvicorn.Server):
    """uvicorn, which here ends its streams itself and leaves the process to its caller.

    The first signal lets what runs come to its end, while requests are still answered; a second
    one waits for nothing, and a third is the system's own.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        *,
        ending: Ends | None = None,
        within: float = 0.0,
        ready: Callable[[], None] = lambda: None,
    ) -> None:
        """Take what has to end first, in how many seconds, and whom to tell of the start."""
        super().__init__(config)
        self.ending = ending
        self._within = within
        self._ready = ready
        self._is_asked = False
        self._hurried: asyncio.Event | None = None
        self._draining: asyncio.Task[None] | None = None

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """End at SIGINT and SIGTERM; uvicorn's own version raises them again afterwards."""
        before: dict[int, Any] = {}
        if threading.current_thread() is threading.main_thread():
            before = {number: signal.signal(number, self.end) for number in HANDLED_SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def end(self, number: int, frame: FrameType | None) -> None:
        """Begin to end; whoever asks again does not wait any more."""
        if self._is_asked:
            self.force_exit = self.should_exit = True
            signal.signal(number, signal.SIG_DFL)
        elif self.ending is None:
            self.should_exit = True
        else:
            self.ending.begin()
        self._is_asked = True

    async def on_tick(self, counter: int) -> bool:
        """Look ten times a second whether the end was asked for, and go on until it is there."""
        if self._is_asked and self._draining is None and self.ending is not None:
            self._hurried = asyncio.Event()
            self._draining = asyncio.create_task(self._drain(self.ending, self._hurried))
        return await super().on_tick(counter)

    async def _drain(self, ending: Ends, hurried: asyncio.Event) -> None:
        try:
            await ending.end(self._within, hurried)
        finally:
            self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then say so."""
        await super().startup(sockets)
        self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Break the streams first: uvicorn waits for every response to end."""
        if self._hurried is not None and self._draining is not None:
            self._hurried.set()
            await asyncio.wait([self._draining])
        if self.ending is not None:
            self.ending.abort()
        await super().shutdown(sockets)


def bind(settings: Settings) -> socket.socket:
    """Listen on the host and port of the settings.

    Raises:
        ConfigurationError: They cannot be used, for example because another process has the port.
    """
    host, port = settings.host, settings.port
    try:
        found = socket.getaddrinfo(
            host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        family, kind, protocol, _, address = found[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise _not_bound(host, port, error) from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        _keep_little_unsent(listener)
        listener.bind(address)
        listener.listen(2048)
    except OSError as error:
        listener.close()
        raise _not_bound(host, port, error) from None
    return listener


def _keep_little_unsent(listener: socket.socket) -> None:
    """Let the kernel hold little for a client that does not read; connections inherit it.

    By itself it would take megabytes of an answer for each one. What is on its way to a client
    that reads does not count, so nothing gets slower.
    """
    option = getattr(socket, "TCP_NOTSENT_LOWAT", None)
    if option is not None:
        # A system may know the name and not the option.
        with contextlib.suppress(OSError):
            listener.setsockopt(socket.IPPROTO_TCP, option, UNSENT_BYTES)


def _not_bound(host: str, port: int, error: OSError) -> ConfigurationError:
    reason = (error.strerror or type(error).__name__).lower()
    return ConfigurationError(
        f"Port {port} of {host} cannot be used: {reason}; choose another with --port or --host."
    )


def url_of(listener: socket.socket) -> str:
    """Return the address at which a listening socket is reached."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def server_of(
    application: Application, settings: Settings, *, ready: Callable[[], None] = lambda: None
) -> Server:
    """Return a server with the limits of the settings."""
    http: Any = "h11"
    if importlib.util.find_spec("httptools") is not None:
        http = importlib.import_module("sluicegate.server.http_protocol").protocol(settings)
    config = uvicorn.Config(
        application.app,
        http=http,
        ws=socket_protocol(settings),
        ws_max_size=settings.max_body_bytes,
        ws_ping_interval=PING_SECONDS,
        ws_ping_timeout=PING_SECONDS,
        # Compression costs memory for every socket, and a bomb costs its sender nothing.
        ws_per_message_deflate=False,
        # The lifespan is entered around the server: what it raises is for the command line.
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=True,
        # The peer is who connects; a header says who the user is only where a setting says so.
        proxy_headers=False,
        # Longer than clients and proxies keep an idle connection: who closes first must be they,
        # or a request that is on its way then is lost.
        timeout_keep_alive=75,
        timeout_graceful_shutdown=CLOSING_SECONDS,
        h11_max_incomplete_event_size=settings.max_head_bytes,
    )
    return Server(config, ending=application.ending, within=settings.shutdown_timeout, ready=ready)


def run(
    application: Application,
    settings: Settings,
    listener: socket.socket,
    ready: Ready,
    leave: Callable[[int], None] = os._exit,
) -> None:
    """Serve until a signal comes; ``ready`` is told the address once requests are answered.

    A second signal ends the process with ``leave`` and the code `FORCED`.

    Raises:
        ConfigurationError: The engine refuses the agent or a setting.
    """
    server = server_of(application, settings, ready=lambda: ready(url_of(listener)))

    async def serve() -> None:
        async with application.app.router.lifespan_context(application.app):
            await server.serve(sockets=[listener])
            if server.force_exit:
                # Threads of tools would keep the process, and what they do cannot be stopped.
                leave(FORCED)

    try:
        with asyncio.Runner(loop_factory=server.config.get_loop_factory()) as runner:
            runner.run(serve())
    finally:
        # sse-starlette keeps it for the process; a later server's streams would end at once.
        AppStatus.should_exit = False
        listener.close()
