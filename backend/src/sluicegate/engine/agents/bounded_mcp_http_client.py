"""The HTTP client of an MCP toolset: its answers are bounded, and no redirect is followed.

A toolset whose author gives it a client (``httpx_client_factory``) keeps that one.
"""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any, Final, cast

import httpx2
from google.adk.tools.mcp_tool import SseConnectionParams, StreamableHTTPConnectionParams

from sluicegate.tools.remote_tool_limits import (
    MAX_LISTED_BYTES,
    MAX_RESULT_BYTES,
    MAX_RESULT_VALUES,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from google.adk.tools.base_toolset import BaseToolset

logger = logging.getLogger("sluicegate")

_CALL: Final = "tools/call"
_HTTP: Final = (SseConnectionParams, StreamableHTTPConnectionParams)


def bound_client_of(toolset: BaseToolset) -> None:
    """Give an MCP toolset a bounded client, unless its author has chosen one.

    The connection parameters are the author's object, which ADK reads for each new session.
    """
    params = getattr(toolset, "connection_params", None)
    if not isinstance(params, _HTTP):
        return
    default = type(params).model_fields["httpx_client_factory"].default
    if params.httpx_client_factory is not default:
        return

    def bounded_client(
        headers: dict[str, str] | None = None,
        timeout: httpx2.Timeout | None = None,
        auth: httpx2.Auth | None = None,
    ) -> httpx2.AsyncClient:
        # ADK: its types name httpx, but with version 2 of mcp its clients are those of httpx2.
        make = cast("Any", default)
        client: httpx2.AsyncClient = make(headers=headers, timeout=timeout, auth=auth)
        client.headers["accept-encoding"] = "identity"
        client.event_hooks["response"].append(_bound)
        return client

    params.httpx_client_factory = cast("Any", bounded_client)


async def _bound(response: httpx2.Response) -> None:
    """Bound a response whose body is not read yet.

    Raises:
        httpx2.RemoteProtocolError: It is a redirect, or compressed.
    """
    problem = _problem(response)
    if problem is not None:
        _refuse(response.request, problem)
    if isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = _BoundedStream(response.stream, response.request)


def _problem(response: httpx2.Response) -> str | None:
    if 300 <= response.status_code < 400:
        return "answers with a redirect, which is not followed; configure its final URL"
    # A few compressed bytes expand to any number of bytes.
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        return "compresses its answers; turn that off"
    return None


def _refuse(request: httpx2.Request, problem: str) -> None:
    logger.warning("the MCP server %s %s", request.url.netloc.decode("ascii", "replace"), problem)
    raise httpx2.RemoteProtocolError(f"the MCP server {problem}", request=request)


class _BoundedStream(httpx2.AsyncByteStream):
    """A response whose bytes and values are counted.

    A stream that the client holds open (``GET``) is counted from one event to the next.
    """

    def __init__(self, stream: httpx2.AsyncByteStream, request: httpx2.Request) -> None:
        self._stream = stream
        self._request = request
        self._is_open_end = request.method == "GET"
        is_large = self._is_open_end or _method(request) == _CALL
        self._max_bytes = MAX_RESULT_BYTES if is_large else MAX_LISTED_BYTES
        self._bytes = self._values = 0
        self._end = b""

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        async for data in self._stream:
            self._count(data)
            yield data

    async def aclose(self) -> None:
        await self._stream.aclose()

    def _count(self, data: bytes) -> None:
        if self._is_open_end:
            data = self._after_last_event(data)
        self._bytes += len(data)
        self._values += data.count(b",")
        if self._bytes > self._max_bytes or self._values > MAX_RESULT_VALUES:
            _refuse(
                self._request,
                f"answers with more than {self._max_bytes:,} bytes or {MAX_RESULT_VALUES:,} values",
            )

    def _after_last_event(self, data: bytes) -> bytes:
        """Return what follows the last empty line, which ends an event."""
        # A line may end in two characters, and an empty line in two pieces.
        lines = (self._end + data).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        self._end = data[-3:]
        _, found, rest = lines.rpartition(b"\n\n")
        if not found:
            return data
        self._bytes = self._values = 0
        return rest


def _method(request: httpx2.Request) -> Any:
    try:
        body = json.loads(request.content or b"null")
    except (ValueError, httpx2.RequestNotRead):
        return None
    return body.get("method") if isinstance(body, dict) else None
