"""The plugins through which ADK reaches the turn that runs: models, tool calls and events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from google.adk.agents.llm_agent import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.platform.time import get_time
from google.adk.plugins.base_plugin import BasePlugin

from sluicegate.adk_private import invocation_of
from sluicegate.core.closed_approval_outcomes import OUTCOME_UNKNOWN, closing_sentence
from sluicegate.core.event_reading import ABORTED, METADATA_KEY, NODE_CONFIRMATION
from sluicegate.core.missing_requests import requested_calls
from sluicegate.engine.agents.adk_pause_corrections import go_on_after_answers, waits_below
from sluicegate.engine.agents.forget_earlier_rounds import forget_earlier_rounds
from sluicegate.engine.agents.resumed_agent_nodes import keep_transfer_inside
from sluicegate.engine.current_guard import CURRENT_GUARD
from sluicegate.engine.guard.call_responses import STOPPED
from sluicegate.engine.guard.follow_up_requests import REQUEST_TOOL, next_request
from sluicegate.engine.models.intercept_model_calls import make_storable
from sluicegate.engine.models.text_fast_lane import UNOBSERVED
from sluicegate.media.model_wrapper import is_wrapped

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping, Sequence

    from google.adk.agents.callback_context import CallbackContext
    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.events.event import Event
    from google.adk.models.llm_request import LlmRequest
    from google.adk.tools.base_tool import BaseTool
    from google.adk.tools.tool_context import ToolContext

    from sluicegate.core.chat_and_turn_keys import ChatKey
    from sluicegate.engine.guard.guard import ApprovalGuard

_TICK: Final = 2e-6
"""The smallest difference in seconds that stores keep: they store whole microseconds."""

PUBLIC_FAILURE: Final = "The agent could not finish its answer."


class LoadedTools(Protocol):
    """Tools of chats, which are loaded when a turn starts."""

    async def load(self, chat: ChatKey) -> None:
        """Load those of a chat; errors end the run."""


class ApprovalPlugin(BasePlugin):
    """Passes tool calls to the approval guard of the running turn, and notes outcomes on events.

    ``unobserved`` are the names of agents whose partial text takes the fast lane. ``chat_tools``
    are loaded when a run starts. Outside turns the plugin passes no call to a guard.
    """

    def __init__(
        self, unobserved: Container[str] = (), chat_tools: LoadedTools | None = None
    ) -> None:
        super().__init__(name="sluicegate")
        self._unobserved = unobserved
        self._chat_tools = chat_tools

    async def before_run_callback(self, *, invocation_context: InvocationContext) -> None:
        """Start the run of a turn; events of earlier live runs become its own."""
        # The events are shared with other readers of the chat, so this run gets copies.
        events = invocation_context.session.events
        guard = CURRENT_GUARD.get()
        events[:] = list(_for_this_run(events, guard))
        go_on_after_answers(invocation_context)
        forget_earlier_rounds(invocation_context)
        if guard is not None:
            if self._chat_tools is not None and not guard.has_chat_tools:
                await self._load_chat_tools(self._chat_tools, guard)
            guard.start_run(invocation_context)

    @staticmethod
    async def _load_chat_tools(tools: LoadedTools, turn: ApprovalGuard) -> None:
        try:
            await tools.load(turn.chat)
        except Exception as error:
            # ADK: it wraps the error of a plugin, and the log would not name the type.
            turn.model_error = error
            raise
        turn.has_chat_tools = True

    async def before_model_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest
    ) -> LlmResponse | None:
        """Prepare a model call: unique call ids, the fast lane, and files.

        Files are added here for models without the wrapper that does so: those that a function
        builds. The connection of a live run adds them for its own model.
        """
        guard = CURRENT_GUARD.get()
        if guard is None:
            return None
        if waits_below(callback_context):
            # Without content it is no event, so ADK ends the run of the agent.
            return LlmResponse()
        next_response = next_request(callback_context, llm_request)
        if next_response is not None:
            return next_response
        guard.call_ids.start_model_call(callback_context)
        guard.declared.start_model_call(callback_context, llm_request)
        UNOBSERVED.set(callback_context.agent_name in self._unobserved)
        model = getattr(invocation_of(callback_context).agent, "canonical_model", None)
        if isinstance(model, BaseLlm) and not is_wrapped(model):
            shaped = await guard.models.shape(llm_request.contents, model, llm_request.model)
            llm_request.contents = shaped.contents
        return None

    async def after_model_callback(
        self, *, callback_context: CallbackContext, llm_response: LlmResponse
    ) -> LlmResponse | None:
        """Refuse what a model may not write, make call ids unique, and live text storable."""
        make_storable(llm_response)
        guard = CURRENT_GUARD.get()
        if guard is not None:
            guard.declared.refuse_reserved(callback_context, llm_response)
            guard.call_ids.assign(callback_context, llm_response)
        return None

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext
    ) -> dict[str, Any] | None:
        """Respond in place of a call that the user's callbacks need not see."""
        if tool is REQUEST_TOOL:
            # A response that is empty, so that ADK waits, and that no other callback sees.
            return {}
        guard = CURRENT_GUARD.get()
        return (
            None if guard is None else await guard.before_callbacks(tool, tool_args, tool_context)
        )

    async def after_tool_callback(
        self,
        *,
        tool: BaseTool,
        tool_args: dict[str, Any],
        tool_context: ToolContext,
        result: dict[str, Any],
    ) -> dict[str, Any] | None:
        """Store the outcome of a claimed call; no other callback sees a call that waits."""
        if tool is REQUEST_TOOL:
            return {}
        guard = CURRENT_GUARD.get()
        if guard is None:
            return None
        shown = await guard.after_tool(tool, tool_args, tool_context, result)
        waits = tool_context.function_call_id in tool_context.actions.requested_tool_confirmations
        return result if waits and shown is None else shown

    async def on_tool_error_callback(
        self,
        *,
        tool: BaseTool,
        tool_args: dict[str, Any],
        tool_context: ToolContext,
        error: Exception,
    ) -> dict[str, Any] | None:
        """Respond to a failed call with a safe sentence; the turn continues (T8)."""
        guard = CURRENT_GUARD.get()
        return None if guard is None else await guard.tool_failed(tool_context, error)

    async def on_event_callback(
        self, *, invocation_context: InvocationContext, event: Event
    ) -> Event | None:
        """Note outcomes of calls on an event, and replace the text of errors (T8, T10)."""
        keep_transfer_inside(event)
        guard = CURRENT_GUARD.get()
        if guard is None:
            return None
        guard.observe(event)
        guard.requests.observe(event)
        # Audio of a microphone or loudspeaker is not stored as a file.
        if invocation_context.live_request_queue is None or event.get_function_responses():
            await guard.files.replace_files(event)
        notices = guard.notices.take()
        if notices:
            _note(event, {"notices": notices})
        if not event.partial:
            event.timestamp = _next_moment(invocation_context)
            _note(event, await _outcomes(guard, event))
            _note(event, guard.snapshots.note(event))
            if event.error_message and event.error_code != ABORTED:
                event.error_message = PUBLIC_FAILURE
        _note(event, guard.order.note(event))
        # ADK: a returned event would end the chain of plugins.
        return None


class GuardPlugin(BasePlugin):
    """Passes tool calls to the approval guard after all callbacks of the user.

    ADK: the callbacks of an agent follow those of the plugins, and a tool node of a Workflow has no
    agent. So for a call of an agent, the guard becomes the last callback of that agent.
    """

    def __init__(self) -> None:
        super().__init__(name="sluicegate_last")

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext
    ) -> dict[str, Any] | None:
        """Let the guard decide about the call of a node, or make it the last of an agent."""
        if CURRENT_GUARD.get() is None:
            return None
        agent = invocation_of(tool_context).agent
        if tool_context.node is not None or not isinstance(agent, LlmAgent):
            return await guard_call(tool, tool_args, tool_context)
        callbacks = agent.canonical_before_tool_callbacks
        if not callbacks or callbacks[-1] is not guard_call:
            others = [callback for callback in callbacks if callback is not guard_call]
            agent.before_tool_callback = [*others, guard_call]
        return None


def _for_this_run(events: Sequence[Event], turn: ApprovalGuard | None) -> Iterator[Event]:
    """The events of a session as a run that begins must read them."""
    # ADK marks its requests, which are few in a long chat.
    asked = requested_calls(event for event in events if event.long_running_tool_ids)
    for event in events:
        changes: dict[str, Any] = {}
        # ADK: it quotes every event of an earlier live run to the model as another agent's words,
        # so that a call of that agent is lost and its result is dropped.
        if event.live_session_id is not None:
            changes["live_session_id"] = None
        waiting = event.long_running_tool_ids
        if waiting and turn is not None and not asked.isdisjoint(waiting):
            # ADK: an agent in a Workflow that has made a long-running call has ended only after a
            # response of the user. A client-side call with an approval waits by the request for
            # it, and its response is the agent's.
            kinds = {
                c.id: turn.tools.facts(event.author, c.name or "").kind
                for c in event.get_function_calls()
            }
            changes["long_running_tool_ids"] = {
                each for each in waiting if each not in asked or kinds.get(each) != "gated-client"
            }
        yield event.model_copy(update=changes) if changes else event


async def guard_call(
    tool: BaseTool, args: dict[str, Any], tool_context: ToolContext
) -> dict[str, Any] | None:
    """Claim an approved call immediately before its effect, or respond in its place (A1)."""
    guard = CURRENT_GUARD.get()
    return None if guard is None else await guard.before_tool(tool, args, tool_context)


def _note(event: Event, notes: Mapping[str, Any]) -> None:
    """Add notes to the metadata of an event that is not stored yet."""
    if notes:
        metadata = event.custom_metadata or {}
        ours = {**metadata.get(METADATA_KEY, {}), **notes}
        event.custom_metadata = {**metadata, METADATA_KEY: ours}


def _next_moment(context: InvocationContext) -> float:
    """Return the time now, or a moment after the previous event if that is later.

    ADK: stores sort a session by time, and an event has the time of its last partial event in the
    Runner; of agents that run in parallel, one that ended later could be read as the earlier one.
    """
    stored = context.session.events
    earliest = stored[-1].timestamp + _TICK if stored else 0.0
    return max(get_time(), earliest)


async def _outcomes(turn: ApprovalGuard, event: Event) -> dict[str, Any]:
    """Return the outcomes of the calls that an event responds to, without plain outputs (T8)."""
    names = [response.id or "" for response in event.get_function_responses()]
    if event.error_code == ABORTED:
        await _close_aborted(turn, event.invocation_id, names)
    if event.node_info.path:
        names.append(NODE_CONFIRMATION + event.node_info.path)
    outcomes = {name: turn.outcomes[name] for name in names if name in turn.outcomes}
    return {"outcomes": outcomes} if outcomes else {}


async def _close_aborted(turn: ApprovalGuard, invocation: str, names: Sequence[str]) -> None:
    """Note the outcomes of calls that ended because the turn was aborted (A5, T8)."""
    # ADK: calls that wait for an approval are among them.
    for row in await turn.requests.supersede(turn.chat, invocation, names, turn.ledger):
        approved, sentence = closing_sentence(row)
        kind = "error" if approved else "denied"
        turn.outcomes.setdefault(row.key.call_id, {"kind": kind, "text": sentence})
    for name in names:
        text = (
            OUTCOME_UNKNOWN if name in turn.claims.interrupted or name in turn.claims else STOPPED
        )
        turn.outcomes.setdefault(name, {"kind": "error", "text": text})
