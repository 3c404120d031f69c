"""The cookie that holds the random id of a session: its name, its attributes, who may send it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from sluicegate.server.network_addresses import is_loopback_name

if TYPE_CHECKING:
    from starlette.requests import HTTPConnection, Request


COOKIE: Final = "sluicegate-session"
"""The name of the cookie on a loopback address without TLS."""

SECURE_COOKIE: Final = f"__Host-{COOKIE}"
"""Its name on any other: browsers accept this prefix only over HTTPS and from the host itself."""

MAX_AGE: Final = 12 * 60 * 60
"""Seconds after which a session ends and a browser deletes the cookie."""

_ID: Final = re.compile(r"[A-Za-z0-9_-]{43}")
_HOST: Final = re.compile(r"(?:https?://)?(\[[0-9a-f:.]+\]|[a-z0-9._-]+?)\.?(?::[0-9]+)?")


def accepted_session_id(connection: HTTPConnection) -> str | None:
    """Return the session of the cookie, None if the cookie is not accepted.

    It is accepted only from a page that may call. The sockets of such a page and its requests
    that change something have an Origin; its images have ``sec-fetch-site`` instead.
    """
    headers = connection.headers
    if "authorization" in headers:
        return None
    if "origin" not in headers and headers.get("sec-fetch-site") != "same-origin":
        return None
    return session_id_of(connection)


def session_id_of(connection: HTTPConnection) -> str | None:
    """Return the session of the cookie.

    Off loopback a cookie without the prefix may be one that a neighbouring host has set.
    """
    session_id = connection.cookies.get(SECURE_COOKIE, "")
    if not session_id and not _is_secure(connection):
        session_id = connection.cookies.get(COOKIE, "")
    return session_id if _ID.fullmatch(session_id) else None


def session_cookie_header(request: Request, value: str, *, max_age: int) -> str:
    """Return the header ``set-cookie``; ``max_age`` is in seconds, and 0 deletes the cookie."""
    is_secure = _is_secure(request)
    name = SECURE_COOKIE if is_secure else COOKIE
    cookie = f"{name}={value}; Max-Age={max_age}; Path=/; HttpOnly; SameSite=Strict"
    return f"{cookie}; Secure" if is_secure else cookie


def _is_secure(connection: HTTPConnection) -> bool:
    """Whether the page has TLS or needs it: only on loopback browsers may go without.

    The Origin of the page comes before the Host, which a proxy may have changed.
    """
    page = connection.headers.get("origin", connection.headers.get("host", "")).lower()
    if page.startswith("https:") or connection.url.scheme in ("https", "wss"):
        return True
    match = _HOST.fullmatch(page)
    return match is None or not is_loopback_name(match[1].strip("[]"))
