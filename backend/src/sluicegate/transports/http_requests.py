"""Parsing of HTTP requests: the JSON body, the chat id and the headers of the client."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sluicegate.errors import Malformed, RequestTimeout, TooLarge, Unknown, UnsupportedMediaType
from sluicegate.transports.large_request_queue import LARGE
from sluicegate.wire.ids import is_valid_id
from sluicegate.wire.requests import parse_chat_request

if TYPE_CHECKING:
    from pydantic import JsonValue
    from starlette.datastructures import Headers
    from starlette.requests import Request

    from sluicegate.transports.large_request_queue import LargeRequests
    from sluicegate.wire.limits import RequestLimits
    from sluicegate.wire.requests import ChatRequest


@dataclass(frozen=True)
class BodyLimits:
    """The size of a body in bytes, and the seconds in which it must have arrived.

    ``large`` admits and parses large bodies.
    """

    max_bytes: int
    timeout: float
    large: LargeRequests


async def read_json(request: Request, limits: BodyLimits, *, user: str) -> JsonValue:
    """Read the body of a user's request as JSON; its bytes are counted while they arrive.

    Raises:
        UnsupportedMediaType: It is not ``application/json`` in UTF-8, or it is compressed.
        TooLarge: It is longer than the limit; bytes beyond the limit are not kept.
        RequestTimeout: It did not arrive in time.
        TooManyRequests: Other large bodies of the user arrive.
        Malformed: It is not JSON as `strict_json` reads it.
    """
    _check_content_type(request.headers)
    async with _Body(request, limits, user) as body:
        data = await body.read()
        return await limits.large.run(len(data), lambda: limits.large.loads(data))


async def read_chat_request(
    request: Request, limits: BodyLimits, fields: RequestLimits, *, own_files: str, user: str
) -> ChatRequest:
    """Read the body as a chat request; raises as `read_json` and `parse_chat_request` do."""
    _check_content_type(request.headers)
    async with _Body(request, limits, user) as body:
        # The parser gets the only reference, so that no body is held beside the files in it.
        unread = [await body.read()]
        return await limits.large.run(
            len(unread[0]),
            lambda: parse_chat_request(
                limits.large.loads(unread.pop()), fields, own_files=own_files
            ),
        )


def _check_content_type(headers: Headers) -> None:
    media_type, *parameters = headers.get("content-type", "").lower().split(";")
    if len(headers.getlist("content-type")) > 1 or media_type.strip() != "application/json":
        raise UnsupportedMediaType("The body must be JSON; send content-type: application/json.")
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "charset" and value.strip().strip('"') not in ("utf-8", "utf8"):
            raise UnsupportedMediaType("The body must be in UTF-8; send JSON in UTF-8.")


async def read_bytes(request: Request, limits: BodyLimits, *, user: str) -> bytes:
    """Read the raw body of a user's request; its bytes are counted while they arrive.

    Raises:
        UnsupportedMediaType: It is compressed.
        TooLarge: It is longer than the limit.
        RequestTimeout: It did not arrive in time.
        TooManyRequests: Other large bodies of the user arrive.
    """
    async with _Body(request, limits, user) as body:
        return await body.read()


class _Body:
    """A body that is being read; it waits for admission once it is large."""

    def __init__(self, request: Request, limits: BodyLimits, user: str) -> None:
        self._request = request
        self._limits = limits
        self._user = user
        self._held = contextlib.AsyncExitStack()
        self._is_admitted = False

    async def __aenter__(self) -> _Body:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._held.aclose()

    async def read(self) -> bytes:
        """Read the whole body; raises as `read_bytes`."""
        request, limits = self._request, self._limits
        if request.headers.get("content-encoding", "identity").strip().lower() != "identity":
            raise UnsupportedMediaType("The body must not be compressed; send it as it is.")
        declared = _declared_length(request.headers)
        self._check_size(declared)
        await self._admit(declared)
        received: list[bytes] = []
        size = 0
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(limits.timeout) as deadline:
                async for data in request.stream():
                    size += len(data)
                    self._check_size(size)
                    received.append(data)
                    if size >= LARGE and not self._is_admitted:
                        # The wait is not the client's.
                        deadline.reschedule(None)
                        await self._admit(size)
                        deadline.reschedule(loop.time() + limits.timeout)
        except TimeoutError:
            raise RequestTimeout from None
        return b"".join(received)

    def _check_size(self, size: int) -> None:
        if size > self._limits.max_bytes:
            raise TooLarge(f"The body is over {self._limits.max_bytes:,} bytes; send less.")

    async def _admit(self, size: int) -> None:
        if size >= LARGE:
            self._is_admitted = True
            await self._held.enter_async_context(
                self._limits.large.admission(self._user, within=self._limits.timeout)
            )


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
