"""The command ``sluicegate worker``: serves the functions of a file as tools over MCP."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import logging
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import httpx
import uvicorn
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse

from sluicegate.errors import ConfigurationError
from sluicegate.server.authentication import bearer_token
from sluicegate.server.network_addresses import is_loopback_name
from sluicegate.server.uvicorn_server import Server, bind, url_of
from sluicegate.tools.worker_names import is_worker_name
from sluicegate.tools.worker_server import load_functions, worker_server

if TYPE_CHECKING:
    import argparse
    from collections.abc import AsyncIterator

    from starlette.types import ASGIApp, Receive, Scope, Send

    from sluicegate.server.settings import Settings

_log: Final = logging.getLogger("sluicegate")
PATH: Final = "/mcp"
_HTTP_TIMEOUT: Final = 10.0
_RETRY_SECONDS: Final = 2.0
"""Seconds until a failed registration is retried."""


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """The options of the command; ``url`` is where the server reaches the worker."""

    name: str
    token: str | None = None
    register: str | None = None
    url: str | None = None


def worker_options(arguments: argparse.Namespace, settings: Settings) -> WorkerOptions:
    """Return the options of the command.

    Raises:
        ConfigurationError: An option or a combination of options is not valid.
    """
    name = arguments.name or Path(arguments.file).stem.replace("_", "-")
    if not is_worker_name(name):
        raise ConfigurationError(
            f"The name {name!r} cannot be a worker's; give --name a letter followed by at most 31 "
            "letters, digits and hyphens."
        )
    token = None if arguments.token is None else _token(Path(arguments.token))
    if token is None and not is_loopback_name(settings.host):
        raise ConfigurationError(
            f"Without --token only loopback addresses are served, not --host {settings.host}."
        )
    if arguments.register is not None and token is None:
        raise ConfigurationError("A registration needs a credential; add --token FILE.")
    return WorkerOptions(name, token, arguments.register, arguments.url)


def serve_worker(file: str, options: WorkerOptions, settings: Settings) -> int:
    """Serve the functions of a file until a signal comes.

    Raises:
        ConfigurationError: The file, an option or the port cannot be used.
    """
    functions = load_functions(file)
    listener = bind(settings)
    own = url_of(listener).rstrip("/")
    hosts = [own.partition("//")[2], f"localhost:{listener.getsockname()[1]}"]
    manager = StreamableHTTPSessionManager(
        worker_server(options.name, functions),
        # A page in a browser on this machine must not reach a worker without a credential.
        security_settings=TransportSecuritySettings(
            enable_dns_rebinding_protection=options.token is None,
            allowed_hosts=hosts,
            allowed_origins=[f"http://{host}" for host in hosts],
        ),
    )
    config = uvicorn.Config(
        _WorkerApp(manager.handle_request, options.token),
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        timeout_graceful_shutdown=settings.shutdown_timeout,
    )

    def announce() -> None:
        names = ", ".join(function.name for function in functions)
        sys.stdout.write(f"sluicegate worker {options.name} offers {names} at {own}{PATH}\n")
        sys.stdout.flush()

    server = Server(config, on_ready=announce)

    async def serve() -> None:
        async with manager.run(), _registration(options, options.url or f"{own}{PATH}"):
            await server.serve(sockets=[listener])

    try:
        with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
            runner.run(serve())
    finally:
        listener.close()
    return 0


class _WorkerApp:
    """The ASGI application of a worker, which requires its credential."""

    def __init__(self, app: ASGIApp, token: str | None) -> None:
        self._app = app
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        if scope["path"] != PATH:
            await PlainTextResponse(f"A worker answers at {PATH}.\n", 404)(scope, receive, send)
        elif not self._is_authorized(Headers(scope=scope).getlist("authorization")):
            refused = PlainTextResponse("The credential is not this worker's.\n", 401)
            await refused(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _is_authorized(self, fields: list[str]) -> bool:
        if self._token is None:
            return True
        given = bearer_token(fields)
        return given is not None and hmac.compare_digest(given.encode(), self._token.encode())


@contextlib.asynccontextmanager
async def _registration(options: WorkerOptions, url: str) -> AsyncIterator[None]:
    """Keep the worker registered while it serves."""
    if options.register is None:
        yield
        return
    headers = {"authorization": f"Bearer {options.token}"}
    async with httpx.AsyncClient(headers=headers, timeout=_HTTP_TIMEOUT) as client:
        renewing = asyncio.create_task(_renew(client, options, url))
        try:
            yield
        finally:
            renewing.cancel()
            with contextlib.suppress(httpx.HTTPError):
                await client.delete(f"{_registrations_url(options)}/{options.name}")


async def _renew(client: httpx.AsyncClient, options: WorkerOptions, url: str) -> None:
    reported = ""
    while True:
        pause, state = _RETRY_SECONDS, "registered"
        try:
            answer = await client.post(
                _registrations_url(options), json={"name": options.name, "url": url}
            )
            if answer.is_success:
                pause = max(0.1, float(answer.json()["lease"]) / 3)
            else:
                state = f"refused: {answer.text[:500]}"
        except (httpx.HTTPError, ValueError, KeyError, TypeError) as error:
            state = f"the server cannot be reached: {type(error).__name__}"
        if state != reported:
            _log.warning("worker %s: %s", options.name, state)
            reported = state
        await asyncio.sleep(pause)


def _registrations_url(options: WorkerOptions) -> str:
    root = (options.register or "").rstrip("/")
    return root if root.endswith("/workers") else f"{root}/api/workers"


def _token(path: Path) -> str:
    try:
        token = path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigurationError(f"The token file {path} cannot be read: {reason}.") from None
    if len(token) < 16 or bearer_token([f"Bearer {token}"]) != token:
        raise ConfigurationError(
            f"The token file {path} must hold one token: at least 16 letters, digits and ._~+/=-"
        )
    return token
