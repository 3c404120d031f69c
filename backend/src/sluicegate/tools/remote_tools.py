"""The tools of remote workers as ADK tools, with approval, validation, identity and deadline."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, cast

from google.adk.events.event import Event, NodeInfo
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.mcp_tool.mcp_tool import McpTool
from google.genai import types
from mcp import types as mcp
from opentelemetry import propagate

from sluicegate.adk_private import append_event, invocation_of, takes_events
from sluicegate.core.bounded_schema_structure import check_size
from sluicegate.core.call_keys import CallKey, idempotency_key
from sluicegate.core.schema_validation import compile_schema
from sluicegate.errors import ConfigurationError, ToolError, UnusableSchema
from sluicegate.tools.approval_terms import TERMS_KEY, ApprovalTerms
from sluicegate.tools.current_approval import approval_of
from sluicegate.tools.mcp_result_conversion import error_text, result_from_mcp
from sluicegate.tools.remote_tool_limits import MAX_DESCRIPTION
from sluicegate.tools.worker_call_metadata import WorkerCall
from sluicegate.tools.worker_calls_awaiting_input import RunningCall
from sluicegate.tools.worker_client import WorkerRequest
from sluicegate.tools.worker_names import full_tool_name, is_tool_name, shown_name
from sluicegate.tools.worker_questions import WorkerQuestions, accepted, answered_questions

if TYPE_CHECKING:
    from google.adk.models.llm_request import LlmRequest
    from google.adk.tools.tool_context import ToolContext
    from mcp.shared.dispatcher import ProgressFnT

    from sluicegate.tools.worker_calls_awaiting_input import HeldCalls
    from sluicegate.tools.worker_client import ListedTools, WorkerClient
    from sluicegate.tools.worker_questions import Given

MAX_METADATA_ENTRIES: Final = 32
MAX_METADATA_BYTES: Final = 4 * 1024
_MAX_PROGRESS: Final = 500
_MAX_TITLE: Final = 100
_MAX_CARD: Final = 300
"""Characters of the description that the page shows with an approval request."""

_MAX_PROGRESS_CHARACTERS: Final = 10_000


@dataclass(frozen=True, slots=True)
class RemoteToolSettings:
    """The server's own configuration of remote tools; workers cannot change it (S1-R36).

    ``allowed`` are the tools that may be used, None for all; ``ungated`` those that require no
    approval, ``idempotent`` those that may run again with the same key. All hold full names:
    ``<worker>_<tool>``. ``seconds`` is the deadline of a call, ``held_seconds`` how long one waits
    for a person at its worker, at most. A worker lists its tools within ``listing_seconds``.
    """

    allowed: frozenset[str] | None = None
    ungated: frozenset[str] = frozenset()
    idempotent: frozenset[str] = frozenset()
    seconds: float = 30.0
    held_seconds: float = 86_400.0
    listing_seconds: float = 5.0


class RemoteTool(McpTool):
    """A worker's tool that requires no approval.

    ADK: when the stream of a call breaks, ``McpTool`` waits until the read timeout, so only its
    declaration is used here.

    Raises:
        UnusableSchema: Arguments cannot be checked with its schema.
    """

    requires_approval = False

    def __init__(
        self,
        *,
        client: WorkerClient,
        tool: mcp.Tool,
        name: str,
        settings: RemoteToolSettings,
        held: HeldCalls,
    ) -> None:
        described = {"name": name, "description": _described(tool, client.name)}
        super().__init__(
            mcp_tool=tool.model_copy(update=described),
            mcp_session_manager=cast("Any", None),
            require_confirmation=self.requires_approval,
        )
        self._schema = compile_schema(tool.input_schema)
        self._client = client
        self._remote_name = tool.name
        self._input_schema = tool.input_schema
        self._seconds = settings.seconds
        self._held = held
        self._idempotent = name in settings.idempotent
        card = _card(tool, client.name, name)
        self.custom_metadata = {"title": _title(tool), "toolMetadata": card}
        if self._idempotent:
            self.custom_metadata[TERMS_KEY] = ApprovalTerms(idempotent=True)

    def argument_error(self, args: dict[str, Any]) -> str | None:
        """Return why the arguments do not match the worker's schema, None if they do (S1-R37)."""
        return self._schema.error(args, root="arguments")

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        """Run the tool at its worker, or ask for the input that it needs.

        Raises:
            ToolError: The call was not made or failed; the sentence is public.
        """
        argument_error = self.argument_error(args)
        if argument_error is not None:
            raise ToolError(f"Not run: the arguments do not fit: {argument_error}.")
        asked = answered_questions(tool_context)
        if asked is not None and asked.open:
            return self._ask(asked, tool_context)
        given: Given = () if asked is None else asked.given
        held = self._resume(asked, tool_context)
        call = self._start(asked, args, tool_context) if held is None else held
        call.progress = self._progress(tool_context)
        return await self._follow(call, tool_context, given, given if held is None else ())

    def _resume(self, asked: WorkerQuestions | None, context: ToolContext) -> RunningCall | None:
        """Answer the held call of a question; None if the call is to be made.

        Raises:
            ToolError: The call was made before and has ended with the process that held it, and
                may not be made again.
        """
        call = self._held.resume(_call_key(context))
        if asked is None or not asked.is_held:
            approval = approval_of(context)
            is_made = call is not None or (approval is not None and approval.is_repeated)
        elif call is not None:
            call.answer(accepted(asked.given[-1][1]))
            return call
        else:
            is_made = True
        if is_made and not self._idempotent:
            raise ToolError(
                f"The connection to the worker {self._client.name} ended while its question "
                "waited; whether the call took effect is not known."
            )
        return None

    def _start(
        self, asked: WorkerQuestions | None, args: dict[str, Any], context: ToolContext
    ) -> RunningCall:
        meta: dict[str, Any] = _worker_call(context, self._seconds).as_meta()
        propagate.inject(meta)
        request = WorkerRequest(self._remote_name, args, meta, self._input_schema)
        if asked is not None and not asked.is_held:
            responses, state = asked.input_responses(), asked.request_state
            request = replace(request, responses=responses, state=state)
        call = self._client.call
        return RunningCall(lambda ask, progress: call(request, ask, progress, self._seconds))

    async def _follow(
        self, call: RunningCall, context: ToolContext, given: Given, repeated: Given
    ) -> Any:
        """Wait for the result, or for a question that has no answer yet.

        ``given`` are the answers so far; ``repeated`` those that the call has not got, as it is
        made again.
        """
        to_repeat = list(repeated)
        while True:
            step = await call.advance()
            if isinstance(step, mcp.CallToolResult):
                if step.is_error:
                    raise ToolError(error_text(step))
                return result_from_mcp(step)
            if isinstance(step, mcp.InputRequiredResult):
                return self._ask(WorkerQuestions.required(self._client.name, step), context)
            asked = WorkerQuestions.held(step, given)
            if to_repeat and to_repeat[0][0] == asked.open[0]:
                call.answer(accepted(to_repeat.pop(0)[1]))
                continue
            try:
                placeholder = asked.ask(self._client.name, context)
            except UnusableSchema as error:
                problem = f"The form cannot be used: {error}."
                call.answer(mcp.ErrorData(code=mcp.INVALID_PARAMS, message=problem))
                continue
            self._held.hold(_call_key(context), call)
            return placeholder

    def _ask(self, asked: WorkerQuestions, context: ToolContext) -> dict[str, Any]:
        try:
            return asked.ask(self._client.name, context)
        except UnusableSchema as error:
            name = self._client.name
            raise ToolError(
                f"Not finished: the worker {name} asks with a form that cannot be used: {error}."
            ) from None

    def _progress(self, context: ToolContext) -> ProgressFnT:
        reports = 0

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            nonlocal reports
            reports += 1
            if reports <= _MAX_PROGRESS:
                text = message[:_MAX_PROGRESS_CHARACTERS] if message else _fraction(progress, total)
                await _emit_progress(self.name, text, context)

        return on_progress


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

    ``listed`` is what the worker listed. ``refusals`` are the sentences for which a worker that
    registers is refused as a whole (S1-R23).
    """

    listed: ListedTools | None = None
    tools: dict[str, RemoteTool] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    refusals: list[str] = field(default_factory=list)

    def refuse(self, name: str, why: str) -> None:
        """Leave out a tool that a worker of this package would not declare."""
        self.left_out[name] = why
        self.refusals.append(f"The tool {name} cannot be offered: {why}.")


def make_remote_tools(
    client: WorkerClient,
    listed: ListedTools,
    settings: RemoteToolSettings,
    reserved_names: frozenset[str],
    held: HeldCalls,
) -> RemoteToolListing:
    """Make the tools of a worker; one that cannot be offered is left out, and the others stay.

    ``reserved_names`` are the names of other tools. Tools not in ``allowed`` are only checked.
    """
    listing = RemoteToolListing(listed)
    for name, why in listed.malformed.items():
        listing.refuse(name, why)
    for name, tool in _named(client.name, listed.definitions, listing).items():
        problem = _problem_of(tool)
        if name in reserved_names:
            listing.refuse(name, "another tool of the agent has this name")
        elif problem is not None:
            listing.refuse(name, problem)
        elif settings.allowed is None or name in settings.allowed:
            try:
                _check_schemas(tool)
                kind = RemoteTool if name in settings.ungated else GatedRemoteTool
                made = kind(client=client, tool=tool, name=name, settings=settings, held=held)
                listing.tools[name] = made
            except UnusableSchema as error:
                listing.left_out[name] = f"its schema cannot be used: {error}"
    return listing


def _named(
    worker: str, definitions: list[mcp.Tool], listing: RemoteToolListing
) -> dict[str, mcp.Tool]:
    """Return the definitions by their full names, without those whose name is not distinct.

    A tool whose own name is its full name's second half has it, in whatever order they are listed.
    """
    by_name: dict[str, list[mcp.Tool]] = {}
    for tool in definitions:
        try:
            by_name.setdefault(full_tool_name(worker, tool.name), []).append(tool)
        except ConfigurationError as error:
            listing.refuse(shown_name(tool.name), str(error).rstrip("."))
    named: dict[str, mcp.Tool] = {}
    for name, tools in by_name.items():
        exact = [tool for tool in tools if is_tool_name(tool.name)]
        claimants = exact or tools
        if len(claimants) == 1:
            named[name] = claimants[0]
        for tool in tools:
            if claimants != [tool]:
                shown = name if tool.name in name else shown_name(tool.name)
                listing.refuse(shown, f"two tools would have the name {name}")
    return named


def _check_schemas(tool: mcp.Tool) -> None:
    if tool.input_schema.get("type") != "object":
        raise UnusableSchema("it describes no object")
    # The model reads this one; no result is checked with it.
    if tool.output_schema is not None:
        check_size(tool.output_schema)


def _problem_of(tool: mcp.Tool) -> str | None:
    """Return why a tool cannot be offered, beside its schema (S1-R30)."""
    annotations = tool.annotations.model_dump(exclude_none=True) if tool.annotations else {}
    metadata = {**annotations, **(tool.meta or {})}
    if len(metadata) > MAX_METADATA_ENTRIES or _json_size(metadata) > MAX_METADATA_BYTES:
        return (
            f"its metadata has more than {MAX_METADATA_ENTRIES} entries or "
            f"{MAX_METADATA_BYTES:,} bytes"
        )
    if len(tool.description or "") > MAX_DESCRIPTION:
        return f"its description has more than {MAX_DESCRIPTION:,} characters"
    if tool.execution is not None and tool.execution.task_support == "required":
        return "it runs only as a task (taskSupport: required), which this server does not support"
    return None


def _described(tool: mcp.Tool, worker: str) -> str:
    """Return the description for the model; providers require one (S1-R07)."""
    return tool.description or _title(tool) or f"The tool {tool.name} of the worker {worker}."


def _title(tool: mcp.Tool) -> str | None:
    annotated = tool.annotations.title if tool.annotations else None
    return shown_name(tool.title or annotated or "", _MAX_TITLE) or None


def _card(tool: mcp.Tool, worker: str, name: str) -> dict[str, Any]:
    """Return what the page shows of a tool; a worker may warn of its tool, never vouch for it."""
    card: dict[str, Any] = {"worker": worker}
    if name != f"{worker}_{tool.name}":
        card["tool"] = tool.name
    if tool.description:
        card["description"] = shown_name(tool.description, _MAX_CARD)
    if tool.annotations and tool.annotations.destructive_hint:
        card["destructive"] = True
    return card


def _fraction(progress: float, total: float | None) -> str:
    return f"{progress:g}" if total is None else f"{progress:g} of {total:g}"


def _json_size(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False, default=str).encode("utf-8", "replace"))


def _call_key(context: ToolContext) -> CallKey:
    run = invocation_of(context)
    session, call_id = run.session, context.function_call_id or ""
    return CallKey(session.app_name, session.user_id, session.id, run.invocation_id, call_id)


def _worker_call(context: ToolContext, seconds: float) -> WorkerCall:
    run = invocation_of(context)
    session = run.session
    approval = approval_of(context)
    return WorkerCall(
        id=context.function_call_id or "",
        user=session.user_id,
        app=session.app_name,
        chat=session.id,
        key=idempotency_key(_call_key(context)) if approval is None else approval.key,
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
