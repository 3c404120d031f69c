"""The application: engine, routes, middleware and lifespan, put together from the settings."""

from __future__ import annotations

import contextlib
import importlib
import os
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeAlias, Unpack

from google.adk.apps.app import App
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware

from sluicegate._version import __version__
from sluicegate.engine.hooks import NO_HOOKS, EngineHooks
from sluicegate.engine.timeouts_and_intervals import DEFAULT_TIMINGS, EngineTimings
from sluicegate.errors import ConfigurationError
from sluicegate.live.engine_with_live_chats import LiveEngine
from sluicegate.live.run_config import live_run_config
from sluicegate.server.approval_history import history_operations
from sluicegate.server.approvals import approval_operations
from sluicegate.server.asgi_private_api_check import check_private_apis
from sluicegate.server.authentication import authenticator, identify, local_user
from sluicegate.server.chats import chat_list_operations
from sluicegate.server.cookie_authentication import accept_cookies, uses_tokens
from sluicegate.server.cookie_session_connections import ReleaseSessions, SessionConnections
from sluicegate.server.demo_users import DemoUsers
from sluicegate.server.engine_holder import EngineHolder, OpenEngine
from sluicegate.server.failed_authentications import FailureLimits, limit_failures
from sluicegate.server.files import file_operations
from sluicegate.server.host_origin_and_cors import Access
from sluicegate.server.network_addresses import is_loopback_name
from sluicegate.server.oauth_return_page import oauth_operations
from sluicegate.server.openapi import describe_api
from sluicegate.server.operation_types import Operation, Success
from sluicegate.server.page import Page, built_page, page_operations
from sluicegate.server.page_theme import load_theme
from sluicegate.server.probes import probe_operations
from sluicegate.server.request_log import AccessLog, LogRefusals
from sluicegate.server.responses import (
    ErrorResponses,
    json_response,
    not_found_response,
    respond_before_accept,
    respond_to_http_exception,
)
from sluicegate.server.role_recording import RecordRoles
from sluicegate.server.routes import routes
from sluicegate.server.security_headers import SecurityHeaders
from sluicegate.server.session_operations import session_operations
from sluicegate.server.settings import load_settings
from sluicegate.server.shutdown import RefuseDuringShutdown, Shutdown
from sluicegate.server.sockets import (
    chat_transport,
    live_transport,
    socket_operations,
    socket_route,
)
from sluicegate.server.turns import turn_operations
from sluicegate.server.user_events import user_event_operations
from sluicegate.server.user_request_limits import CountConnections, UserLimits
from sluicegate.server.worker_registrations import registration_operations
from sluicegate.transports.http_requests import BodyLimits
from sluicegate.transports.large_request_queue import LargeRequests
from sluicegate.transports.slow_clients import WriteLimits
from sluicegate.transports.sse import SseTransport
from sluicegate.transports.user_events import (
    MAX_HEARTBEAT,
    EventStreamLimits,
    UserEventsTransport,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from pathlib import Path

    from google.adk.agents import BaseAgent
    from google.adk.agents.run_config import RunConfig
    from google.adk.models import BaseLlm
    from google.adk.workflow import BaseNode
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Receive, Scope, Send

    from sluicegate.engine.hooks import ToolsFor
    from sluicegate.engine.interface import Engine
    from sluicegate.server.authentication import Authenticate
    from sluicegate.server.create_app_keywords import SettingsKeywords
    from sluicegate.server.settings import Settings
    from sluicegate.tools.approval_terms import Policy

    Target: TypeAlias = BaseAgent | BaseNode | App


def create_app(
    agent: Target,
    *,
    authenticate: Authenticate | None = None,
    policy: Policy | None = None,
    tools_for: ToolsFor | None = None,
    live: RunConfig | None = None,
    **settings: Unpack[SettingsKeywords],
) -> Starlette:
    """Return the application that serves an agent to AI SDK clients.

    It runs alone or mounted under any path of a Starlette or FastAPI application. A mounted
    application gets no lifespan events: the engine is then opened by the first request and
    closed with the event loop; a parent that needs it earlier enters
    ``app.router.lifespan_context(app)`` in its own lifespan.

    Args:
        agent: The root agent, a workflow node, or an ADK ``App``. It is not changed.
        authenticate: ``async (connection) -> user id, User or None``, in place of the setting
            ``auth``. The connection has the headers, cookies and the peer. A ``User`` has roles.
        policy: ``async (call, user) -> True, False or a sentence``: whether a gated call may run.
            It is called before a person is asked, and again right before the call begins.
        tools_for: ``(user, chat) -> tools``, also async: the tools and toolsets that the root agent
            has in a chat besides its own, or a mapping of them by the names of agents. It is called
            when a turn starts; if it raises, the turn fails.
        live: ADK's ``RunConfig`` of live chats; the fields that the server sets itself are refused.
        **settings: Fields of `Settings`; the others come from the environment variables
            ``SLUICEGATE_…`` or are the defaults.

    Raises:
        ConfigurationError: A setting is unknown or cannot be used. An agent that cannot be
            served raises it when the engine opens.
    """
    chosen = load_settings(os.environ, settings)
    open_engine = engine_of(agent, chosen, EngineHooks(policy, tools_for), live)
    return build(open_engine, chosen, authenticate=authenticate).app


def engine_of(
    agent: Target,
    settings: Settings,
    hooks: EngineHooks = NO_HOOKS,
    live: RunConfig | None = None,
    timings: EngineTimings = DEFAULT_TIMINGS,
) -> OpenEngine:
    """Return a function that opens the engine of an agent.

    Raises:
        ConfigurationError: The model script cannot be played, the recordings cannot be written, or
            live chats cannot be configured so.
    """
    live_config = live_run_config(settings, live)
    model: BaseLlm | None = None
    if settings.model_script is not None:
        root = agent.root_agent if isinstance(agent, App) else agent
        replay = importlib.import_module("sluicegate.replay")
        name = None if root is None else root.name
        model = replay.ScriptedModel.from_file(settings.model_script, root=name)

    kind, recorder = LiveEngine, None
    if settings.record is not None:
        recording = importlib.import_module("sluicegate.replay.recording_engine")
        kind = recording.RecordingEngine
        recorder = recording.FileRecorder(settings.record, redact=settings.redact)

    async def open_engine() -> Engine:
        engine = await kind.open(
            agent,
            settings.engine,
            model=model,
            timings=timings,
            recorder=recorder,
            hooks=hooks,
        )
        try:
            engine.configure_live(live_config)
        except ConfigurationError:
            await engine.close()
            raise
        return engine

    return open_engine


@dataclass(frozen=True)
class Application:
    """The Starlette application with its engine, its shutdown and its large requests."""

    app: Starlette
    engine: EngineHolder
    shutdown: Shutdown
    large: LargeRequests


def build(
    open_engine: OpenEngine,
    settings: Settings,
    *,
    authenticate: Authenticate | None = None,
    suggestions: Sequence[str] = (),
    page_folder: Path | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Application:
    """Build the application around an engine.

    Args:
        open_engine: Opens the engine.
        settings: The settings of the application.
        authenticate: Takes the place of the setting ``auth``. `DemoUsers` are no authentication.
        suggestions: First messages that the chat page offers if the settings name none.
        page_folder: The build of the chat page; by default that of the package or the checkout.
        clock: Returns seconds, for the limits of failed authentications.

    Raises:
        ConfigurationError: The settings cannot be served, or an installed package cannot be used.
    """
    check_private_apis("starlette", "sse-starlette")
    custom = None if isinstance(authenticate, DemoUsers) else authenticate
    require_authentication(settings, custom)
    own = authenticate or authenticator(settings)
    users = UserLimits(
        per_minute=settings.max_requests_per_minute, connections=settings.max_connections_per_user
    )
    engine = EngineHolder(_connected(open_engine, own, users))
    large = LargeRequests(at_once=settings.max_large_requests, max_values=settings.max_json_values)
    body = BodyLimits(settings.max_body_bytes, settings.body_timeout, large)
    sse = SseTransport(
        body=body,
        limits=settings.request_limits,
        own_files=settings.files_url,
        keep_alive=settings.keep_alive,
        writes=WriteLimits(settings.reader_backlog, settings.reader_patience),
    )
    chat, live = chat_transport(settings, large), live_transport(settings, large)
    failures = FailureLimits(
        burst=settings.max_failed_authentications,
        per_minute=settings.max_failed_authentications_per_minute,
        clock=clock,
    )
    sessions = SessionConnections(settings.recheck_interval)
    accepted = accept_cookies(own, engine, sessions)
    limited = limit_failures(accepted, own, failures, settings)
    if own is not local_user:
        limited = RecordRoles(limited, engine)
    events = UserEventsTransport(
        limits=EventStreamLimits(
            min(settings.keep_alive, MAX_HEARTBEAT),
            settings.recheck_interval,
            settings.reader_patience,
        ),
        authenticate=partial(identify, limited),
    )
    shutdown = Shutdown(engine, (sse, events, chat, live))

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        await engine.get()
        try:
            yield
        finally:
            shutdown.abort()
            await engine.close()

    is_authenticated = custom is not None or settings.auth != "none"
    operations = [
        *turn_operations(sse),
        *chat_list_operations(body),
        *file_operations(
            BodyLimits(settings.max_file_bytes, settings.body_timeout, large),
            is_embedded=bool(settings.origins) or not is_authenticated,
        ),
        *approval_operations(body),
        *history_operations(),
        *user_event_operations(events),
        *session_operations(accepted),
        *oauth_operations(settings),
        *registration_operations(settings, engine, failures),
        *probe_operations(engine, limited),
    ]
    if settings.page:
        find = built_page if page_folder is None else lambda: page_folder
        theme = load_theme(settings, suggestions)
        operations += page_operations(Page(find, prefix=settings.prefix, theme=theme))
    operations += socket_operations()
    operations.append(_openapi_operation(operations, settings.prefix))
    prefix = settings.prefix
    app = Starlette(
        routes=[
            *routes(operations, prefix=prefix, authenticate=limited, engine=engine, limits=users),
            *(
                socket_route(
                    path,
                    transport,
                    authenticate=limited,
                    engine=engine,
                    limits=users,
                    frame_tokens=uses_tokens(own),
                )
                for path, transport in ((f"{prefix}/chat/ws", chat), (f"{prefix}/live", live))
            ),
        ],
        middleware=[
            *([Middleware(AccessLog, clock=clock)] if settings.access_log else []),
            Middleware(LogRefusals, clock=clock),
            Middleware(SecurityHeaders, is_https=(settings.public_url or "").startswith("https:")),
            Middleware(
                Access,
                settings=settings,
                authenticated=is_authenticated,
            ),
            Middleware(ErrorResponses),
            Middleware(RefuseDuringShutdown, shutdown=shutdown),
            Middleware(CountConnections, limits=users),
            Middleware(ReleaseSessions, sessions=sessions),
        ],
        exception_handlers={HTTPException: respond_to_http_exception},
        lifespan=lifespan,
    )
    # A redirect would lose the body of a POST.
    app.router.redirect_slashes = False
    app.router.default = _refuse_unknown_path(app.router.not_found)
    return Application(app, engine, shutdown, large)


def _connected(
    open_engine: OpenEngine, authenticate: Authenticate, users: UserLimits
) -> OpenEngine:
    """Let the engine count rates for the server, and ask its authentication for roles.

    A custom authentication may know the roles of absent users.
    """
    roles_of = getattr(authenticate, "roles_of", None)

    async def open_connected() -> Engine:
        engine = await open_engine()
        engine.share_rate(users.rate)
        if roles_of is not None:
            engine.ask_roles(roles_of)
        return engine

    return open_connected


def _refuse_unknown_path(not_found: ASGIApp) -> ASGIApp:
    """Answer a socket on an unknown path as any other request on it."""

    async def refuse(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await respond_before_accept(not_found_response(), scope, receive, send)
        else:
            await not_found(scope, receive, send)

    return refuse


def require_authentication(settings: Settings, authenticate: Authenticate | None) -> None:
    """Refuse to serve other machines without authentication.

    Raises:
        ConfigurationError: The host is not a loopback address and there is no authentication.
    """
    if authenticate is None and settings.auth == "none" and not is_loopback_name(settings.host):
        raise ConfigurationError(
            f"Without --auth only loopback addresses are served, not --host {settings.host}; "
            "add --auth bearer:FILE or --auth header:NAME."
        )


def _openapi_operation(operations: list[Operation], prefix: str) -> Operation:
    async def openapi(_request: Request, _engine: Engine, _user: str) -> Response:
        return json_response(document)

    operation = Operation(
        "GET",
        "/openapi.json",
        "Describe the API.",
        (Success(200, "This document.", "application/json", {"type": "object"}),),
        endpoint=openapi,
    )
    document = describe_api([*operations, operation], prefix=prefix, version=__version__)
    return operation
