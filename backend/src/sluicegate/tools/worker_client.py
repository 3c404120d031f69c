"""The server's side of MCP: one session per call, so that no call depends on another one."""

from __future__ import annotations

import asyncio
import contextlib
import json
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

import httpx2
from mcp import types as mcp
from mcp.client.session import ClientSession
from mcp.client.streamable_http import LAST_EVENT_ID, MCP_SESSION_ID, streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import mcp_param_headers, x_mcp_header_map
from pydantic import TypeAdapter, ValidationError

from sluicegate.errors import ToolError
from sluicegate.tools.checked_transport import CheckedTransport
from sluicegate.tools.mcp_message_filter import NO_URLS, WorkerDispatcher
from sluicegate.tools.outbound_hosts import ConnectionRule
from sluicegate.tools.remote_tool_limits import (
    MAX_LISTED_BYTES,
    MAX_RESULT_BYTES,
    MAX_RESULT_VALUES,
    MAX_TOOLS,
)
from sluicegate.tools.worker_names import shown_name

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable

    from mcp.client.session import ClientRequestContext
    from mcp.shared.dispatcher import ProgressFnT

    from sluicegate.tools.worker_calls_awaiting_input import Answer, Ask, CallResult

_Result = TypeVar("_Result")

_MAX_PAGES: Final = 20
_MAX_MESSAGE: Final = 300
_CONNECT_TIMEOUT: Final = 5.0
_END_TIMEOUT: Final = 2.0
_CALL: Final = "tools/call"
_RESULT: Final[TypeAdapter[CallResult]] = TypeAdapter(mcp.CallToolResult | mcp.InputRequiredResult)
_PAUSES: Final = (0.05, 0.1, 0.2, *[0.25] * 6)
"""Seconds before a call that needs no input is made again, as its worker wants."""

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


@dataclass(frozen=True, slots=True)
class WorkerRequest:
    """A call of a tool.

    ``schema`` is that of its arguments. ``responses`` and ``state`` are those of a call that has
    ended with questions before.
    """

    tool: str
    arguments: dict[str, Any]
    meta: dict[str, Any]
    schema: dict[str, Any] = field(default_factory=dict)
    responses: dict[str, mcp.ElicitResult] | None = None
    state: str | None = None

    def as_request(self) -> mcp.CallToolRequest:
        """Return the request of MCP."""
        params = mcp.CallToolRequestParams(
            name=self.tool,
            arguments=self.arguments,
            input_responses=dict(self.responses) if self.responses else None,
            request_state=self.state,
            _meta=self.meta,  # type: ignore[arg-type]
        )
        return mcp.CallToolRequest(params=params)

    def headers(self) -> dict[str, str]:
        """Return the headers that repeat arguments, as the schema says (``x-mcp-header``)."""
        return mcp_param_headers(x_mcp_header_map(self.schema), self.arguments)


@dataclass(slots=True)
class Observed:
    """One session: how it is used, and what is observed of it for the sentence of a failure.

    ``malformed`` are the entries of a listing that define no tool. ``is_sent``: the call may have
    reached the worker. ``status`` is the HTTP status of the last response, ``is_answered`` whether
    there is one, ``is_json`` whether it is no stream of events, ``is_broken`` whether it ended by
    itself, which a stream of events does only without a result. ``is_too_long``: all responses
    together have more than ``max_bytes`` or too many values. ``headers`` are added to a call.
    ``ask`` answers the questions of its worker, which ``deadline`` does not count.
    """

    max_bytes: int
    ask: Ask | None = None
    headers: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    deadline: asyncio.Timeout | None = None
    malformed: dict[str, str] = field(default_factory=dict)
    session_id: str | None = None
    status: int = 0
    is_sent: bool = False
    is_answered: bool = False
    is_json: bool = False
    is_broken: bool = False
    is_too_long: bool = False

    async def elicit(
        self, context: ClientRequestContext, params: mcp.ElicitRequestParams
    ) -> Answer:
        """Answer a question of the worker."""
        if not isinstance(params, mcp.ElicitRequestFormParams):
            return mcp.ErrorData(code=mcp.INVALID_PARAMS, message=NO_URLS)
        if self.ask is None:
            return mcp.ErrorData(
                code=mcp.INVALID_REQUEST, message="This server answers questions of calls alone."
            )
        self._set_deadline(None)
        try:
            return await self.ask(params)
        finally:
            self._set_deadline(asyncio.get_running_loop().time() + self.seconds)

    def _set_deadline(self, at: float | None) -> None:
        # A call that is ending has no deadline any more.
        if self.deadline is not None:
            with contextlib.suppress(RuntimeError):
                self.deadline.reschedule(at)


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

    def is_same(self, other: WorkerClient) -> bool:
        """Whether another client would connect to the same worker in the same way."""
        is_at = (self.url, self.rule) == (other.url, other.rule)
        return is_at and self.token() == other.token()

    async def tools(self, seconds: float) -> ListedTools:
        """List the tools that the worker offers.

        Raises:
            ToolError: The worker does not answer, or its answer is not valid.
        """
        observed = self._observe(MAX_LISTED_BYTES)
        malformed = observed.malformed

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
                    return ListedTools(tools, dict(malformed))
                if not page.tools and not malformed:
                    raise ToolError(f"The worker {self.name} lists pages without tools.")
            raise ToolError(
                f"The worker {self.name} lists its tools on more than {_MAX_PAGES} pages."
            )

        return await self._run(observed, list_pages, seconds)

    async def call(
        self, request: WorkerRequest, ask: Ask, progress: ProgressFnT, seconds: float
    ) -> CallResult:
        """Run a tool; a cancelled or late call is cancelled at the worker too (S1-R32).

        ``ask`` answers the questions of a worker that waits for them; one of the stateless protocol
        returns its questions. ``seconds`` do not count while a question is open.

        Raises:
            ToolError: The worker cannot be reached, refuses the call, answers with something else
                than a result, the connection breaks, or the call takes too long; the sentence says
                whether the call can have taken effect.
        """
        observed = self._observe(MAX_RESULT_BYTES)
        observed.ask = ask

        async def call_tool(session: ClientSession) -> CallResult:
            if self._discovered is not None:
                session.adopt(self._discovered)
                observed.headers = request.headers()
            elif session.protocol_version is None:
                await session.initialize()
            made = request
            for pause in _PAUSES:
                # ``ClientSession.call_tool`` would list all tools again to validate the result.
                result = await session.send_request(
                    made.as_request(), _RESULT, progress_callback=progress
                )
                if isinstance(result, mcp.CallToolResult) or result.input_requests:
                    return result
                made = replace(request, responses=None, state=result.request_state)
                await asyncio.sleep(pause)
            raise ToolError(f"The worker {self.name} did not finish the call in many requests.")

        return await self._run(observed, call_tool, seconds)

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
        if session.protocol_version is not None:
            return
        self._discovered = None
        try:
            self._discovered = await session.discover()
        except (MCPError, RuntimeError, ValidationError):
            try:
                await session.initialize()
            except MCPError as error:
                # The answer of a worker that starts slowly may have come too late for the client.
                if error.code != mcp.UNSUPPORTED_PROTOCOL_VERSION:
                    raise
                self._discovered = await session.discover()

    async def _run(
        self,
        observed: Observed,
        use: Callable[[ClientSession], Awaitable[_Result]],
        seconds: float,
    ) -> _Result:
        """Use a new session, and turn every failure into a ToolError."""
        try:
            async with asyncio.timeout(seconds) as deadline, self._session(observed) as session:
                observed.seconds, observed.deadline = seconds, deadline
                return await use(session)
        except TimeoutError:
            effect = "; whether it took effect is not known" if observed.is_sent else ""
            raise ToolError(
                f"The worker {self.name} did not answer within {seconds:g} s{effect}."
            ) from None
        except ToolError:
            raise
        except Exception as error:  # noqa: BLE001 - exception groups of the MCP client's tasks
            self._raise_tool_error(observed, error)

    def _raise_tool_error(self, observed: Observed, error: BaseException) -> NoReturn:
        causes = list(_leaves(error))
        tool_error = next((cause for cause in causes if isinstance(cause, ToolError)), None)
        if tool_error is not None:
            raise tool_error from None
        raise ToolError(self._failure(observed, causes)) from error

    def _failure(self, observed: Observed, causes: list[BaseException]) -> str:
        """Return the sentence of a failure; only a lost connection leaves the effect unknown."""
        answered = next((cause for cause in causes if isinstance(cause, MCPError)), None)
        is_malformed = any(isinstance(cause, ValidationError) for cause in causes)
        if observed.is_too_long:
            effect = "; whether a call took effect is not known" if observed.is_sent else ""
            return (
                f"The worker {self.name} answers with more than {observed.max_bytes:,} bytes or "
                f"{MAX_RESULT_VALUES:,} values{effect}."
            )
        if observed.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            return f"The worker {self.name} refuses this server's credential; nothing ran."
        if observed.status >= HTTPStatus.BAD_REQUEST and observed.status not in _GATEWAY:
            return f"The worker {self.name} {_http_failure(observed, answered)}."
        if is_malformed or (answered is not None and answered.code == mcp.PARSE_ERROR):
            what = "answered the call" if observed.is_sent else "answered"
            return f"The worker {self.name} {what} with something that is no result of MCP."
        is_lost = observed.status in _GATEWAY or (observed.is_broken and not observed.is_json)
        if answered is not None and observed.is_answered and not is_lost:
            return f"The worker {self.name} {_protocol_failure(observed, answered)}."
        if observed.is_sent:
            return (
                f"The connection to the worker {self.name} broke in the call; "
                "whether it took effect is not known."
            )
        return f"The worker {self.name} cannot be reached; nothing ran. Try again later."

    @contextlib.asynccontextmanager
    async def _session(self, observed: Observed) -> AsyncIterator[ClientSession]:
        """Open the session of one call, not negotiated yet."""
        transport = _SessionTransport(self._connections(), observed)
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
            max_sse_event_size=observed.max_bytes,
        )
        async with streams as (read, write):
            try:
                dispatcher = WorkerDispatcher(read, write, observed.malformed)
                async with ClientSession(
                    dispatcher=dispatcher, elicitation_callback=observed.elicit
                ) as session:
                    yield session
            finally:
                if observed.session_id is not None:
                    self._end_session(observed.session_id, headers)

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

    def _observe(self, max_bytes: int) -> Observed:
        return Observed(max_bytes)

    def _connections(self) -> CheckedTransport:
        if self._pool is None:
            self._pool = CheckedTransport(f"worker {self.name}", self.rule)
        return self._pool


class _SessionTransport(httpx2.AsyncBaseTransport):
    """Sends the requests of one session and observes its responses."""

    def __init__(self, pool: httpx2.AsyncBaseTransport, observed: Observed) -> None:
        self._pool = pool
        self._observed = observed
        self._bytes = self._values = 0

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request; the stream of a worker's own messages is opened only for a call."""
        observed = self._observed
        if request.method == "GET" and LAST_EVENT_ID not in request.headers:
            if observed.ask is None:
                return httpx2.Response(HTTPStatus.METHOD_NOT_ALLOWED, request=request)
            # Some workers send questions on this stream; its failure says nothing about the call.
            return self._counted(await self._pool.handle_async_request(request), lambda: None)
        body = json.loads(request.content or b"null")
        is_call = isinstance(body, dict) and body.get("method") == _CALL
        observed.is_sent = observed.is_sent or is_call
        if is_call:
            request.headers.update(observed.headers)
        observed.status, observed.is_answered, observed.is_broken = 0, False, False
        try:
            response = await self._pool.handle_async_request(request)
        except (httpx2.ConnectError, httpx2.ConnectTimeout):
            observed.is_sent = observed.is_sent and not is_call
            raise
        observed.status, observed.is_answered = response.status_code, True
        kind = response.headers.get("content-type", "")
        observed.is_json = kind.lower().startswith("application/json")
        observed.session_id = response.headers.get(MCP_SESSION_ID, observed.session_id)
        return self._counted(response, self._end)

    def _counted(self, response: httpx2.Response, end: Callable[[], None]) -> httpx2.Response:
        stream = response.stream
        if not isinstance(stream, httpx2.AsyncByteStream):
            return response
        return httpx2.Response(
            response.status_code,
            headers=response.headers,
            stream=_CountedStream(stream, self._count, end),
            extensions=response.extensions,
        )

    def _end(self) -> None:
        # The client reads a JSON response to its end, a stream of events only if no result comes.
        self._observed.is_broken = True

    def _count(self, data: bytes) -> None:
        self._bytes += len(data)
        self._values += data.count(b",")
        if self._bytes > self._observed.max_bytes or self._values > MAX_RESULT_VALUES:
            self._observed.is_too_long = True
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


def _http_failure(observed: Observed, answered: MCPError | None) -> str:
    status = observed.status
    phrase = HTTPStatus(status).phrase if status in set(HTTPStatus) else ""
    with_status = f"it answered with HTTP {status} {phrase}".rstrip()
    if not observed.is_sent:
        return f"offers nothing: {with_status}"
    is_before = status < HTTPStatus.INTERNAL_SERVER_ERROR or status in _BEFORE_RUNNING
    return f"{'did not run the call' if is_before else 'failed in the call'}: {with_status}"


def _protocol_failure(observed: Observed, answered: MCPError) -> str:
    message = shown_name(answered.message, _MAX_MESSAGE).rstrip(". ") or f"error {answered.code}"
    if not observed.is_sent:
        return f"offers nothing; it reports: {message}"
    is_before = answered.code in _NOT_RUN
    return f"{'did not run the call' if is_before else 'failed in the call'}; it reports: {message}"


def _leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for inner in error.exceptions for leaf in _leaves(inner)]
    return [error]
