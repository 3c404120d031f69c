"""A worker that is a command of the server's machine and speaks MCP over its pipes (stdio).

One process with one session serves all calls, which have ids of their own, and is started again
when it has ended: a process for each call would lose what it keeps between them.
"""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from mcp import types as mcp
from mcp.client.session import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPError

from sluicegate.errors import ConfigurationError, ToolError
from sluicegate.tools.mcp_message_filter import WorkerDispatcher
from sluicegate.tools.remote_tool_limits import MAX_LISTED_BYTES
from sluicegate.tools.worker_client import ListedTools, Observed, WorkerClient

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mcp.client.session import ClientRequestContext

    from sluicegate.tools.worker_calls_awaiting_input import Answer

_START_TIMEOUT: Final = 120.0
"""Seconds in which a command must answer for the first time; some load a package before."""

_START_WAIT: Final = 15.0
"""Seconds for which a listing waits for that."""

COMMAND: Final = "cmd:"
"""Begins the address of a worker that is a command."""


@dataclass(slots=True)
class _Process:
    """A command: its session once it has started, and whether it has ended or is to end."""

    ready: asyncio.Future[ClientSession]
    closing: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(slots=True)
class CommandClient(WorkerClient):
    """The client of a command; ``url`` is ``cmd:`` and the command as a shell would split it.

    Raises:
        ConfigurationError: There is no command, or its quotes do not match.
    """

    _malformed: dict[str, str] = field(default_factory=dict)
    _calls: list[Observed] = field(default_factory=list)
    _process: _Process | None = None

    def __post_init__(self) -> None:
        """Check the command."""
        self._parameters()

    async def tools(self, seconds: float) -> ListedTools:
        """List the tools; a command that is started for it has some more time to start.

        Raises:
            ToolError: The command cannot be run, ends, has not started yet, or its answer is not
                valid.
        """
        ready = self._running().ready
        await asyncio.wait({ready}, timeout=_START_WAIT)
        if not ready.done():
            raise ToolError(f"The worker {self.name} has not started yet.")
        return await super(CommandClient, self).tools(seconds)

    def _parameters(self) -> StdioServerParameters:
        try:
            command, *arguments = shlex.split(self.url.removeprefix(COMMAND))
        except ValueError:
            raise ConfigurationError(
                f"The worker {self.name} has no command that can be run: {self.url!r}."
            ) from None
        # The environment has only what a program needs to find its files, and no secrets.
        return StdioServerParameters(command=command, args=arguments)

    def _observe(self, max_bytes: int) -> Observed:
        if max_bytes == MAX_LISTED_BYTES:
            self._malformed.clear()
        return Observed(max_bytes, malformed=self._malformed)

    @contextlib.asynccontextmanager
    async def _session(self, observed: Observed) -> AsyncIterator[ClientSession]:
        process = self._running()
        session = await asyncio.shield(process.ready)
        observed.is_sent = observed.max_bytes != MAX_LISTED_BYTES
        if observed.is_sent:
            self._calls.append(observed)
        try:
            yield session
        except MCPError as error:
            observed.is_answered = error.code != mcp.CONNECTION_CLOSED
            if not observed.is_answered:
                process.closing.set()
            raise
        finally:
            if observed.is_sent:
                self._calls.remove(observed)

    async def _elicit(
        self, context: ClientRequestContext, params: mcp.ElicitRequestParams
    ) -> Answer:
        """Answer a question of the command, which does not say to which of its calls it belongs."""
        if len(self._calls) == 1:
            return await self._calls[0].elicit(context, params)
        return mcp.ErrorData(
            code=mcp.INVALID_REQUEST,
            message="Several calls run, so this server does not know which of them asks.",
        )

    def _running(self) -> _Process:
        process = self._process
        if process is None or process.closing.is_set():
            process = self._process = _Process(asyncio.get_running_loop().create_future())
            self._discovered = None
            task = asyncio.create_task(self._serve(process))
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)
        return process

    async def _serve(self, process: _Process) -> None:
        """Run the command until it ends or is closed."""
        errors: Any = sys.__stderr__
        try:
            async with stdio_client(self._parameters(), errors) as (read, write):
                dispatcher = WorkerDispatcher(read, write, self._malformed)
                async with ClientSession(
                    dispatcher=dispatcher, elicitation_callback=self._elicit
                ) as session:
                    async with asyncio.timeout(_START_TIMEOUT):
                        await self._negotiate(session)
                    process.ready.set_result(session)
                    waiting = [process.closing.wait(), dispatcher.ended.wait()]
                    tasks = [asyncio.ensure_future(each) for each in waiting]
                    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                    for task in tasks:
                        task.cancel()
        except Exception as error:  # noqa: BLE001 - the caller that waits for the session gets it
            if not process.ready.done():
                process.ready.set_exception(error)
                # Its caller may have given up.
                process.ready.exception()
        finally:
            process.closing.set()
