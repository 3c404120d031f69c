"""One engine per application: opened by the lifespan or by the first request, closed once."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import os
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from google.adk.apps.app import App
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware

from sluicegate._version import __version__
from sluicegate.errors import ConfigurationError
from sluicegate.live.engine import LiveEngine
from sluicegate.server.access import Access, is_loopback_name
from sluicegate.server.approvals import approval_operations
from sluicegate.server.authentication import authenticator
from sluicegate.server.chats import StoredChats
from sluicegate.server.files import StoredFiles, file_operations
from sluicegate.server.oauth_return import oauth_operations
from sluicegate.server.openapi import description
from sluicegate.server.operations import Operation, Success
from sluicegate.server.page import Page, built_page, page_operations
from sluicegate.server.responses import (
    Failures,
    json_response,
    not_found_response,
    respond_before_accept,
    routing_refusal,
)
from sluicegate.server.routes import chat_operations, probe_operations, routes, stored_operations
from sluicegate.server.session_cookie import or_by_cookie, session_operations
from sluicegate.server.settings import load_settings
from sluicegate.server.shutdown import RefuseDuringShutdown, Shutdown
from sluicegate.server.sockets import chat_sockets, live_sockets, socket_operations, socket_route
from sluicegate.server.workers import Registrations, worker_operations
from sluicegate.transports.backpressure import WriteLimits
from sluicegate.transports.http_requests import BodyLimits
from sluicegate.transports.sse import SseTransport

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from sluicegate.engine.engine import Engine

OpenEngine: TypeAlias = Callable[[], Awaitable["Engine"]]


class EngineHolder:
    """Opens the engine when it is first needed.

    A mounted application gets no lifespan events. There the engine is held by an asynchronous
    generator, which every event loop closes before it ends.
    """

    def __init__(self, open_engine: OpenEngine) -> None:
        """Take what opens the engine; nothing is opened yet."""
        self._open_engine = open_engine
        self._holding: AsyncGenerator[Engine] | None = None
        self._opening: asyncio.Task[Engine] | None = None

    async def get(self) -> Engine:
        """Return the engine; whoever comes first opens it, and all others wait for that.

        Raises:
            ConfigurationError: The engine refuses the agent or a setting.
        """
        opening = self._opening
        # A test client starts an event loop per request; an engine lives in one.
        if opening is None or opening.get_loop() is not asyncio.get_running_loop():
            opening = self._opening = asyncio.create_task(self._open())
        try:
            return await asyncio.shield(opening)
        except BaseException:
            if opening.done() and opening is self._opening:
                self._opening = None
            raise

    @property
    def opened(self) -> Engine | None:
        """The engine, if it is open."""
        opening = self._opening
        if opening is None or not opening.done() or opening.cancelled():
            return None
        return None if opening.exception() is not None else opening.result()

    async def close(self) -> None:
        """Close the engine if it is open."""
        holding, self._holding, self._opening = self._holding, None, None
        if holding is not None:
            await holding.aclose()

    async def _open(self) -> Engine:
        self._holding = self._hold()
        return await anext(self._holding)

    async def _hold(self) -> AsyncGenerator[Engine]:
        engine = await self._open_engine()
        try:
            yield engine
        finally:
            self._opening = None
            await engine.close()


if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from google.adk.agents import BaseAgent
    from google.adk.models import BaseLlm
    from google.adk.workflow import BaseNode
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Receive, Scope, Send

    from sluicegate.server.app import OpenEngine
    from sluicegate.server.authentication import Authenticate
    from sluicegate.server.settings import Settings
    from sluicegate.tools.gated import Policy

    Target: TypeAlias = BaseAgent | BaseNode | App


def create_app(
    agent: Target,
    *,
    authenticate: Authenticate | None = None,
    policy: Policy | None = None,
    **settings: Any,
) -> Starlette:
    """Make the application that serves an agent to AI SDK clients.

    It runs alone or mounted under any path of a Starlette or FastAPI application. A mounted
    application gets no lifespan events: the engine is then opened by the first request and
    closed with the event loop; a parent that wants it earlier enters
    ``app.router.lifespan_context(app)`` in its own lifespan.

    Args:
        agent: The root agent, a workflow node, or an ADK ``App``. It is not changed.
        authenticate: ``async (connection) -> user id or None``, in place of the setting ``auth``.
            The connection has the headers, cookies and the peer.
        policy: ``async (call, user) -> True, False or a sentence``: whether a gated call may run.
            It is asked before a person is, and again right before the call begins.
        **settings: Fields of `Settings`; what is not given comes from the environment variable
            ``SLUICEGATE_…`` or is the default.

    Raises:
        ConfigurationError: A setting is unknown or cannot be used. What is wrong with the agent
            is raised when the engine opens.
    """
    chosen = load_settings(os.environ, settings)

    return build(engine_of(agent, chosen, policy), chosen, authenticate=authenticate).app


def engine_of(agent: Target, settings: Settings, policy: Policy | None = None) -> OpenEngine:
    """Return what opens the engine of an agent.

    Raises:
        ConfigurationError: The model's script cannot be played, or nothing can be recorded.
    """
    model: BaseLlm | None = None
    if settings.model_script is not None:
        root = agent.root_agent if isinstance(agent, App) else agent
        replay = importlib.import_module("sluicegate.replay")
        name = None if root is None else root.name
        model = replay.ScriptedModel.from_file(settings.model_script, root=name)

    kind, tape = LiveEngine, None
    if settings.record is not None:
        recording = importlib.import_module("sluicegate.replay.recording_engine")
        kind = recording.RecordingEngine
        tape = recording.FileRecorder(settings.record, redact=settings.redact)

    async def open_engine() -> Engine:
        return await kind.open(agent, settings.engine, model=model, tape=tape, policy=policy)

    return open_engine


class Application:
    """The Starlette application and what its server must reach in it."""

    def __init__(self, app: Starlette, engine: EngineHolder, ending: Shutdown) -> None:
        """Take the application and the parts that outlive a request."""
        self.app = app
        self.engine = engine
        self.ending = ending


def build(
    open_engine: OpenEngine,
    settings: Settings,
    *,
    authenticate: Authenticate | None = None,
    suggestions: Sequence[str] = (),
    page_folder: Path | None = None,
) -> Application:
    """Put the application together around whatever opens its engine.

    The page offers the suggestions as first messages; unless ``page_folder`` is given, its build
    is looked for.

    Raises:
        ConfigurationError: The settings cannot be served.
    """
    refuse_strangers(settings, authenticate)
    engine = EngineHolder(open_engine)
    body = BodyLimits(settings.max_body_bytes, settings.body_timeout)
    sse = SseTransport(
        body=body,
        limits=settings.request_limits,
        own_files=settings.files_url,
        keep_alive=settings.keep_alive,
        writes=WriteLimits(settings.reader_backlog, settings.reader_patience),
    )
    sockets, live = chat_sockets(settings), live_sockets(settings)

    ending = Shutdown(engine, (sse, sockets, live))

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        await engine.get()
        try:
            yield
        finally:
            ending.abort()
            await engine.close()

    asked = or_by_cookie(authenticate or authenticator(settings))
    operations = [
        *chat_operations(sse),
        *stored_operations(StoredChats(body=body)),
        *file_operations(StoredFiles(body=BodyLimits(settings.max_file_bytes, body.timeout))),
        *approval_operations(body),
        *session_operations(asked),
        *oauth_operations(settings),
        *worker_operations(Registrations(settings, engine)),
        *probe_operations(engine),
    ]
    if settings.page:
        find = built_page if page_folder is None else lambda: page_folder
        page = Page(find, prefix=settings.prefix, suggestions=suggestions)
        operations += page_operations(page)
    operations.append(_description_of([*operations, *socket_operations()], settings.prefix))
    app = Starlette(
        routes=[
            *routes(operations, prefix=settings.prefix, authenticate=asked, engine=engine),
            socket_route(f"{settings.prefix}/chat/ws", sockets, authenticate=asked, engine=engine),
            socket_route(f"{settings.prefix}/live", live, authenticate=asked, engine=engine),
        ],
        middleware=[
            Middleware(
                Access,
                settings=settings,
                authenticated=authenticate is not None or settings.auth != "none",
            ),
            Middleware(Failures),
            Middleware(RefuseDuringShutdown, ending=ending),
        ],
        exception_handlers={HTTPException: routing_refusal},
        lifespan=lifespan,
    )
    # A redirect would lose the body of a POST; the one address is the right one.
    app.router.redirect_slashes = False
    app.router.default = _elsewhere(app.router.not_found)
    return Application(app, engine, ending)


def _elsewhere(not_found: ASGIApp) -> ASGIApp:
    """Give a socket where there is none the answer of any other address."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await respond_before_accept(not_found_response(), scope, receive, send)
        else:
            await not_found(scope, receive, send)

    return answer


def refuse_strangers(settings: Settings, authenticate: Authenticate | None) -> None:
    """Refuse to serve other machines where nobody is asked who is calling.

    Raises:
        ConfigurationError: The host is not a loopback address and there is no authentication.
    """
    if authenticate is None and settings.auth == "none" and not is_loopback_name(settings.host):
        raise ConfigurationError(
            f"Without --auth only loopback addresses are served, not --host {settings.host}; "
            "add --auth bearer:FILE or --auth header:NAME."
        )


def _description_of(operations: list[Operation], prefix: str) -> Operation:
    async def answer(_: Request) -> Response:
        return json_response(document)

    own = Operation(
        "GET",
        "/openapi.json",
        "Describe the API.",
        (Success(200, "This document.", "application/json", {"type": "object"}),),
        open_endpoint=answer,
    )
    document = description([*operations, own], prefix=prefix, version=__version__)
    return own
