"""Parsing of HTTP requests: the JSON body, the chat id and the headers of the client."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from sluicegate.engine.turn.reader import Client
from sluicegate.errors import Malformed, RequestTimeout, TooLarge, Unknown, UnsupportedMediaType
from sluicegate.wire import strict_json
from sluicegate.wire.requests import is_valid_id

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
PARSE_IN_THREAD_BYTES: Final = 512 * 1024
"""Bytes from which a body or a frame is parsed in a thread, so that other streams continue."""


@dataclass(frozen=True)
class BodyLimits:
    """The size of a body in bytes, and the seconds in which it must have arrived."""

    max_bytes: int
    timeout: float


async def read_json(request: Request, limits: BodyLimits) -> JsonValue:
    """Read the body as JSON; its bytes are counted while they arrive.

    Raises:
        UnsupportedMediaType: It is not ``application/json`` in UTF-8, or it is compressed.
        TooLarge: It is longer than the limit; bytes beyond the limit are not kept.
        RequestTimeout: It did not arrive in time.
        Malformed: It is not JSON as `strict_json` reads it.
    """
    _check_content_type(request.headers)
    body = await read_bytes(request, limits)
    if len(body) < PARSE_IN_THREAD_BYTES:
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
    """Read the raw body; its bytes are counted while they arrive.

    Raises:
        UnsupportedMediaType: It is compressed.
        TooLarge: It is longer than the limit.
        RequestTimeout: It did not arrive in time.
    """
    if request.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise UnsupportedMediaType("The body must not be compressed; send it as it is.")
    too_large = TooLarge(f"The body is over {limits.max_bytes:,} bytes; send less.")
    if _declared_length(request.headers) > limits.max_bytes:
        raise too_large
    received: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(limits.timeout):
            async for data in request.stream():
                size += len(data)
                if size > limits.max_bytes:
                    raise too_large
                received.append(data)
    except TimeoutError:
        raise RequestTimeout from None
    return b"".join(received)


def _declared_length(headers: Headers) -> int:
    declared = headers.get("content-length", "0")
    if not (declared.isascii() and declared.isdigit()):
        raise Malformed("The header content-length is not a number.")
    # Servers refuse two different lengths; a number of twenty digits is too large anyway.
    return int(declared[:20])


def chat_id(request: Request) -> str:
    """Return the chat id of the path.

    Raises:
        Unknown: It is not a valid chat id.
    """
    value: object = request.path_params["id"]
    if not is_valid_id(value):
        raise Unknown
    return value


def client_from_headers(
    headers: Mapping[str, str], *, via: str, default_major: Literal["6", "7"] = "6"
) -> Client:
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
        return Client(major=major, via=via)
    release = _RELEASES.get(requested)
    if release is None:
        raise Malformed("The header x-release must be deferred, preview or progressive.")
    return Client(major=major, release=release, via=via)
