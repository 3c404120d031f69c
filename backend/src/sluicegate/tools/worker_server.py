"""A worker's side of MCP: serves the public functions of a Python file as tools."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import inspect
import json
import logging
import sys
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mcp import types as mcp
from mcp.server.lowlevel.server import Server
from opentelemetry import context as trace_context
from opentelemetry import propagate
from pydantic_core import to_jsonable_python

from sluicegate._version import __version__
from sluicegate.errors import ConfigurationError, ToolError, new_error_id
from sluicegate.tools.function_tools import DeclaredFunction, declare
from sluicegate.tools.mcp_result_conversion import result_to_mcp
from sluicegate.tools.worker_call_metadata import CURRENT_CALL, ERROR_KEY, call_from_meta
from sluicegate.tools.worker_names import check_tool_name

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence
    from types import ModuleType

    from mcp.server.context import ServerRequestContext

    Context = ServerRequestContext[Any, Any]
    Report = Callable[[int, str], Awaitable[None]]

_MODULE_NAME: Final = "sluicegate_worker_file"

logger = logging.getLogger("sluicegate")


def load_functions(file: str | Path) -> list[DeclaredFunction]:
    """Import a file and return its public functions in the order of their definition.

    Public is what ``__all__`` names, or else what the file defines without a leading underscore.

    Raises:
        ConfigurationError: The file cannot be imported, has no public function, or one of them
            cannot be a tool; the sentence names the parameter.
    """
    path = Path(file)
    functions = dict(_public_functions(_import_file(path)))
    if not functions:
        raise ConfigurationError(f"The file {path.name} defines no public function.")
    return [declare(call, name=check_tool_name(name)) for name, call in functions.items()]


def _import_file(path: Path) -> ModuleType:
    # The entry in sys.modules is needed: dataclasses, pydantic and pickle look up the module of a
    # class there. A fresh name replaces no entry of this process.
    names = (f"{_MODULE_NAME}_{number}" for number in count())
    name = next(name for name in names if name not in sys.modules)
    spec = importlib.util.spec_from_file_location(name, path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise ConfigurationError(f"The file {path} is not there, or is no Python file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    # As for a script, modules beside the file can be imported.
    sys.path.insert(0, str(path.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise ConfigurationError(
            f"The file {path} cannot be imported: {type(error).__name__}: {error}."
        ) from error
    return module


def _public_functions(module: ModuleType) -> Iterator[tuple[str, Callable[..., Any]]]:
    exported = getattr(module, "__all__", None)
    for name, value in vars(module).items():
        if not inspect.isfunction(value):
            continue
        is_own = value.__module__ == module.__name__ and not name.startswith("_")
        if is_own if exported is None else name in exported:
            yield name, value


def worker_server(name: str, functions: Sequence[DeclaredFunction]) -> Server[Any]:
    """Return an MCP server with one tool per function."""
    by_name = {function.name: function for function in functions}
    tools = [
        mcp.Tool(name=each.name, description=each.description, input_schema=each.schema)
        for each in functions
    ]

    async def list_tools(_: Context, __: mcp.PaginatedRequestParams | None) -> mcp.ListToolsResult:
        return mcp.ListToolsResult(tools=tools)

    async def call_tool(context: Context, params: mcp.CallToolRequestParams) -> mcp.CallToolResult:
        async def report(number: int, text: str) -> None:
            await context.session.report_progress(number, message=text)

        function = by_name.get(params.name)
        if function is None:
            return _error_result(f"There is no tool {params.name!r}.")
        with _call_context(dict(context.meta or {})):
            return await _run(function, params.arguments or {}, report)

    return Server(name, version=__version__, on_list_tools=list_tools, on_call_tool=call_tool)


@contextlib.contextmanager
def _call_context(meta: dict[str, Any]) -> Iterator[None]:
    """Set the current call, and continue the server's trace (S1-R42)."""
    call = CURRENT_CALL.set(call_from_meta(meta))
    carrier = {name: text for name, text in meta.items() if isinstance(text, str)}
    trace = trace_context.attach(propagate.extract(carrier))
    try:
        yield
    finally:
        trace_context.detach(trace)
        CURRENT_CALL.reset(call)


async def _run(
    function: DeclaredFunction, arguments: dict[str, Any], report: Report
) -> mcp.CallToolResult:
    """Run a function; details of an exception are only logged, in this process (S1-R38)."""
    call = CURRENT_CALL.get()
    try:
        validated = function.validate(arguments)
        async with asyncio.timeout(None if call is None else call.seconds):
            value = await _result(function, validated, report)
            return await asyncio.to_thread(result_to_mcp, value)
    except ToolError as error:
        return _error_result(error.message)
    except Exception as error:
        error_id = new_error_id()
        logger.exception(
            "tool %s failed error=%s call=%s", function.name, error_id, call.id if call else "-"
        )
        name = type(error).__name__
        return _error_result(f"The tool failed: {name} (error {error_id}).", error_id=error_id)


async def _result(function: DeclaredFunction, arguments: dict[str, Any], report: Report) -> Any:
    """Return the function's result; of a generator the last value, the others are progress."""
    if inspect.isasyncgenfunction(function.call):
        last: Any = None
        number = 0
        async with contextlib.aclosing(function.call(**arguments)) as values:
            async for value in values:
                if number:
                    await report(number, _progress_text(last))
                number += 1
                last = value
        return last
    if inspect.iscoroutinefunction(function.call):
        return await function.call(**arguments)
    return await asyncio.to_thread(function.call, **arguments)


def _progress_text(value: object) -> str:
    if isinstance(value, str):
        return value
    try:
        return json.dumps(to_jsonable_python(value, inf_nan_mode="null"), ensure_ascii=False)
    except (ValueError, TypeError):
        return type(value).__name__


def _error_result(sentence: str, *, error_id: str | None = None) -> mcp.CallToolResult:
    meta = None if error_id is None else {ERROR_KEY: error_id}
    text = mcp.TextContent(type="text", text=sentence)
    return mcp.CallToolResult(content=[text], is_error=True, _meta=meta)
