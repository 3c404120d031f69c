"""The server's side of MCP: one short session per call, so that calls live and die alone."""

from __future__ import annotations

import asyncio
import contextlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NoReturn

import httpx
from mcp import types as mcp
from mcp.client.session import ClientSession
from mcp.client.streamable_http import MCP_SESSION_ID, streamable_http_client
from mcp.shared.exceptions import McpError

from sluicegate.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable

    from mcp.shared.session import ProgressFnT

MAX_TOOLS: Final = 200
"""Tools that one worker may offer."""

_CONNECT: Final = 5.0
_LAST_WORDS: Final = 0.5
"""Seconds in which an answer that has arrived is handed on, after its connection ended."""

_FAREWELL: Final = 2.0
_MAX_BYTES: Final = 64 * 1024 * 1024
_CALL: Final = "tools/call"


@dataclass(slots=True)
class WorkerClient:
    """A worker's address and credential; connections are kept and shared by its sessions."""

    name: str
    url: str
    token: Callable[[], str | None]
    _http: httpx.AsyncHTTPTransport | None = None
    _farewells: set[asyncio.Task[None]] = field(default_factory=set)

    async def tools(self, seconds: float) -> list[mcp.Tool]:
        """What the worker offers now.

        Raises:
            ToolError: It does not answer, or not as it should.
        """
        line = _Line(self._transport())

        async def ask(session: ClientSession) -> list[mcp.Tool]:
            found: list[mcp.Tool] = []
            cursor: str | None = None
            while True:
                params = mcp.PaginatedRequestParams(cursor=cursor)
                page = await session.list_tools(params=params)
                found += page.tools
                cursor = page.nextCursor
                if cursor is None:
                    return found
                if len(found) > MAX_TOOLS:
                    raise ToolError(f"The worker {self.name} offers more than {MAX_TOOLS} tools.")

        found: list[mcp.Tool] = await self._talk(line, ask, seconds)
        return found

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
            ToolError: The worker cannot be reached, is lost in the call, or takes too long; the
                sentence says whether the call can have taken effect.
        """
        line = _Line(self._transport())
        params = mcp.CallToolRequestParams(
            name=tool, arguments=arguments, _meta=mcp.RequestParams.Meta(**meta)
        )
        request = mcp.ClientRequest(mcp.CallToolRequest(params=params))

        async def ask(session: ClientSession) -> mcp.CallToolResult:
            # ``call_tool`` would list all tools again to check the result against a schema.
            asking = asyncio.ensure_future(
                session.send_request(request, mcp.CallToolResult, progress_callback=progress)
            )
            lost = asyncio.ensure_future(line.lost.wait())
            try:
                await asyncio.wait({asking, lost}, return_when=asyncio.FIRST_COMPLETED)
                await asyncio.wait({asking}, timeout=_LAST_WORDS)
                if not asking.done():
                    raise ConnectionError("the stream of the call ended without its answer")
                return asking.result()
            except asyncio.CancelledError:
                await self._cancel(session, line)
                raise
            finally:
                asking.cancel()
                lost.cancel()
                await asyncio.gather(asking, lost, return_exceptions=True)

        result: mcp.CallToolResult = await self._talk(line, ask, seconds)
        return result

    async def close(self) -> None:
        """End the sessions that are still open, then the connections."""
        for farewell in self._farewells:
            farewell.cancel()
        await asyncio.gather(*self._farewells, return_exceptions=True)
        if self._http is not None:
            await self._http.aclose()
            self._http = None

    async def _talk(
        self,
        line: _Line,
        ask: Callable[[ClientSession], Awaitable[Any]],
        seconds: float,
    ) -> Any:
        try:
            async with asyncio.timeout(seconds), self._session(line) as session:
                return await ask(session)
        except TimeoutError:
            end = "" if line.is_sent is False else "; whether it took effect is not known"
            raise ToolError(
                f"The worker {self.name} did not answer within {seconds:g} s{end}."
            ) from None
        except ToolError:
            raise
        except Exception as error:  # noqa: BLE001 - groups of what the client's tasks raised
            self._fail(line, error)

    def _fail(self, line: _Line, error: BaseException) -> NoReturn:
        causes = list(_leaves(error))
        told = next((cause for cause in causes if isinstance(cause, ToolError)), None)
        if told is not None:
            raise told from None
        status = next((e.response.status_code for e in causes if _is_status(e)), None)
        if status in (401, 403):
            raise ToolError(
                f"The worker {self.name} refuses this server's credential; nothing ran."
            ) from error
        if line.is_sent:
            said = next((e for e in causes if isinstance(e, McpError)), None)
            if said is not None and not line.lost.is_set():
                raise ToolError(f"The worker {self.name} did not run the call.") from error
            raise ToolError(
                f"The connection to the worker {self.name} broke in the call; "
                "whether it took effect is not known."
            ) from error
        raise ToolError(
            f"The worker {self.name} cannot be reached; nothing ran. Try again later."
        ) from error

    @contextlib.asynccontextmanager
    async def _session(self, line: _Line) -> AsyncIterator[ClientSession]:
        token = self.token()
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        # The deadline is the call's, so reads have none.
        limits = httpx.Timeout(None, connect=_CONNECT)
        client = httpx.AsyncClient(transport=line, headers=headers, timeout=limits)
        streams = streamable_http_client(self.url, http_client=client, terminate_on_close=False)
        async with streams as (read, write, session_id):
            try:
                async with ClientSession(read, write) as session:
                    await session.initialize()
                    yield session
            finally:
                name = session_id()
                if name is not None:
                    self._say_goodbye(name, headers)

    def _say_goodbye(self, session: str, headers: dict[str, str]) -> None:
        """End the session at the worker, which ends whatever still runs in it; nobody waits."""

        async def end() -> None:
            request = httpx.Request(
                "DELETE", self.url, headers={**headers, MCP_SESSION_ID: session}
            )
            request.extensions["timeout"] = httpx.Timeout(_FAREWELL).as_dict()
            with contextlib.suppress(httpx.HTTPError, TimeoutError):
                async with asyncio.timeout(_FAREWELL):
                    response = await self._transport().handle_async_request(request)
                    await response.aclose()

        farewell = asyncio.create_task(end())
        self._farewells.add(farewell)
        farewell.add_done_callback(self._farewells.discard)

    async def _cancel(self, session: ClientSession, line: _Line) -> None:
        if line.request is None:
            return
        params = mcp.CancelledNotificationParams(requestId=line.request)
        notice = mcp.ClientNotification(mcp.CancelledNotification(params=params))
        with contextlib.suppress(Exception):
            async with asyncio.timeout(_FAREWELL):
                await session.send_notification(notice)

    def _transport(self) -> httpx.AsyncHTTPTransport:
        if self._http is None:
            self._http = httpx.AsyncHTTPTransport(
                limits=httpx.Limits(max_connections=None, max_keepalive_connections=8)
            )
        return self._http


class _Line(httpx.AsyncBaseTransport):
    """What one session sends; it notices when the stream of its call ends.

    The client of MCP 1.x waits on when that stream breaks, until its read times out.
    """

    def __init__(self, inner: httpx.AsyncBaseTransport) -> None:
        """Send through a transport that others share."""
        self._inner = inner
        self.lost = asyncio.Event()
        self.request: str | int | None = None
        self.is_sent = False

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; nothing that a worker says by itself is listened to."""
        if request.method == "GET":
            return httpx.Response(405, request=request)
        body = json.loads(request.content or b"null")
        if not isinstance(body, dict) or body.get("method") != _CALL:
            return _watched(await self._inner.handle_async_request(request), asyncio.Event())
        self.request, self.is_sent = body.get("id"), True
        try:
            response = await self._inner.handle_async_request(request)
        except BaseException as error:
            self.is_sent = not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
            self.lost.set()
            raise
        return _watched(response, self.lost)


def _watched(response: httpx.Response, ended: asyncio.Event) -> httpx.Response:
    stream = response.stream
    if not isinstance(stream, httpx.AsyncByteStream):
        return response
    return httpx.Response(
        response.status_code,
        headers=response.headers,
        stream=_Watched(stream, ended),
        extensions=response.extensions,
    )


class _Watched(httpx.AsyncByteStream):
    """A stream that says when it has ended, however that came, and ends one that is too long."""

    def __init__(self, inner: httpx.AsyncByteStream, ended: asyncio.Event) -> None:
        self._inner = inner
        self._ended = ended

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        size = 0
        try:
            async for piece in self._inner:
                size += len(piece)
                if size > _MAX_BYTES:
                    raise httpx.ReadError("the answer of a worker is too long")
                yield piece
        finally:
            self._ended.set()

    async def aclose(self) -> None:
        self._ended.set()
        await self._inner.aclose()


def _leaves(error: BaseException) -> list[Any]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for inner in error.exceptions for leaf in _leaves(inner)]
    return [error]


def _is_status(error: object) -> bool:
    return isinstance(error, httpx.HTTPStatusError)
