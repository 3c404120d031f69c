"""The server's side of MCP: one session per call, so that no call depends on another one."""

from __future__ import annotations

import asyncio
import contextlib
import json
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

import httpx2
from mcp import types as mcp
from mcp.client.session import ClientSession
from mcp.client.streamable_http import LAST_EVENT_ID, MCP_SESSION_ID, streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.transport_context import TransportContext
from pydantic import ValidationError

from sluicegate.errors import ToolError
from sluicegate.tools.declaration_limits import (
    MAX_LISTED_BYTES,
    MAX_RESULT_BYTES,
    MAX_RESULT_VALUES,
    MAX_TOOLS,
)
from sluicegate.tools.worker_hosts import ConnectionRule
from sluicegate.tools.worker_names import shown_name
from sluicegate.tools.worker_transport import CheckedTransport

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping

    from mcp.shared.dispatcher import CallOptions, ProgressFnT

_Result = TypeVar("_Result")

_MAX_PAGES: Final = 20
_MAX_MESSAGE: Final = 300
_CONNECT_TIMEOUT: Final = 5.0
_END_TIMEOUT: Final = 2.0
_CALL: Final = "tools/call"
_LIST: Final = "tools/list"
_NOT_RUN: Final = frozenset(
    {
        mcp.INVALID_PARAMS,
        mcp.INVALID_REQUEST,
        mcp.METHOD_NOT_FOUND,
        mcp.UNSUPPORTED_PROTOCOL_VERSION,
    }
)
"""Errors of JSON-RPC and MCP that a worker answers before it runs anything."""

_GATEWAY: Final = frozenset({HTTPStatus.BAD_GATEWAY, HTTPStatus.GATEWAY_TIMEOUT})
"""Statuses of a proxy that has lost its own connection to the worker."""

_BEFORE_RUNNING: Final = frozenset({HTTPStatus.NOT_IMPLEMENTED, HTTPStatus.SERVICE_UNAVAILABLE})
"""Statuses of servers that refuse a request before they handle it."""


@dataclass(frozen=True, slots=True)
class ListedTools:
    """What a worker lists: its tools, and why an entry is no definition of one, by its name."""

    definitions: list[mcp.Tool] = field(default_factory=list)
    malformed: dict[str, str] = field(default_factory=dict)


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
    _discovered: mcp.DiscoverResult | None = None
    """What a worker of the stateless protocol (2026-07-28) said of itself at the last listing."""

    async def tools(self, seconds: float) -> ListedTools:
        """List the tools that the worker offers.

        Raises:
            ToolError: The worker does not answer, or its answer is not valid.
        """
        transport = _SessionTransport(self._connections(), MAX_LISTED_BYTES)
        malformed: dict[str, str] = {}

        async def list_pages(session: ClientSession) -> ListedTools:
            await self._negotiate(session)
            tools: list[mcp.Tool] = []
            cursor: str | None = None
            for _ in range(_MAX_PAGES):
                params = mcp.PaginatedRequestParams(cursor=cursor)
                page = await session.list_tools(params=params)
                tools += page.tools
                cursor = page.next_cursor
                if len(tools) + len(malformed) > MAX_TOOLS:
                    raise ToolError(f"The worker {self.name} offers more than {MAX_TOOLS} tools.")
                if cursor is None:
                    return ListedTools(tools, malformed)
                if not page.tools and not malformed:
                    raise ToolError(f"The worker {self.name} lists pages without tools.")
            raise ToolError(
                f"The worker {self.name} lists its tools on more than {_MAX_PAGES} pages."
            )

        return await self._run(transport, list_pages, seconds, malformed)

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
            ToolError: The worker cannot be reached, refuses the call, answers with something else
                than a result, the connection breaks, or the call takes too long; the sentence says
                whether the call can have taken effect.
        """
        transport = _SessionTransport(self._connections(), MAX_RESULT_BYTES)
        params = mcp.CallToolRequestParams(name=tool, arguments=arguments, _meta=meta)  # type: ignore[arg-type]

        async def call_tool(session: ClientSession) -> mcp.CallToolResult:
            if self._discovered is None:
                await session.initialize()
            else:
                session.adopt(self._discovered)
            # ``ClientSession.call_tool`` would list all tools again to validate the result.
            request = mcp.CallToolRequest(params=params)
            return await session.send_request(
                request, mcp.CallToolResult, progress_callback=progress
            )

        return await self._run(transport, call_tool, seconds, {})

    async def close(self) -> None:
        """End the sessions that are still open, then close the connections."""
        for task in self._ending:
            task.cancel()
        await asyncio.gather(*self._ending, return_exceptions=True)
        if self._pool is not None:
            await self._pool.aclose()
            self._pool = None

    async def _negotiate(self, session: ClientSession) -> None:
        """Ask for the stateless protocol, and shake hands with a worker that has an older one."""
        self._discovered = None
        try:
            self._discovered = await session.discover()
        except (MCPError, RuntimeError, ValidationError):
            await session.initialize()

    async def _run(
        self,
        transport: _SessionTransport,
        use: Callable[[ClientSession], Awaitable[_Result]],
        seconds: float,
        malformed: dict[str, str],
    ) -> _Result:
        """Use a new session, and turn every failure into a ToolError."""
        try:
            async with asyncio.timeout(seconds), self._session(transport, malformed) as session:
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
        raise ToolError(self._failure(transport, causes)) from error

    def _failure(self, transport: _SessionTransport, causes: list[BaseException]) -> str:
        """Return the sentence of a failure; only a lost connection leaves the effect unknown."""
        answered = next((cause for cause in causes if isinstance(cause, MCPError)), None)
        is_malformed = any(isinstance(cause, ValidationError) for cause in causes)
        if transport.is_too_long:
            effect = "; whether a call took effect is not known" if transport.is_sent else ""
            return (
                f"The worker {self.name} answers with more than {transport.max_bytes:,} bytes or "
                f"{MAX_RESULT_VALUES:,} values{effect}."
            )
        if transport.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            return f"The worker {self.name} refuses this server's credential; nothing ran."
        if transport.status >= HTTPStatus.BAD_REQUEST and transport.status not in _GATEWAY:
            return f"The worker {self.name} {_http_failure(transport, answered)}."
        if is_malformed or (answered is not None and answered.code == mcp.PARSE_ERROR):
            what = "answered the call" if transport.is_sent else "answered"
            return f"The worker {self.name} {what} with something that is no result of MCP."
        is_lost = transport.status in _GATEWAY or (transport.is_broken and not transport.is_json)
        if answered is not None and transport.is_answered and not is_lost:
            return f"The worker {self.name} {_protocol_failure(transport, answered)}."
        if transport.is_sent:
            return (
                f"The connection to the worker {self.name} broke in the call; "
                "whether it took effect is not known."
            )
        return f"The worker {self.name} cannot be reached; nothing ran. Try again later."

    @contextlib.asynccontextmanager
    async def _session(
        self, transport: _SessionTransport, malformed: dict[str, str]
    ) -> AsyncIterator[ClientSession]:
        token = self.token()
        headers = {"accept-encoding": "identity"}
        if token is not None:
            headers["authorization"] = f"Bearer {token}"
        # The deadline is that of the call, so reads have no timeout.
        timeout = httpx2.Timeout(None, connect=_CONNECT_TIMEOUT)
        http = httpx2.AsyncClient(transport=transport, headers=headers, timeout=timeout)
        streams = streamable_http_client(
            self.url,
            http_client=http,
            terminate_on_close=False,
            max_sse_event_size=transport.max_bytes,
        )
        async with streams as (read, write):
            try:
                dispatcher = _ListingDispatcher(read, write, malformed)
                async with ClientSession(dispatcher=dispatcher) as session:
                    yield session
            finally:
                if transport.session_id is not None:
                    self._end_session(transport.session_id, headers)

    def _end_session(self, session_id: str, headers: dict[str, str]) -> None:
        """End the session at the worker, and with it its running calls, in a background task."""

        async def end() -> None:
            request = httpx2.Request(
                "DELETE", self.url, headers={**headers, MCP_SESSION_ID: session_id}
            )
            request.extensions["timeout"] = httpx2.Timeout(_END_TIMEOUT).as_dict()
            with contextlib.suppress(httpx2.HTTPError, TimeoutError, ToolError):
                async with asyncio.timeout(_END_TIMEOUT):
                    response = await self._connections().handle_async_request(request)
                    await response.aclose()

        task = asyncio.create_task(end())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    def _connections(self) -> CheckedTransport:
        if self._pool is None:
            self._pool = CheckedTransport(self.name, self.rule)
        return self._pool


class _ListingDispatcher(JSONRPCDispatcher[TransportContext]):
    """Removes entries that define no tool from a listing, so that they hide no others."""

    def __init__(self, read: Any, write: Any, malformed: dict[str, str]) -> None:
        super().__init__(read, write)
        self._malformed = malformed

    async def send_raw_request(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        opts: CallOptions | None = None,
        **more: Any,
    ) -> dict[str, Any]:
        raw = await super().send_raw_request(method, params, opts, **more)
        entries = raw.get("tools")
        if method != _LIST or not isinstance(entries, list):
            return raw
        return {**raw, "tools": [entry for entry in entries if self._is_definition(entry)]}

    def _is_definition(self, entry: object) -> bool:
        try:
            mcp.Tool.model_validate(entry, by_name=False)
        except ValidationError as error:
            name = entry.get("name") if isinstance(entry, dict) else None
            where = ".".join(str(step) for step in error.errors()[0]["loc"]) or "it"
            self._malformed[shown_name(name, 100) if isinstance(name, str) else "?"] = (
                f"it is no definition of a tool: {shown_name(where, 100)} is missing or not valid"
            )
            return False
        return True


class _SessionTransport(httpx2.AsyncBaseTransport):
    """Sends the requests of one session and observes its responses.

    ``is_sent``: the call may have reached the worker. ``status`` is the HTTP status of the last
    response, ``is_answered`` whether there is one, ``is_json`` whether it is no stream of events,
    ``is_broken`` whether it ended by itself, which a stream of events does only without a result.
    ``is_too_long``: all responses together have more than ``max_bytes`` or too many values.
    """

    def __init__(self, pool: httpx2.AsyncBaseTransport, max_bytes: int) -> None:
        self._pool = pool
        self.max_bytes = max_bytes
        self.is_too_long = False
        self._bytes = self._values = 0
        self.session_id: str | None = None
        self.status = 0
        self.is_sent = self.is_answered = self.is_broken = self.is_json = False

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request; the stream for messages that a worker starts itself is refused."""
        if request.method == "GET" and LAST_EVENT_ID not in request.headers:
            return httpx2.Response(HTTPStatus.METHOD_NOT_ALLOWED, request=request)
        body = json.loads(request.content or b"null")
        is_call = isinstance(body, dict) and body.get("method") == _CALL
        self.is_sent = self.is_sent or is_call
        self.status, self.is_answered, self.is_broken = 0, False, False
        try:
            response = await self._pool.handle_async_request(request)
        except (httpx2.ConnectError, httpx2.ConnectTimeout):
            self.is_sent = self.is_sent and not is_call
            raise
        self.status, self.is_answered = response.status_code, True
        kind = response.headers.get("content-type", "")
        self.is_json = kind.lower().startswith("application/json")
        self.session_id = response.headers.get(MCP_SESSION_ID, self.session_id)
        stream = response.stream
        if not isinstance(stream, httpx2.AsyncByteStream):
            return response
        return httpx2.Response(
            response.status_code,
            headers=response.headers,
            stream=_CountedStream(stream, self._count, self._end),
            extensions=response.extensions,
        )

    def _end(self) -> None:
        # Of a JSON response the end is read too, of a stream of events only a missing result.
        self.is_broken = True

    def _count(self, data: bytes) -> None:
        self._bytes += len(data)
        self._values += data.count(b",")
        if self._bytes > self.max_bytes or self._values > MAX_RESULT_VALUES:
            self.is_too_long = True
            raise httpx2.ReadError("the answers of a worker are too long")


class _CountedStream(httpx2.AsyncByteStream):
    """A stream whose bytes are counted and whose end is reported, unless it is closed before."""

    def __init__(
        self,
        stream: httpx2.AsyncByteStream,
        count: Callable[[bytes], None],
        end: Callable[[], None],
    ) -> None:
        self._stream = stream
        self._count = count
        self._end = end

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        try:
            async for data in self._stream:
                self._count(data)
                yield data
        except Exception:
            self._end()
            raise
        self._end()

    async def aclose(self) -> None:
        await self._stream.aclose()


def _http_failure(transport: _SessionTransport, answered: MCPError | None) -> str:
    status = transport.status
    phrase = HTTPStatus(status).phrase if status in set(HTTPStatus) else ""
    with_status = f"it answered with HTTP {status} {phrase}".rstrip()
    if not transport.is_sent:
        return f"offers nothing: {with_status}"
    is_before = status < HTTPStatus.INTERNAL_SERVER_ERROR or status in _BEFORE_RUNNING
    return f"{'did not run the call' if is_before else 'failed in the call'}: {with_status}"


def _protocol_failure(transport: _SessionTransport, answered: MCPError) -> str:
    message = shown_name(answered.message, _MAX_MESSAGE).rstrip(". ") or f"error {answered.code}"
    if not transport.is_sent:
        return f"offers nothing; it reports: {message}"
    is_before = answered.code in _NOT_RUN
    return f"{'did not run the call' if is_before else 'failed in the call'}; it reports: {message}"


def _leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for inner in error.exceptions for leaf in _leaves(inner)]
    return [error]
