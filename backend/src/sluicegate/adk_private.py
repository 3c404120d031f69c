"""The private parts of google-adk that sluicegate depends on.

No other module touches one, apart from `adk_private_resumption`, for how agents are resumed.

Each definition says what it uses, why nothing public does, and what breaks without it.
``tests/test_private_surface.py`` has one test per definition, which fails when ADK changes it.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, NoReturn

from google.adk.agents._streaming_mode import StreamingMode as StreamingMode
from google.adk.agents.llm_agent import LlmAgent
from google.adk.models.base_llm_connection import BaseLlmConnection
from google.adk.tools._confirmation_utils import apply_confirmation_gate
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.base_toolset import BaseToolset
from google.adk.tools.function_tool import FunctionTool
from google.adk.utils._callback_pipeline import _run_callbacks, _stop_on_non_none
from google.adk.utils._schema_utils import validate_schema
from google.adk.utils._sync_runner import _get_tool_thread_pool, _use_executor_for_sync_callables
from google.adk.utils.model_name_utils import _is_gemini_3_x_live
from google.adk.workflow._errors import NodeInterruptedError as NodeInterruptedError
from google.adk.workflow._graph import Graph as Graph

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager
    from types import FunctionType

    from google.adk.agents.base_agent import BaseAgent
    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.agents.readonly_context import ReadonlyContext
    from google.adk.apps.llm_event_summarizer import LlmEventSummarizer
    from google.adk.events.event import Event
    from google.adk.models.base_llm import BaseLlm
    from google.adk.sessions.database_session_service import DatabaseSessionService
    from google.adk.sessions.session import Session
    from google.adk.tools.tool_context import ToolContext
    from google.adk.workflow import BaseNode
    from google.genai import types
    from sqlalchemy.ext.asyncio import AsyncSession

    from sluicegate.core.schema_validation import ArgumentSchema as ResultSchema

    Condition = bool | Callable[..., Any]

# `StreamingMode`, which ``RunConfig`` takes, is in no public module. Without it no turn streams.
# `Graph`, which ``Workflow.graph`` holds, is not exported. Without it nodes are not copied.

# The run.


def invocation_of(context: ReadonlyContext) -> InvocationContext:
    """Return ``_invocation_context`` of a callback's or tool's context.

    The public ``get_invocation_context`` returns a copy, which shares neither later changes nor
    identity. Without it a callback does not know its agent and run.
    """
    return context._invocation_context


def takes_events(run: InvocationContext) -> bool:
    """Whether a run has an event queue (``_event_queue``), so that `append_event` may be called.

    ADK offers no public way to detect this. Without it progress of remote tools fails outside a
    Runner.
    """
    return run._event_queue is not None


async def append_event(run: InvocationContext, event: Event) -> None:
    """Append an event through a run by ``_enqueue_event``; returns once it is stored.

    A session has one writer, the Runner, and only generator tools may emit through it publicly.
    Without it neither progress of remote tools nor approval requests of live runs are stored.
    """
    await run._enqueue_event(event)


def background_tasks(run: InvocationContext) -> Mapping[str, asyncio.Task[Any]]:
    """Return the tasks of a live run's calls by call id, from ``_active_background_tools``.

    The public views are deprecated and keyed by tool name. Without it a stopped or superseded call
    of a live run cannot be cancelled.
    """
    running = run._active_background_tools or {}
    return {call: entry.task for call, entry in running.items() if entry.task is not None}


def interrupt(context: ToolContext, call_ids: set[str]) -> NoReturn:
    """End the run of a node until calls are answered: ``_interrupt_ids``, `NodeInterruptedError`.

    ADK does so only for the calls of the node that a tool runs itself. Without it the calls of a
    ``single_turn`` agent below another one are lost.
    """
    context._interrupt_ids.update(call_ids)
    raise NodeInterruptedError


def overrides_run(kind: type[BaseAgent]) -> bool:
    """Whether a class itself defines ``_run_async_impl``, the hook that custom agents implement.

    ADK has no public list of what an agent class implements. Without it an agent that does not
    record its position would be served, and lose approvals.
    """
    return "_run_async_impl" in vars(kind)


def run_function_of(kind: type[BaseAgent]) -> FunctionType:
    """Return the ``_run_async_impl`` that a class itself defines (`overrides_run`)."""
    function: FunctionType = vars(kind)["_run_async_impl"]
    return function


@contextmanager
def tool_threads(workers: int) -> Iterator[None]:
    """Run synchronous tool functions that are called in this context on ADK's thread pool.

    By ``_get_tool_thread_pool`` and ``_use_executor_for_sync_callables``: the setting
    ``tool_thread_pool_config`` gives coroutines of a live run event loops of their own. Without it
    a blocking tool blocks every chat of the process.
    """
    with _use_executor_for_sync_callables(_get_tool_thread_pool(workers)):
        yield


# Tools.


class _RequiresApproval(BaseTool):
    async def check_require_confirmation(
        self, args: dict[str, Any], tool_context: ToolContext
    ) -> bool:
        return True


async def request_confirmation(tool: BaseTool, context: ToolContext) -> dict[str, Any]:
    """Request an approval as ADK does; returns the placeholder that answers the call meanwhile.

    The hint and the placeholder are those of ``apply_confirmation_gate``, which is not exported. It
    is given a stand-in, so that the tool's predicate is not called again. Without it a live run
    cannot request an approval that a later turn can answer.
    """
    stand_in = _RequiresApproval(name=tool.name, description="")
    return dict(await apply_confirmation_gate(stand_in, {}, context) or {})


async def run_before_tool_callbacks(
    tool: BaseTool, arguments: dict[str, Any], context: ToolContext
) -> dict[str, Any] | None:
    """Run the callbacks of plugins and agent before a tool, in the order of ADK.

    By ``_run_callbacks``, since callbacks name their parameters freely. Without it an approved call
    of a live run, which ADK does not resume, runs with arguments that no callback has seen.
    """
    run = context._invocation_context
    response = await run.plugin_manager.run_before_tool_callback(
        tool=tool, tool_args=arguments, tool_context=context
    )
    if response is not None or not isinstance(run.agent, LlmAgent):
        return response
    callbacks: Sequence[Callable[..., Any]] = run.agent.canonical_before_tool_callbacks
    return await _run_callbacks(
        callbacks, _stop_on_non_none, tool=tool, args=arguments, tool_context=context
    )


def declaration_of(tool: BaseTool) -> types.FunctionDeclaration | None:
    """Return the declaration that a model gets of a tool, by ``_get_declaration``.

    The hook is documented for authors of tools; there is no public reader. Without it no JSON
    schema of arguments is known, so approvals cannot be edited. It raises what the hook raises.
    """
    return tool._get_declaration()


class DeclaredTool(BaseTool):
    """A tool that returns its declaration from the public method `declaration`.

    Implements ``_get_declaration``, the only hook for it. Without it a model is not offered tools
    that run in the browser.
    """

    def declaration(self) -> types.FunctionDeclaration:
        """Return the declaration of the tool for a model."""
        raise NotImplementedError

    def _get_declaration(self) -> types.FunctionDeclaration:
        return self.declaration()


class DeclaredFunctionTool(FunctionTool):
    """A function tool with its own declaration and its own reading of arguments.

    Implements ``_get_declaration`` and ``_preprocess_args``, the hook through which ADK converts
    arguments. Without it tools get strings in place of dates and enums.
    """

    @property
    def context_parameters(self) -> frozenset[str]:
        """The parameters that ADK fills itself, from ``_ignore_params``.

        Nothing public lists them. Without it they would be offered to the model.
        """
        return frozenset(self._ignore_params)

    def declaration(self) -> types.FunctionDeclaration:
        """Return the declaration of the tool for a model."""
        raise NotImplementedError

    def read_arguments(self, args: dict[str, Any]) -> dict[str, Any]:
        """Convert a model's arguments to what the function takes."""
        raise NotImplementedError

    def _get_declaration(self) -> types.FunctionDeclaration:
        return self.declaration()

    def _preprocess_args(self, args: dict[str, Any]) -> dict[str, Any]:
        return self.read_arguments(args)


def confirmation_setting(owner: object) -> Condition | None:
    """Return the ``require_confirmation`` that a tool or toolset was made with, None without one.

    ADK keeps it in ``_require_confirmation``; only toolsets have a public property. Without it the
    survey does not know which tools require approval.
    """
    setting: Condition | None = getattr(owner, "_require_confirmation", None)
    return getattr(owner, "require_confirmation", None) if setting is None else setting


def keeps_confirmation_setting(tool: BaseTool) -> bool:
    """Whether a tool's class reads ``_require_confirmation``, so that a change has an effect."""
    return hasattr(tool, "_require_confirmation")


def set_confirmation(tool: BaseTool, *, when: Condition) -> None:
    """Set ``_require_confirmation`` of one tool.

    ADK takes it in constructors alone. Without it `sluicegate.tools.gated` cannot make an existing
    tool require an approval.
    """
    vars(tool)["_require_confirmation"] = when


class UncachedToolset(BaseToolset):
    """A toolset whose tools ADK lists anew for each model call, by ``_use_invocation_cache``.

    ADK caches them per invocation, which an approval continues with another request or much later;
    no public setting turns that off. Without it tools of a new page or worker stay unknown.
    """

    def __init__(self) -> None:
        super().__init__()
        self._use_invocation_cache = False


_RESULT_SCHEMA: ContextVar[ResultSchema | None] = ContextVar("sluicegate_result_schema")


def check_results_of(tool: BaseTool, schema: ResultSchema | None) -> None:
    """Check the results of an ``McpTool`` with a bounded schema, None for no check.

    The client of MCP does it in ``ClientSession.validate_tool_result``, whose patterns backtrack;
    ``McpTool._create_session`` returns it. Without it a result can hold the event loop for hours.
    """
    create: Callable[..., Awaitable[Any]] = type(tool)._create_session  # type: ignore[attr-defined]

    async def create_session(*, headers: dict[str, str] | None) -> Any:
        session = await create(tool, headers=headers)
        _RESULT_SCHEMA.set(schema)
        session.validate_tool_result = _check_result
        return session

    vars(tool)["_create_session"] = create_session


async def _check_result(name: str, result: Any) -> None:
    schema = _RESULT_SCHEMA.get(None)
    if schema is None or result.is_error:
        return
    if result.structured_content is None:
        raise RuntimeError(f"Tool {name} has an output schema but no structured content")
    error = schema.error(result.structured_content)
    if error is not None:
        raise RuntimeError(f"Invalid structured content returned by tool {name}: {error}")


_DELEGATION: Final = {"_SingleTurnAgentTool": "single_turn", "_TaskAgentTool": "task"}


def delegation_mode(tool: BaseTool) -> str | None:
    """Return the mode of the sub-agent that ADK made a tool for, None for any other tool.

    ``_SingleTurnAgentTool`` and ``_TaskAgentTool`` are private, and an ``AgentTool`` that a user
    made is another thing. Without it agents with delegated sub-agents are refused.
    """
    return _DELEGATION.get(type(tool).__name__) if isinstance(tool, AgentTool) else None


def validated(schema: Any, text: str) -> Any:
    """Parse a text with an output schema by ``validate_schema``; returns the output.

    ``_schema_utils`` is private. Without it the result of an agent that is called differs from that
    of an `AgentTool`.
    """
    return validate_schema(schema, text)


def function_of(node: BaseNode) -> Callable[..., Any] | None:
    """Return the function of a Workflow's ``FunctionNode`` from ``_func``, None for other nodes.

    Nothing public holds it. Without it tools that a function runs by ``run_node`` stay unknown.
    """
    return getattr(node, "_func", None)


# Models.


def uses_vertex(model: BaseLlm) -> bool:
    """Whether a Gemini model sends requests to Vertex AI, by ``_api_backend``; no without a key.

    Nothing public says it. Without it files are sent to Vertex AI in a form that it refuses.
    """
    try:
        backend = getattr(model, "_api_backend", None)
    except Exception:  # noqa: BLE001 - without credentials there is no client to ask
        return False
    return getattr(backend, "name", "") == "VERTEX_AI"


def litellm_arguments(model: BaseLlm) -> Mapping[str, Any]:
    """Return ``_additional_args`` of a ``LiteLlm``; without it a key in code is not noticed."""
    return getattr(model, "_additional_args", None) or {}


def is_gemini_3_live(model: str) -> bool:
    """Whether a live model's name is one of Gemini 3, by ``_is_gemini_3_x_live``.

    ADK orders calls and ends of turns by it. Without it a scripted live model plays another order
    than the model it stands for.
    """
    return _is_gemini_3_x_live(model)


def continues_after_result(connection: BaseLlmConnection) -> bool:
    """Whether a live model goes on with its turn at a result, by ``_is_gemini_3_x_live``.

    There is no public alternative. Without it the end of a live exchange is recognised too early.
    """
    return bool(getattr(connection, "_is_gemini_3_x_live", False))


async def send_content(
    connection: BaseLlmConnection, content: types.Content, *, partial: bool
) -> None:
    """Send a content on a live connection by ``_send_content``, which takes ``partial``.

    The public ``send_content`` always completes the user's turn. Without it a note to the model
    makes it answer.
    """
    await connection._send_content(content, partial=partial)


async def send_contents(
    connection: BaseLlmConnection, contents: list[types.Content], *, turn_complete: bool
) -> None:
    """Send contents to a live session of Google by ``_gemini_session``.

    The public ``send_history`` completes a history only if the user has the last word, and then
    makes the model answer; ``send_content`` sends one content, as complete. Without it a model that
    has had the last word hears nothing, and a resumed session lacks what was said since its handle.
    """
    session = connection._gemini_session  # type: ignore[attr-defined]
    await session.send_client_content(turns=contents, turn_complete=turn_complete)


def observe_live_messages(
    connection: BaseLlmConnection, observe: Callable[[types.LiveServerMessage], None]
) -> None:
    """Have every message of a live session of Google observed before ADK reads it.

    ADK has no line that reads ``tool_call_cancellation``; the session is ``_gemini_session``.
    Without it calls that the model has cancelled keep waiting for a decision.
    """
    session = getattr(connection, "_gemini_session", None)
    if session is not None:
        vars(connection)["_gemini_session"] = _ObservedSession(session, observe)


class _ObservedSession:
    def __init__(self, session: Any, observe: Callable[[types.LiveServerMessage], None]) -> None:
        self._session = session
        self._observe = observe

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    async def receive(self) -> AsyncGenerator[types.LiveServerMessage, None]:
        async for message in self._session.receive():
            self._observe(message)
            yield message


class PartialContentConnection(BaseLlmConnection):
    """A live connection that receives ADK's contents in `send_partial`, with ``partial``.

    Implements ``_send_content``, the hook that ADK calls. Without it partial contents complete the
    user's turn.
    """

    async def send_content(self, content: types.Content) -> None:
        """Send a content that completes the user's turn."""
        await self.send_partial(content, partial=False)

    async def send_partial(self, content: types.Content, *, partial: bool) -> None:
        """Send a content; ``partial``: the user's turn goes on."""
        raise NotImplementedError

    async def _send_content(self, content: types.Content, *, partial: bool = False) -> None:
        await self.send_partial(content, partial=partial)


def prompt_of(summarizer: LlmEventSummarizer) -> str:
    """Return the prompt that an event summarizer was made with, from ``_prompt_template``.

    Nothing public holds it. Without it replacing the summarizer's model loses the prompt.
    """
    return summarizer._prompt_template


# Sessions.


def revision_of(session: Session) -> str | None:
    """Return the stored revision that a session was read at, from ``_storage_update_marker``.

    There is no public way to detect a changed session. Without it every turn reads all of it.
    """
    return session._storage_update_marker


def continue_from(session: Session, newer: Session) -> None:
    """Bring a session that is in use to the revision of a newer reading.

    Sets ``_storage_update_marker``; there is no public way to reload a session in place. Without it
    a message fails while another replica, which has lost the chat, stores its last event.
    """
    session.events, session.state = newer.events, newer.state
    session.last_update_time = newer.last_update_time
    session._storage_update_marker = newer._storage_update_marker


def set_revision(session: Session, revision: str) -> None:
    """Set what `revision_of` returns, after an append; goes with `session_tables`."""
    session._storage_update_marker = revision


def session_tables(sessions: DatabaseSessionService) -> Any:
    """Return the ORM classes of what is stored, from ``_get_schema_classes``.

    The service has no query that counts events, and none for a session alone. Without it a rewound
    session is not noticed, and each reading of a cached session takes three statements.
    """
    return sessions._get_schema_classes()


def read_transaction(sessions: DatabaseSessionService) -> AbstractAsyncContextManager[AsyncSession]:
    """Open a read-only transaction, by ``_rollback_on_exception_session``.

    The service keeps its session factory private. Goes with `session_tables`.
    """
    return sessions._rollback_on_exception_session(read_only=True)


async def anthropic_client(model: BaseLlm) -> Any:
    """Return the client of an ``AnthropicLlm``, made if there is none, by `_get_anthropic_client`.

    The public field is empty unless the author of the agent sets it. Without it no file is uploaded
    to Anthropic by ADK's own class.
    """
    return await getattr(model, "_get_anthropic_client")()  # noqa: B009 - of that class alone


def with_anthropic_client(model: BaseLlm, client: Any) -> BaseLlm:
    """Return a copy of an ``AnthropicLlm`` that calls ``client``, kept as ``_anthropic_client``.

    A copy by the public ``client`` alone still calls the client that the original has made. Without
    it no request refers to a file at Anthropic.
    """
    fresh = model.model_copy(update={"client": client})
    vars(fresh)["_anthropic_client"] = client
    return fresh
