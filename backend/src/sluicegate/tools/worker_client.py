"""The server's side of MCP: one session per call, so that no call depends on another one."""

from __future__ import annotations

import asyncio
import contextlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

import httpx
from mcp import types as mcp
from mcp.client.session import ClientSession
from mcp.client.streamable_http import MCP_SESSION_ID, streamable_http_client
from mcp.shared.exceptions import McpError

from sluicegate.errors import ToolError
from sluicegate.tools.declaration_limits import (
    MAX_LISTED_BYTES,
    MAX_RESULT_BYTES,
    MAX_RESULT_VALUES,
    MAX_TOOLS,
)
from sluicegate.tools.worker_hosts import ConnectionRule
from sluicegate.tools.worker_transport import CheckedTransport

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine

    from mcp.shared.session import ProgressFnT

_Result = TypeVar("_Result")

_MAX_PAGES: Final = 20
_CONNECT_TIMEOUT: Final = 5.0
_RESULT_GRACE: Final = 0.5
"""Seconds in which a result that has arrived is read, after its connection ended."""

_END_TIMEOUT: Final = 2.0
_CALL: Final = "tools/call"


@dataclass(slots=True)
class WorkerClient:
    """A worker's name, URL and credential; its sessions share a pool of connections.

    ``rule`` decides to which addresses the server connects for it.
    """

    name: str
    url: str
    token: Callable[[], str | None]
    rule: ConnectionRule = field(default_factory=ConnectionRule)
    _pool: CheckedTransport | None = None
    _ending: set[asyncio.Task[None]] = field(default_factory=set)

    async def tools(self, seconds: float) -> list[mcp.Tool]:
        """List the tools that the worker offers.

        Raises:
            ToolError: The worker does not answer, or its answer is not valid.
        """
        transport = _SessionTransport(self._connections(), MAX_LISTED_BYTES)

        async def list_pages(session: ClientSession) -> list[mcp.Tool]:
            tools: list[mcp.Tool] = []
            cursor: str | None = None
            for _ in range(_MAX_PAGES):
                params = mcp.PaginatedRequestParams(cursor=cursor)
                page = await self._answer(transport, session.list_tools(params=params))
                tools += page.tools
                cursor = page.nextCursor
                if len(tools) > MAX_TOOLS:
                    raise ToolError(f"The worker {self.name} offers more than {MAX_TOOLS} tools.")
                if cursor is None:
                    return tools
                if not page.tools:
                    raise ToolError(f"The worker {self.name} lists pages without tools.")
            raise ToolError(
                f"The worker {self.name} lists its tools on more than {_MAX_PAGES} pages."
            )

        return await self._run(transport, list_pages, seconds)

    async def call(
        self,
        tool: str,
        arguments: dict[str, Any],
        meta: dict[str, Any],
        progress: ProgressFnT,
        seconds: float,
    ) -> mcp.CallToolResult:
        """Run a tool; a cancelled or late call is cancelled at the worker too (S1-R32).

        Raises:
            ToolError: The worker cannot be reached, the connection breaks, or the call takes too
                long; the sentence says whether the call can have taken effect.
        """
        transport = _SessionTransport(self._connections(), MAX_RESULT_BYTES)
        params = mcp.CallToolRequestParams(
            name=tool, arguments=arguments, _meta=mcp.RequestParams.Meta(**meta)
        )
        request = mcp.ClientRequest(mcp.CallToolRequest(params=params))

        async def call_tool(session: ClientSession) -> mcp.CallToolResult:
            # ``ClientSession.call_tool`` would list all tools again to validate the result.
            sending = session.send_request(request, mcp.CallToolResult, progress_callback=progress)
            try:
                return await self._answer(transport, sending)
            except asyncio.CancelledError:
                await self._cancel(session, transport)
                raise

        return await self._run(transport, call_tool, seconds)

    async def close(self) -> None:
        """End the sessions that are still open, then close the connections."""
        for task in self._ending:
            task.cancel()
        await asyncio.gather(*self._ending, return_exceptions=True)
        if self._pool is not None:
            await self._pool.aclose()
            self._pool = None

    async def _answer(
        self, transport: _SessionTransport, request: Coroutine[Any, Any, _Result]
    ) -> _Result:
        """Wait for the answer to a request, or for the end of the connection without it."""
        sending = asyncio.ensure_future(request)
        disconnect = asyncio.ensure_future(transport.disconnected.wait())
        try:
            await asyncio.wait({sending, disconnect}, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait({sending}, timeout=_RESULT_GRACE)
            if sending.done():
                return sending.result()
            if transport.is_too_long:
                effect = "; whether a call took effect is not known" if transport.is_sent else ""
                raise ToolError(
                    f"The worker {self.name} answers with more than {transport.max_bytes:,} bytes "
                    f"or {MAX_RESULT_VALUES:,} values{effect}."
                )
            raise ConnectionError("the stream of the call ended without its answer")
        finally:
            sending.cancel()
            disconnect.cancel()
            await asyncio.gather(sending, disconnect, return_exceptions=True)

    async def _run(
        self,
        transport: _SessionTransport,
        use: Callable[[ClientSession], Awaitable[_Result]],
        seconds: float,
    ) -> _Result:
        """Use a new session, and turn every failure into a ToolError."""
        try:
            async with asyncio.timeout(seconds), self._session(transport) as session:
                return await use(session)
        except TimeoutError:
            effect = "; whether it took effect is not known" if transport.is_sent else ""
            raise ToolError(
                f"The worker {self.name} did not answer within {seconds:g} s{effect}."
            ) from None
        except ToolError:
            raise
        except Exception as error:  # noqa: BLE001 - exception groups of the MCP client's tasks
            self._raise_tool_error(transport, error)

    def _raise_tool_error(self, transport: _SessionTransport, error: BaseException) -> NoReturn:
        causes = list(_leaves(error))
        tool_error = next((cause for cause in causes if isinstance(cause, ToolError)), None)
        if tool_error is not None:
            raise tool_error from None
        statuses = (e.response.status_code for e in causes if isinstance(e, httpx.HTTPStatusError))
        if next(statuses, None) in (401, 403):
            raise ToolError(
                f"The worker {self.name} refuses this server's credential; nothing ran."
            ) from error
        if transport.is_sent:
            is_refused = any(isinstance(cause, McpError) for cause in causes)
            if is_refused and not transport.disconnected.is_set():
                raise ToolError(f"The worker {self.name} did not run the call.") from error
            raise ToolError(
                f"The connection to the worker {self.name} broke in the call; "
                "whether it took effect is not known."
            ) from error
        raise ToolError(
            f"The worker {self.name} cannot be reached; nothing ran. Try again later."
        ) from error

    @contextlib.asynccontextmanager
    async def _session(self, transport: _SessionTransport) -> AsyncIterator[ClientSession]:
        token = self.token()
        headers = {"accept-encoding": "identity"}
        if token is not None:
            headers["authorization"] = f"Bearer {token}"
        # The deadline is that of the call, so reads have no timeout.
        timeout = httpx.Timeout(None, connect=_CONNECT_TIMEOUT)
        http = httpx.AsyncClient(transport=transport, headers=headers, timeout=timeout)
        streams = streamable_http_client(self.url, http_client=http, terminate_on_close=False)
        async with streams as (read, write, session_id):
            try:
                async with ClientSession(read, write) as session:
                    await session.initialize()
                    yield session
            finally:
                started = session_id()
                if started is not None:
                    self._end_session(started, headers)

    def _end_session(self, session_id: str, headers: dict[str, str]) -> None:
        """End the session at the worker, and with it its running calls, in a background task."""

        async def end() -> None:
            request = httpx.Request(
                "DELETE", self.url, headers={**headers, MCP_SESSION_ID: session_id}
            )
            request.extensions["timeout"] = httpx.Timeout(_END_TIMEOUT).as_dict()
            with contextlib.suppress(httpx.HTTPError, TimeoutError, ToolError):
                async with asyncio.timeout(_END_TIMEOUT):
                    response = await self._connections().handle_async_request(request)
                    await response.aclose()

        task = asyncio.create_task(end())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def _cancel(self, session: ClientSession, transport: _SessionTransport) -> None:
        if transport.request_id is None:
            return
        params = mcp.CancelledNotificationParams(requestId=transport.request_id)
        notification = mcp.ClientNotification(mcp.CancelledNotification(params=params))
        with contextlib.suppress(Exception):
            async with asyncio.timeout(_END_TIMEOUT):
                await session.send_notification(notification)

    def _connections(self) -> CheckedTransport:
        if self._pool is None:
            self._pool = CheckedTransport(self.name, self.rule)
        return self._pool


class _SessionTransport(httpx.AsyncBaseTransport):
    """Sends the requests of one session and detects when the stream of its call ends.

    The client of MCP 1.x continues to wait after that stream breaks, until its read timeout.
    ``is_sent``: the call may have reached the worker. ``is_too_long``: all responses together have
    more than ``max_bytes`` or too many values.
    """

    def __init__(self, pool: httpx.AsyncBaseTransport, max_bytes: int) -> None:
        self._pool = pool
        self.max_bytes = max_bytes
        self.is_too_long = False
        self._bytes = self._values = 0
        self.disconnected = asyncio.Event()
        self.request_id: str | int | None = None
        self.is_sent = False

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; the stream for messages that a worker starts itself is refused."""
        if request.method == "GET":
            return httpx.Response(405, request=request)
        body = json.loads(request.content or b"null")
        if not isinstance(body, dict) or body.get("method") != _CALL:
            return self._observed(await self._pool.handle_async_request(request), asyncio.Event())
        self.request_id, self.is_sent = body.get("id"), True
        try:
            response = await self._pool.handle_async_request(request)
        except BaseException as error:
            self.is_sent = not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
            self.disconnected.set()
            raise
        return self._observed(response, self.disconnected)

    def _observed(self, response: httpx.Response, ended: asyncio.Event) -> httpx.Response:
        stream = response.stream
        if not isinstance(stream, httpx.AsyncByteStream):
            return response
        return httpx.Response(
            response.status_code,
            headers=response.headers,
            stream=_ObservedStream(stream, ended, self._count),
            extensions=response.extensions,
        )

    def _count(self, data: bytes) -> None:
        self._bytes += len(data)
        self._values += data.count(b",")
        if self._bytes > self.max_bytes or self._values > MAX_RESULT_VALUES:
            self.is_too_long = True
            self.disconnected.set()
            raise httpx.ReadError("the answers of a worker are too long")


class _ObservedStream(httpx.AsyncByteStream):
    """A counted stream that sets an event when it ends, is closed or fails."""

    def __init__(
        self, stream: httpx.AsyncByteStream, ended: asyncio.Event, count: Callable[[bytes], None]
    ) -> None:
        self._stream = stream
        self._ended = ended
        self._count = count

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        try:
            async for data in self._stream:
                self._count(data)
                yield data
        finally:
            self._ended.set()

    async def aclose(self) -> None:
        self._ended.set()
        await self._stream.aclose()


def _leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for inner in error.exceptions for leaf in _leaves(inner)]
    return [error]
