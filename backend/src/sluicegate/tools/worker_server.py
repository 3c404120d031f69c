"""The functions of a file as tools of a worker."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import inspect
import json
import logging
import sys
import typing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mcp import types as mcp
from mcp.server.lowlevel.server import Server
from opentelemetry import context as trace_context
from opentelemetry import propagate
from pydantic_core import to_jsonable_python

from sluicegate._version import __version__
from sluicegate.errors import ConfigurationError, ToolError, new_error_id
from sluicegate.tools.functions import DeclaredFunction, declare
from sluicegate.tools.worker_protocol import (
    CURRENT_CALL,
    ERROR_KEY,
    call_from_meta,
    check_tool_name,
)
from sluicegate.tools.worker_results import result_to_mcp

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence
    from types import ModuleType

_MODULE: Final = "sluicegate_worker_file"


def load_functions(file: str | Path) -> list[DeclaredFunction]:
    """Read a file and return its public functions, in the order in which they stand there.

    Public is what ``__all__`` names, or else what the file defines without a leading underscore.

    Raises:
        ConfigurationError: The file cannot be read, has no such function, or one of them cannot
            be a tool; the sentence names the parameter.
    """
    path = Path(file)
    module = _loaded(path)
    found = list(_public(module))
    if not found:
        raise ConfigurationError(f"The file {path.name} defines no public function.")
    return [declare(function, name=check_tool_name(name)) for name, function in found]


def _loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(_MODULE, path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise ConfigurationError(f"The file {path} is not there, or is no Python file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[_MODULE] = module
    sys.path.insert(0, str(path.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise ConfigurationError(
            f"The file {path} cannot be imported: {type(error).__name__}: {error}."
        ) from error
    return module


def _public(module: ModuleType) -> typing.Iterator[tuple[str, Callable[..., Any]]]:
    named = getattr(module, "__all__", None)
    for name, value in vars(module).items():
        if not inspect.isfunction(value):
            continue
        own = value.__module__ == module.__name__ and not name.startswith("_")
        if name in named if named is not None else own:
            yield name, value


logger = logging.getLogger("sluicegate")


def worker_server(name: str, functions: Sequence[DeclaredFunction]) -> Server[Any, Any]:
    """Return an MCP server with one tool per function."""
    server: Server[Any, Any] = Server(name, version=__version__)
    by_name = {function.name: function for function in functions}
    listed = [
        mcp.Tool(name=each.name, description=each.description, inputSchema=each.schema)
        for each in functions
    ]

    async def list_tools(_: mcp.ListToolsRequest) -> mcp.ServerResult:
        return mcp.ServerResult(mcp.ListToolsResult(tools=listed))

    async def call_tool(request: mcp.CallToolRequest) -> mcp.ServerResult:
        asked = request.params
        context = server.request_context
        given: dict[str, Any] = {} if asked.meta is None else asked.meta.model_dump()
        token = given.get("progressToken")

        async def report(number: int, text: str) -> None:
            if token is not None:
                await context.session.send_progress_notification(
                    token, number, message=text, related_request_id=str(context.request_id)
                )

        function = by_name.get(asked.name)
        if function is None:
            return mcp.ServerResult(_failed(f"There is no tool {asked.name!r}."))
        with _known(given):
            return mcp.ServerResult(await _answer(function, asked.arguments or {}, report))

    server.request_handlers[mcp.ListToolsRequest] = list_tools
    server.request_handlers[mcp.CallToolRequest] = call_tool
    return server


async def _answer(
    function: DeclaredFunction,
    arguments: dict[str, Any],
    report: Callable[[int, str], Awaitable[None]],
) -> mcp.CallToolResult:
    """Run a function; what it raises stays in this process's log (S1-R38)."""
    call = CURRENT_CALL.get()
    try:
        read = function.validate(arguments)
        async with asyncio.timeout(None if call is None else call.seconds):
            value = await _value(function, read, report)
            return await asyncio.to_thread(result_to_mcp, value)
    except ToolError as error:
        return _failed(error.message)
    except Exception as error:
        error_id = new_error_id()
        logger.exception(
            "tool %s failed error=%s call=%s", function.name, error_id, call.id if call else "-"
        )
        name = type(error).__name__
        return _failed(f"The tool failed: {name} (error {error_id}).", error=error_id)


async def _value(
    function: DeclaredFunction,
    arguments: dict[str, Any],
    report: Callable[[int, str], Awaitable[None]],
) -> Any:
    """What the function returns; of a generator the last value, those before it are progress."""
    if inspect.isasyncgenfunction(function.call):
        last: Any = None
        number = 0
        async with contextlib.aclosing(function.call(**arguments)) as values:
            async for value in values:
                if number:
                    await report(number, _text(last))
                number += 1
                last = value
        return last
    if inspect.iscoroutinefunction(function.call):
        return await function.call(**arguments)
    return await asyncio.to_thread(function.call, **arguments)


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    try:
        return json.dumps(to_jsonable_python(value, inf_nan_mode="null"), ensure_ascii=False)
    except (ValueError, TypeError):
        return type(value).__name__


def _failed(sentence: str, *, error: str | None = None) -> mcp.CallToolResult:
    meta = None if error is None else {ERROR_KEY: error}
    text = mcp.TextContent(type="text", text=sentence)
    return mcp.CallToolResult(content=[text], isError=True, _meta=meta)


@contextlib.contextmanager
def _known(meta: dict[str, Any]) -> Iterator[None]:
    """Let the function know its call, and its spans belong to the server's trace (S1-R42)."""
    call = CURRENT_CALL.set(call_from_meta(meta))
    carrier = {name: text for name, text in meta.items() if isinstance(text, str)}
    trace = trace_context.attach(propagate.extract(carrier))
    try:
        yield
    finally:
        trace_context.detach(trace)
        CURRENT_CALL.reset(call)
