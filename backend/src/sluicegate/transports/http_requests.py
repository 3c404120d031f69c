"""What a request says besides its route: its body, its chat, and what its client can read."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from sluicegate.engine.turn.reader import Client
from sluicegate.errors import Malformed, RequestTimeout, TooLarge, Unknown, UnsupportedMediaType
from sluicegate.wire import strict_json
from sluicegate.wire.requests import is_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import JsonValue
    from starlette.datastructures import Headers
    from starlette.requests import Request

_MAJORS: Final[dict[str, Literal[6, 7]]] = {"6": 6, "7": 7}
_RELEASES: Final[dict[str, Literal["deferred", "preview", "progressive"]]] = {
    "deferred": "deferred",
    "preview": "preview",
    "progressive": "progressive",
}
PARSED_ASIDE: Final = 512 * 1024
"""Bytes from which a body or a frame is parsed in a thread: other streams go on meanwhile."""


@dataclass(frozen=True)
class BodyLimits:
    """How much a body may bring, and how long it may take."""

    max_bytes: int
    seconds: float


async def read_json(request: Request, limits: BodyLimits) -> JsonValue:
    """Read the body as JSON; its bytes are counted while they arrive.

    Raises:
        UnsupportedMediaType: It is not ``application/json`` in UTF-8, or it is compressed.
        TooLarge: It is longer than the limit; what is over the limit is never stored.
        RequestTimeout: It did not end in time.
        Malformed: It is not JSON as `strict_json` reads it.
    """
    _check_content_type(request.headers)
    body = await read_bytes(request, limits)
    if len(body) < PARSED_ASIDE:
        return strict_json.loads(body)
    return await asyncio.to_thread(strict_json.loads, body)


def _check_content_type(headers: Headers) -> None:
    media_type, *parameters = headers.get("content-type", "").lower().split(";")
    if len(headers.getlist("content-type")) > 1 or media_type.strip() != "application/json":
        raise UnsupportedMediaType("The body must be JSON; send content-type: application/json.")
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "charset" and value.strip().strip('"') not in ("utf-8", "utf8"):
            raise UnsupportedMediaType("The body must be in UTF-8; send JSON in UTF-8.")


async def read_bytes(request: Request, limits: BodyLimits) -> bytes:
    """Read the body as it is; its bytes are counted while they arrive.

    Raises:
        UnsupportedMediaType: It is compressed.
        TooLarge: It is longer than the limit.
        RequestTimeout: It did not end in time.
    """
    if request.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise UnsupportedMediaType("The body must not be compressed; send it as it is.")
    too_large = TooLarge(f"The body is over {limits.max_bytes:,} bytes; send less.")
    if _declared_length(request.headers) > limits.max_bytes:
        raise too_large
    pieces: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(limits.seconds):
            async for piece in request.stream():
                size += len(piece)
                if size > limits.max_bytes:
                    raise too_large
                pieces.append(piece)
    except TimeoutError:
        raise RequestTimeout from None
    return b"".join(pieces)


def _declared_length(headers: Headers) -> int:
    declared = headers.get("content-length", "0")
    if not (declared.isascii() and declared.isdigit()):
        raise Malformed("The header content-length is not a number.")
    # Servers refuse two lengths that differ; twenty digits are too large in any case.
    return int(declared[:20])


def chat_id(request: Request) -> str:
    """Return the chat that the path names.

    Raises:
        Unknown: No chat can have this id.
    """
    given: object = request.path_params["id"]
    if not is_id(given):
        raise Unknown
    return given


def client_of(headers: Mapping[str, str], *, via: str, unsaid: Literal["6", "7"] = "6") -> Client:
    """Return what the client says of itself: ``x-ai-sdk`` and ``x-release``, in lower case.

    ``via`` is the name of the transport, ``unsaid`` the major of a client that does not say its
    own.

    Raises:
        Malformed: One of them has another value than the protocol knows.
    """
    major = _MAJORS.get(headers.get("x-ai-sdk", unsaid))
    if major is None:
        raise Malformed("The header x-ai-sdk must be 6 or 7, the major version of the AI SDK.")
    wish = headers.get("x-release")
    if wish is None:
        return Client(major=major, via=via)
    release = _RELEASES.get(wish)
    if release is None:
        raise Malformed("The header x-release must be deferred, preview or progressive.")
    return Client(major=major, release=release, via=via)
