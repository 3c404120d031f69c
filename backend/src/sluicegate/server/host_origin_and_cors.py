"""Access checks before a request is read: the size of its head, Host and Origin; and CORS."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response

from sluicegate.errors import Forbidden, Malformed, RequestError, TooLarge
from sluicegate.server.network_addresses import address_of, is_loopback_name
from sluicegate.server.responses import refusal_response, respond_before_accept

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from sluicegate.server.settings import Settings

ALLOWED_HEADERS: Final = "content-type, authorization, x-ai-sdk, x-release"
EXPOSED_HEADERS: Final = "x-error-code, retry-after"
ALLOWED_METHODS: Final = "GET, POST, PATCH, DELETE"

_HOST: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+?)\.?(?::([0-9]{1,5}))?")
_ORIGIN: Final = re.compile(r"(https?)://(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::([0-9]{1,5}))?")
_DEFAULT_PORTS: Final = {"http": "80", "https": "443"}
_SCHEMES: Final = {"ws": "http", "wss": "https"}

_TEST_CLIENT: Final = (
    "The host name testserver, of Starlette's TestClient, is not served here; create the client "
    "with base_url='http://127.0.0.1:8000' and client=('127.0.0.1', 50000), or start the server "
    "with --allowed-host testserver."
)


class Access:
    """Middleware that refuses a request before its body is read, and adds the headers of CORS.

    A refusal names the flag that would allow the request. Starlette's `CORSMiddleware` knows no
    origins that follow from the Host, and refuses others with a 400 that names nothing.

    Args:
        app: The application.
        settings: The allowed hosts and origins and the limits of a head.
        authenticated: Whether users are authenticated; otherwise pages of this machine may call.
    """

    def __init__(self, app: ASGIApp, *, settings: Settings, authenticated: bool) -> None:
        self._app = app
        self._settings = settings
        self._is_local = is_loopback_name(settings.host)
        self._loopback_origins = self._is_local and not authenticated
        self._origins = {_with_port(origin) for origin in settings.origins}
        self._hosts = set(settings.allowed_hosts)
        bound = address_of(settings.host)
        if bound is None or not bound.is_unspecified:
            self._hosts.add(settings.host.lower())
        if settings.public_url is not None:
            public = urlsplit(settings.public_url)
            self._origins.add(_with_port(f"{public.scheme}://{public.netloc}".lower()))
            self._hosts.add((public.hostname or "").lower())
        self._hosts = {host.strip("[]") for host in self._hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse the request, answer a preflight, or call the application and add CORS headers."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        try:
            self._check_head(scope)
            host = self._check_host(scope, headers)
            origin = self._check_origin(scope, headers, host)
        except RequestError as error:
            await respond_before_accept(refusal_response(error), scope, receive, send)
            return
        if origin is None or scope["type"] == "websocket":
            await self._app(scope, receive, send)
        elif scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
            await _preflight(origin)(scope, receive, send)
        else:
            await self._app(scope, receive, _add_cors_headers(send, origin))

    def _check_head(self, scope: Scope) -> None:
        limits = self._settings
        fields = scope["headers"]
        if len(fields) > limits.max_head_fields:
            raise TooLarge(f"The request has over {limits.max_head_fields} headers; send fewer.")
        size = len(scope.get("raw_path") or scope["path"]) + len(scope["query_string"])
        # The line of a field is its name, a colon, a space, its value and CRLF.
        size += sum(len(name) + len(value) + 4 for name, value in fields)
        if size > limits.max_head_bytes:
            raise TooLarge(
                f"The address and headers are over {limits.max_head_bytes:,} bytes; send less."
            )

    def _check_host(self, scope: Scope, headers: Headers) -> str:
        fields = headers.getlist("host")
        match = _HOST.fullmatch(fields[0]) if len(fields) == 1 else None
        if match is None:
            raise Malformed("The request must have one Host header with a host name.")
        name = match[1].lower().strip("[]")
        if name in self._hosts or (self._is_local and is_loopback_name(name)):
            return fields[0]
        # A page that rebinds a host name cannot forge the address to which the peer connected.
        local_address = str((scope.get("server") or ("",))[0]).strip("[]")
        if is_loopback_name(local_address) and is_loopback_name(name):
            return fields[0]
        if name == local_address and address_of(name) is not None:
            return fields[0]
        if name == "testserver":
            raise Forbidden(_TEST_CLIENT, code="host")
        raise Forbidden(
            f"The host name {name} is not served here; "
            f"start the server with --allowed-host {name} to allow it.",
            code="host",
        )

    def _check_origin(self, scope: Scope, headers: Headers, host: str) -> str | None:
        fields = headers.getlist("origin")
        if not fields:
            return None
        match = _ORIGIN.fullmatch(fields[0]) if len(fields) == 1 else None
        if match is None:
            raise Forbidden(
                "Pages without an origin of their own may not call this server; "
                "serve the page over HTTP and start the server with --origin for its address."
            )
        origin = _with_port(fields[0])
        scheme = _SCHEMES.get(scope["scheme"], scope["scheme"])
        if origin == _with_port(f"{scheme}://{host.lower()}") or origin in self._origins:
            return fields[0]
        if self._loopback_origins and is_loopback_name(match[2].strip("[]")):
            return fields[0]
        raise Forbidden(
            f"Pages from {fields[0]} may not call this server; "
            f"start the server with --origin {fields[0]} to allow it."
        )


def _with_port(origin: str) -> str:
    """Return an origin with its port, which is optional if it is the default of the scheme."""
    scheme, _, authority = origin.partition("://")
    if re.search(r":[0-9]+$", authority):
        return origin
    return f"{origin}:{_DEFAULT_PORTS.get(scheme, '')}"


def _preflight(origin: str) -> Response:
    return Response(
        status_code=204,
        headers={
            "access-control-allow-origin": origin,
            "access-control-allow-credentials": "true",
            "access-control-allow-methods": ALLOWED_METHODS,
            "access-control-allow-headers": ALLOWED_HEADERS,
            "access-control-max-age": "600",
            "vary": "origin",
        },
    )


def _add_cors_headers(send: Send, origin: str) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers["access-control-allow-origin"] = origin
            headers["access-control-allow-credentials"] = "true"
            headers["access-control-expose-headers"] = EXPOSED_HEADERS
            headers.add_vary_header("origin")
        await send(message)

    return send_with_headers
