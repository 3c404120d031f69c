"""Tools of remote workers as ADK sees them: gated, checked, with identity and deadline."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

import jsonschema  # type: ignore[import-untyped]
from google.adk.events.event import Event, NodeInfo
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.mcp_tool.mcp_tool import McpTool
from google.genai import types
from opentelemetry import propagate
from referencing import Registry

from sluicegate.adk_private import append_event, invocation_of, takes_events
from sluicegate.core.keys import CallKey, idempotency_key
from sluicegate.errors import ConfigurationError, ToolError
from sluicegate.tools.gated import approval_of
from sluicegate.tools.worker_protocol import WorkerCall, full_tool_name
from sluicegate.tools.worker_results import error_text, result_from_mcp

if TYPE_CHECKING:
    from collections.abc import Iterable

    from google.adk.models.llm_request import LlmRequest
    from google.adk.tools.tool_context import ToolContext
    from mcp import types as mcp

    from sluicegate.tools.worker_client import WorkerClient

MAX_METADATA_ENTRIES: Final = 32
MAX_METADATA_BYTES: Final = 4 * 1024
_MAX_SCHEMA_BYTES: Final = 64 * 1024
_MAX_DESCRIPTION: Final = 8 * 1024
_MAX_PROGRESS: Final = 500
_MAX_PROGRESS_CHARACTERS: Final = 10_000


@dataclass(frozen=True, slots=True)
class RemoteToolSettings:
    """What the server's own configuration says of remote tools; nothing else does (S1-R36).

    ``allowed`` are the names of tools that may be used, None for all; ``ungated`` those that ask
    nobody. Names are whole: ``<worker>_<tool>``. ``seconds`` is the deadline of a call.
    """

    allowed: frozenset[str] | None = None
    ungated: frozenset[str] = frozenset()
    seconds: float = 30.0


class RemoteTool(McpTool):
    """A tool of a worker that asks nobody.

    ADK: its ``McpTool`` waits for as long as a read may take when the stream of a call breaks, so
    only what it tells the model is used of it.
    """

    requires_approval = False

    def __init__(self, *, link: WorkerClient, tool: mcp.Tool, name: str, seconds: float) -> None:
        """Take the worker's declaration and the name that the model calls it by."""
        super().__init__(
            mcp_tool=tool.model_copy(update={"name": name}),
            mcp_session_manager=cast("Any", None),
            require_confirmation=self.requires_approval,
        )
        self._link = link
        self._remote_name = tool.name
        self._seconds = seconds
        self.custom_metadata = {"toolMetadata": {"worker": link.name}}

    def problem(self, args: dict[str, Any]) -> str | None:
        """Why the arguments do not fit the worker's schema; None if they do (S1-R37)."""
        try:
            found = next(_validator(self.raw_mcp_tool.inputSchema).iter_errors(args), None)
        except Exception:  # noqa: BLE001 - a schema may refer to what is not there
            return "the worker's schema cannot be read"
        if found is None:
            return None
        place = ".".join(str(step) for step in found.absolute_path) or "arguments"
        return f"{place}: {found.message[:200]}"

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        """Run the tool at its worker.

        Raises:
            ToolError: It did not, or failed; the sentence is public.
        """
        problem = self.problem(args)
        if problem is not None:
            raise ToolError(f"Not run: the arguments do not fit: {problem}.")
        meta: dict[str, Any] = _call(tool_context, self._seconds).as_meta()
        propagate.inject(meta)
        told = 0

        async def show(progress: float, total: float | None, message: str | None) -> None:
            nonlocal told
            told += 1
            if message and told <= _MAX_PROGRESS:
                await _show(self.name, message[:_MAX_PROGRESS_CHARACTERS], tool_context)

        result = await self._link.call(self._remote_name, args, meta, show, self._seconds)
        if result.isError:
            raise ToolError(error_text(result))
        return result_from_mcp(result)


class GatedRemoteTool(RemoteTool):
    """A tool of a worker that asks a person each time."""

    requires_approval = True

    async def check_require_confirmation(
        self, args: dict[str, Any], tool_context: ToolContext
    ) -> bool:
        """Ask for every call that could be run; nobody is asked for one that is refused anyway."""
        return self.problem(args) is None


class RemovedTool(BaseTool):
    """Stands for a tool whose call waits for a person while its worker has gone (S1-R41).

    ADK: an answer for a tool that is not there ends the run with an error.
    """

    def __init__(self, name: str) -> None:
        """Stand for the tool of that name."""
        super().__init__(name=name, description="")

    async def process_llm_request(
        self, *, tool_context: ToolContext, llm_request: LlmRequest
    ) -> None:
        """Tell the model nothing of it."""

    async def check_require_confirmation(
        self, args: dict[str, Any], tool_context: ToolContext
    ) -> bool:
        """It asked."""
        return True

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        """Answer the call; nothing runs."""
        raise ToolError(f"Not run: the tool {self.name} is no longer there.")


def make_remote_tools(
    link: WorkerClient, listed: Iterable[mcp.Tool], terms: RemoteToolSettings, taken: frozenset[str]
) -> list[RemoteTool]:
    """Make tools of what a worker offers: all of it or nothing (S1-R23).

    ``taken`` are names of other tools. Tools that are not allowed are left out.

    Raises:
        ConfigurationError: One of them cannot be used; the sentence names it.
    """
    made: dict[str, RemoteTool] = {}
    for tool in listed:
        name = full_tool_name(link.name, tool.name)
        if name in made or name in taken:
            raise ConfigurationError(f"There are two tools named {name!r}.")
        _check(tool, name)
        kind = RemoteTool if name in terms.ungated else GatedRemoteTool
        made[name] = kind(link=link, tool=tool, name=name, seconds=terms.seconds)
    return [tool for name, tool in made.items() if terms.allowed is None or name in terms.allowed]


def _check(tool: mcp.Tool, name: str) -> None:
    """Hold what a worker declares within bounds (S1-R30)."""
    annotations = tool.annotations.model_dump(exclude_none=True) if tool.annotations else {}
    metadata = {**annotations, **(tool.meta or {})}
    if len(metadata) > MAX_METADATA_ENTRIES or _size(metadata) > MAX_METADATA_BYTES:
        raise ConfigurationError(
            f"The metadata of the tool {name!r} has more than {MAX_METADATA_ENTRIES} entries or "
            f"{MAX_METADATA_BYTES} bytes."
        )
    if not tool.description or len(tool.description) > _MAX_DESCRIPTION:
        raise ConfigurationError(f"The tool {name!r} has no description, or a very long one.")
    schema = tool.inputSchema
    if schema.get("type") != "object" or _size(schema) > _MAX_SCHEMA_BYTES:
        raise ConfigurationError(f"The schema of the tool {name!r} is no object, or very long.")
    try:
        _validator(schema).check_schema(schema)
    except Exception as error:
        raise ConfigurationError(f"The schema of the tool {name!r} is no JSON schema.") from error


def _size(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False, default=str).encode("utf-8", "replace"))


def _validator(schema: dict[str, Any]) -> Any:
    kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    # A schema that refers elsewhere must not make this process fetch anything.
    return kind(schema, registry=Registry())


def _call(context: ToolContext, seconds: float) -> WorkerCall:
    run = invocation_of(context)
    session = run.session
    call_id = context.function_call_id or ""
    approval = approval_of(context)
    own = CallKey(session.app_name, session.user_id, session.id, run.invocation_id, call_id)
    return WorkerCall(
        id=call_id,
        user=session.user_id,
        app=session.app_name,
        chat=session.id,
        key=idempotency_key(own) if approval is None else approval.key,
        seconds=seconds,
        decided_by=None if approval is None else approval.decided_by,
        is_repeated=approval is not None and approval.is_repeated,
    )


async def _show(tool: str, text: str, context: ToolContext) -> None:
    """Show what a tool that still runs has to say, as ADK's generator tools do (S1-R33)."""
    run = invocation_of(context)
    if not takes_events(run):
        return
    own = f"{tool}@{context.function_call_id}"
    event = Event(
        author=tool,
        invocation_id=run.invocation_id,
        branch=f"{run.branch}.{own}" if run.branch else own,
        partial=True,
        content=types.Content(role="model", parts=[types.Part(text=text)]),
        node_info=NodeInfo(path=own),
    )
    await append_event(run, event)
