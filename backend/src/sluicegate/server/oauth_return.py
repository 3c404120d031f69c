"""Where a provider sends a person back after a consent: the page that asked is told the address.

A page opens the provider's address of an ``adk_request_credential`` call in a window of its own.
The provider sends that window here, and it hands its own address, with the code in it, to the page
that opened it, or to every page of this origin. Nothing is read or kept by the server.
"""

from __future__ import annotations

import json
from base64 import b64encode
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from starlette.responses import Response

from sluicegate.server.operations import Operation, Success

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
    """Return the operation that a provider sends people back to."""
    script = _SCRIPT % {"name": json.dumps(MESSAGE), "origins": json.dumps(settings.origins)}
    digest = b64encode(sha256(script.encode()).digest()).decode()
    page = (_PAGE % script).encode()
    headers = {
        "content-security-policy": (
            f"default-src 'none'; script-src 'sha256-{digest}'; base-uri 'none'; "
            "form-action 'none'; frame-ancestors 'none'"
        ),
        # The address holds a code that is as good as a password for a minute.
        "referrer-policy": "no-referrer",
        "cache-control": "no-store",
        "x-content-type-options": "nosniff",
    }

    async def answer(_: Request) -> Response:
        return Response(page, media_type="text/html", headers=headers)

    return [
        Operation(
            "GET",
            "/oauth/return",
            "Come back from the consent of a provider; the page that asked is told the address.",
            (Success(200, "A page that closes itself.", "text/html", {"type": "string"}),),
            open_endpoint=answer,
            outside=True,
        )
    ]
