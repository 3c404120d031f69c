"""Security headers of every response: isolation from other sites, and HTTPS once it is used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.datastructures import MutableHeaders

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADERS: Final = {
    # No window that another site has opened, or that this one opens, reaches the page.
    "cross-origin-opener-policy": "same-origin",
    # No other site embeds a response; CORS allows more, request by request.
    "cross-origin-resource-policy": "same-origin",
    # The page asks for the microphone in live chats, and a tool of the page for the location.
    "permissions-policy": (
        "accelerometer=(), bluetooth=(), browsing-topics=(), camera=(), display-capture=(), "
        "geolocation=(self), gyroscope=(), hid=(), magnetometer=(), microphone=(self), midi=(), "
        "payment=(), serial=(), usb=()"
    ),
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
"""Headers of every response, unless the response has its own."""

STRICT_TRANSPORT_SECURITY: Final = "max-age=31536000"
"""A year. Whether subdomains serve HTTPS, too, only the operator of the domain knows."""


class SecurityHeaders:
    """Middleware that adds the headers to the responses of HTTP requests.

    Args:
        app: The application.
        is_https: Whether browsers reach the application by HTTPS, through a proxy.
    """

    def __init__(self, app: ASGIApp, *, is_https: bool) -> None:
        self._app = app
        self._is_https = is_https

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Call the application; add the headers to its response."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        is_https = self._is_https or scope["scheme"] == "https"

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                if is_https:
                    headers["strict-transport-security"] = STRICT_TRANSPORT_SECURITY
            await send(message)

        await self._app(scope, receive, send_with_headers)
