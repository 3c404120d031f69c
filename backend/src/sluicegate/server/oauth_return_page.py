"""The redirect URI of OAuth: a page that posts its own URL to the chat page and closes itself.

The chat page opens the authorization URL of an ``adk_request_credential`` call in a new window.
The provider redirects that window here, and it posts its URL, with the code, to the page that
opened it and to every page of this origin. The server neither reads nor stores the code.
"""

from __future__ import annotations

import json
from base64 import b64encode
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from starlette.responses import Response

from sluicegate.server.operation_types import Operation, Success

if TYPE_CHECKING:
    from starlette.requests import Request

    from sluicegate.server.settings import Settings

MESSAGE: Final = "sluicegate-oauth"
"""The ``type`` of the message to the page, and the name of the channel."""

_SCRIPT: Final = """
const said = { type: %(name)s, url: location.href };
const origins = new Set([location.origin, ...%(origins)s]);
for (const origin of origins) window.opener?.postMessage(said, origin);
new BroadcastChannel(%(name)s).postMessage(said);
history.replaceState(null, "", location.pathname);
window.close();
"""
_PAGE: Final = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Back to the chat</title>
<p>You can close this window and go back to the chat.</p>
<script>%s</script>
</html>
"""


def oauth_operations(settings: Settings) -> list[Operation]:
    """Return the operation of the redirect URI."""
    script = _SCRIPT % {"name": json.dumps(MESSAGE), "origins": json.dumps(settings.origins)}
    digest = b64encode(sha256(script.encode()).digest()).decode()
    page = (_PAGE % script).encode()
    headers = {
        "content-security-policy": (
            f"default-src 'none'; script-src 'sha256-{digest}'; base-uri 'none'; "
            "form-action 'none'; frame-ancestors 'none'"
        ),
        # The URL contains a code that is a credential for a minute.
        "referrer-policy": "no-referrer",
        # The page that opened this window may have another origin, and must be reached from here.
        "cross-origin-opener-policy": "unsafe-none",
        "cache-control": "no-store",
        "x-content-type-options": "nosniff",
    }

    async def redirected(_: Request) -> Response:
        return Response(page, media_type="text/html", headers=headers)

    return [
        Operation(
            "GET",
            "/oauth/return",
            "Redirect address for OAuth providers; the requesting page receives it.",
            (Success(200, "A page that closes itself.", "text/html", str),),
            open_endpoint=redirected,
            outside=True,
        )
    ]
