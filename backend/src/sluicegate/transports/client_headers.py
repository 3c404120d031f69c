"""The client of a request, from its headers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from sluicegate.engine.client_request_options import RequestingClient
from sluicegate.errors import Malformed

if TYPE_CHECKING:
    from collections.abc import Mapping

_MAJORS: Final[dict[str, Literal[6, 7]]] = {"6": 6, "7": 7}

_RELEASES: Final[dict[str, Literal["deferred", "preview", "progressive"]]] = {
    "deferred": "deferred",
    "preview": "preview",
    "progressive": "progressive",
}


def client_from_headers(
    headers: Mapping[str, str], *, via: str, default_major: Literal["6", "7"] = "6"
) -> RequestingClient:
    """Return the client that the headers ``x-ai-sdk`` and ``x-release`` describe.

    Args:
        headers: The headers, with names in lower case.
        via: The name of the transport.
        default_major: The major version of a client without ``x-ai-sdk``.

    Raises:
        Malformed: A header has a value that the protocol does not define.
    """
    major = _MAJORS.get(headers.get("x-ai-sdk", default_major))
    if major is None:
        raise Malformed("The header x-ai-sdk must be 6 or 7, the major version of the AI SDK.")
    requested = headers.get("x-release")
    if requested is None:
        return RequestingClient(major=major, via=via)
    release = _RELEASES.get(requested)
    if release is None:
        raise Malformed("The header x-release must be deferred, preview or progressive.")
    return RequestingClient(major=major, release=release, via=via)
