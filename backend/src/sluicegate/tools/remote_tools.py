"""The tools of remote workers as ADK tools, with approval, validation, identity and deadline."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast

from google.adk.events.event import Event, NodeInfo
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.mcp_tool.mcp_tool import McpTool
from google.genai import types
from opentelemetry import propagate

from sluicegate.adk_private import append_event, invocation_of, takes_events
from sluicegate.core.chat_keys import CallKey, idempotency_key
from sluicegate.core.schema_structure import check_size
from sluicegate.core.schema_validation import compile_schema
from sluicegate.errors import ConfigurationError, ToolError, UnusableSchema
from sluicegate.tools.declaration_limits import MAX_DESCRIPTION
from sluicegate.tools.gated import approval_of
from sluicegate.tools.mcp_results import error_text, result_from_mcp
from sluicegate.tools.worker_call_metadata import WorkerCall
from sluicegate.tools.worker_names import full_tool_name

if TYPE_CHECKING:
    from google.adk.models.llm_request import LlmRequest
    from google.adk.tools.tool_context import ToolContext
    from mcp import types as mcp

    from sluicegate.tools.worker_client import WorkerClient

MAX_METADATA_ENTRIES: Final = 32
MAX_METADATA_BYTES: Final = 4 * 1024
_MAX_PROGRESS: Final = 500
_MAX_PROGRESS_CHARACTERS: Final = 10_000


@dataclass(frozen=True, slots=True)
class RemoteToolSettings:
    """The server's own configuration of remote tools; workers cannot change it (S1-R36).

    ``allowed`` are the tools that may be used, None for all; ``ungated`` those that require no
    approval. Both hold full names: ``<worker>_<tool>``. ``seconds`` is the deadline of a call.
    """

    allowed: frozenset[str] | None = None
    ungated: frozenset[str] = frozenset()
    seconds: float = 30.0


class RemoteTool(McpTool):
    """A worker's tool that requires no approval.

    ADK: when the stream of a call breaks, ``McpTool`` waits until the read timeout, so only its
    declaration is used here.

    Raises:
        UnusableSchema: Arguments cannot be checked with its schema.
    """

    requires_approval = False

    def __init__(self, *, client: WorkerClient, tool: mcp.Tool, name: str, seconds: float) -> None:
        super().__init__(
            mcp_tool=tool.model_copy(update={"name": name}),
            mcp_session_manager=cast("Any", None),
            require_confirmation=self.requires_approval,
        )
        self._schema = compile_schema(tool.inputSchema)
        self._client = client
        self._remote_name = tool.name
        self._seconds = seconds
        self.custom_metadata = {"toolMetadata": {"worker": client.name}}

    def argument_error(self, args: dict[str, Any]) -> str | None:
        """Return why the arguments do not match the worker's schema, None if they do (S1-R37)."""
        return self._schema.error(args, root="arguments")

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        """Run the tool at its worker.

        Raises:
            ToolError: The call was not made or failed; the sentence is public.
        """
        argument_error = self.argument_error(args)
        if argument_error is not None:
            raise ToolError(f"Not run: the arguments do not fit: {argument_error}.")
        meta: dict[str, Any] = _worker_call(tool_context, self._seconds).as_meta()
        propagate.inject(meta)
        reports = 0

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            nonlocal reports
            reports += 1
            if message and reports <= _MAX_PROGRESS:
                await _emit_progress(self.name, message[:_MAX_PROGRESS_CHARACTERS], tool_context)

        result = await self._client.call(self._remote_name, args, meta, on_progress, self._seconds)
        if result.isError:
            raise ToolError(error_text(result))
        return result_from_mcp(result)


class GatedRemoteTool(RemoteTool):
    """A worker's tool that requires approval for each call."""

    requires_approval = True

    async def check_require_confirmation(
        self, args: dict[str, Any], tool_context: ToolContext
    ) -> bool:
        """Request approval for valid calls; one with invalid arguments fails without it."""
        return self.argument_error(args) is None


class RemovedTool(BaseTool):
    """Stands in for a tool whose call awaits approval although its worker is gone (S1-R41).

    ADK: a confirmation for a tool that does not exist ends the run with an error.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name=name, description="")

    async def process_llm_request(
        self, *, tool_context: ToolContext, llm_request: LlmRequest
    ) -> None:
        """Leave the request unchanged: the tool is not declared to the model."""

    async def check_require_confirmation(
        self, args: dict[str, Any], tool_context: ToolContext
    ) -> bool:
        """Always, as the removed tool did."""
        return True

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        """Fail: there is nothing to run."""
        raise ToolError(f"Not run: the tool {self.name} is no longer there.")


@dataclass(frozen=True, slots=True)
class RemoteToolListing:
    """What a worker offers, by full name: its tools, and why others are left out.

    ``definitions`` are those that the worker listed.
    """

    definitions: list[mcp.Tool] = field(default_factory=list)
    tools: dict[str, RemoteTool] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)


def make_remote_tools(
    client: WorkerClient,
    definitions: list[mcp.Tool],
    settings: RemoteToolSettings,
    reserved_names: frozenset[str],
) -> RemoteToolListing:
    """Make tools of all that a worker offers, or of nothing (S1-R23).

    ``reserved_names`` are the names of other tools. Tools that are not allowed are ignored. A tool
    with a schema that arguments cannot be checked with is left out; the others stay.

    Raises:
        ConfigurationError: A name, a description or the metadata of a tool is not valid; the
            sentence names it.
    """
    listing = RemoteToolListing(definitions)
    names: set[str] = set()
    for tool in definitions:
        name = full_tool_name(client.name, tool.name)
        if name in names or name in reserved_names:
            raise ConfigurationError(f"There are two tools named {name!r}.")
        names.add(name)
        _check_declaration(tool, name)
        if settings.allowed is None or name in settings.allowed:
            try:
                _check_schemas(tool)
                kind = RemoteTool if name in settings.ungated else GatedRemoteTool
                made = kind(client=client, tool=tool, name=name, seconds=settings.seconds)
                listing.tools[name] = made
            except UnusableSchema as error:
                listing.left_out[name] = f"its schema cannot be used: {error}"
    return listing


def _check_schemas(tool: mcp.Tool) -> None:
    if tool.inputSchema.get("type") != "object":
        raise UnusableSchema("it describes no object")
    # The model reads this one; no result is checked with it.
    if tool.outputSchema is not None:
        check_size(tool.outputSchema)


def _check_declaration(tool: mcp.Tool, name: str) -> None:
    """Enforce limits on what a worker declares beside its schema (S1-R30)."""
    annotations = tool.annotations.model_dump(exclude_none=True) if tool.annotations else {}
    metadata = {**annotations, **(tool.meta or {})}
    if len(metadata) > MAX_METADATA_ENTRIES or _json_size(metadata) > MAX_METADATA_BYTES:
        raise ConfigurationError(
            f"The metadata of the tool {name!r} has more than {MAX_METADATA_ENTRIES} entries or "
            f"{MAX_METADATA_BYTES} bytes."
        )
    if not tool.description or len(tool.description) > MAX_DESCRIPTION:
        raise ConfigurationError(f"The tool {name!r} has no description, or a very long one.")


def _json_size(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False, default=str).encode("utf-8", "replace"))


def _worker_call(context: ToolContext, seconds: float) -> WorkerCall:
    run = invocation_of(context)
    session = run.session
    call_id = context.function_call_id or ""
    approval = approval_of(context)
    call_key = CallKey(session.app_name, session.user_id, session.id, run.invocation_id, call_id)
    return WorkerCall(
        id=call_id,
        user=session.user_id,
        app=session.app_name,
        chat=session.id,
        key=idempotency_key(call_key) if approval is None else approval.key,
        seconds=seconds,
        decided_by=None if approval is None else approval.decided_by,
        is_repeated=approval is not None and approval.is_repeated,
    )


async def _emit_progress(tool: str, text: str, context: ToolContext) -> None:
    """Emit a partial event of a running tool, as ADK's generator tools do (S1-R33)."""
    run = invocation_of(context)
    if not takes_events(run):
        return
    branch = f"{tool}@{context.function_call_id}"
    event = Event(
        author=tool,
        invocation_id=run.invocation_id,
        branch=f"{run.branch}.{branch}" if run.branch else branch,
        partial=True,
        content=types.Content(role="model", parts=[types.Part(text=text)]),
        node_info=NodeInfo(path=branch),
    )
    await append_event(run, event)
