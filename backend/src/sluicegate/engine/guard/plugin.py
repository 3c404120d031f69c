"""Ids of function calls: one call of a chat, one id.

ADK: it takes a provider's ids as they are and finds calls by them, also when it matches approvals
and results. Some providers number the calls of each answer anew, so the second ``call_0`` of an
exchange would be taken for the first.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from google.adk.models.base_llm import BaseLlm
from google.adk.platform.time import get_time
from google.adk.plugins.base_plugin import BasePlugin

from sluicegate.adk_private import invocation_of
from sluicegate.core.events import ABORTED, METADATA_KEY, NODE_CONFIRMATION
from sluicegate.core.ledger_overlay import OUTCOME_UNKNOWN, closing_sentence
from sluicegate.engine.guard.recovery import STOPPED
from sluicegate.engine.models.fast_lane import UNOBSERVED
from sluicegate.engine.models.model_files import is_served
from sluicegate.engine.models.redact_errors import make_storable
from sluicegate.engine.turn_context import CURRENT_TURN

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from google.adk.agents.callback_context import CallbackContext
    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.events.event import Event
    from google.adk.models.llm_request import LlmRequest
    from google.adk.models.llm_response import LlmResponse
    from google.adk.tools.base_tool import BaseTool
    from google.adk.tools.tool_context import ToolContext

    from sluicegate.engine.guard.guard import ApprovalGuard

if TYPE_CHECKING:
    from google.adk.agents.callback_context import CallbackContext
    from google.adk.models.llm_response import LlmResponse

    Speaker = tuple[str, str | None]


@dataclass(slots=True)
class ModelIds:
    """The ids of one model call: those it keeps, and the new ones by what the provider said."""

    kept: set[str] = field(default_factory=set)
    renamed: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class CallIds:
    """Follows the model calls of a turn; fragments and their aggregate get the same ids."""

    _taken: set[str] | None = None
    _speaking: dict[Speaker, ModelIds] = field(default_factory=dict)

    def begin(self, context: CallbackContext) -> None:
        """A model is about to be called."""
        if self._taken is None:
            self._taken = {
                call.id or ""
                for event in context.session.events
                for call in event.get_function_calls()
            }
        over = self._speaking.pop(_speaker(context), None)
        if over is not None:
            self._taken |= over.kept
            self._taken.update(over.renamed.values())

    def rename(self, context: CallbackContext, response: LlmResponse) -> None:
        """Give the calls of a response ids of their own, in place."""
        for part in (response.content and response.content.parts) or ():
            if part.function_call is not None and part.function_call.id:
                speaker = _speaker(context)
                part.function_call.id = self._own(speaker, part.function_call.id)

    def _own(self, speaker: Speaker, call_id: str) -> str:
        mine = self._speaking.setdefault(speaker, ModelIds())
        if call_id in mine.kept or call_id in mine.renamed.values():
            return call_id
        if call_id in mine.renamed:
            return mine.renamed[call_id]
        others = (ids.kept for other, ids in self._speaking.items() if other != speaker)
        if call_id in (self._taken or ()) or any(call_id in kept for kept in others):
            mine.renamed[call_id] = f"adk-{uuid.uuid4()}"
            return mine.renamed[call_id]
        mine.kept.add(call_id)
        return call_id


def _speaker(context: CallbackContext) -> Speaker:
    return context.agent_name, context.branch


_TICK: Final = 2e-6
"""Seconds that stores can tell apart: they keep whole microseconds."""

PUBLIC_FAILURE = "The agent could not finish its answer."


class ApprovalPlugin(BasePlugin):
    """Hands tool calls to the gate of the turn that runs, and notes on events how calls ended."""

    def __init__(self, unobserved: Container[str] = ()) -> None:
        """``unobserved`` are the names of agents whose partial text takes the fast lane."""
        super().__init__(name="sluicegate")
        self._unobserved = unobserved

    async def before_run_callback(self, *, invocation_context: InvocationContext) -> None:
        """Let the turn know the run, and the run know earlier ones as its own."""
        # ADK: it quotes every event of an earlier live run to the model as another agent's words,
        # so that a call of that agent is lost and its result is dropped. The events are shared
        # with other readers of the chat, so this run gets copies.
        events = invocation_context.session.events
        events[:] = [
            event
            if event.live_session_id is None
            else event.model_copy(update={"live_session_id": None})
            for event in events
        ]
        turn = CURRENT_TURN.get()
        if turn is not None:
            turn.begin(invocation_context)

    async def before_model_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest
    ) -> LlmResponse | None:
        """Begin to watch the ids of the calls that the model makes, and open the fast lane.

        Give files to a model that has nobody around it to do so: one that a function builds, and
        each one that is talked to live.
        """
        turn = CURRENT_TURN.get()
        if turn is not None:
            turn.call_ids.begin(callback_context)
            UNOBSERVED.set(callback_context.agent_name in self._unobserved)
            invocation = invocation_of(callback_context)
            model = getattr(invocation.agent, "canonical_model", None)
            is_live = invocation.live_request_queue is not None
            if isinstance(model, BaseLlm) and (is_live or not is_served(model)):
                shaped = await turn.models.shape(llm_request.contents, model, llm_request.model)
                llm_request.contents = shaped.contents
        return None

    async def after_model_callback(
        self, *, callback_context: CallbackContext, llm_response: LlmResponse
    ) -> LlmResponse | None:
        """Let no two calls of a chat have the same id, and no live model say what is not stored."""
        make_storable(llm_response)
        turn = CURRENT_TURN.get()
        if turn is not None:
            turn.call_ids.rename(callback_context, llm_response)
        return None

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext
    ) -> dict[str, Any] | None:
        """Claim an approved call immediately before its effect, or answer it (A1)."""
        turn = CURRENT_TURN.get()
        return None if turn is None else await turn.before(tool, tool_args, tool_context)

    async def after_tool_callback(
        self,
        *,
        tool: BaseTool,
        tool_args: dict[str, Any],
        tool_context: ToolContext,
        result: dict[str, Any],
    ) -> dict[str, Any] | None:
        """Store the outcome of a claimed call."""
        turn = CURRENT_TURN.get()
        return None if turn is None else await turn.after(tool, tool_args, tool_context, result)

    async def on_tool_error_callback(
        self,
        *,
        tool: BaseTool,
        tool_args: dict[str, Any],
        tool_context: ToolContext,
        error: Exception,
    ) -> dict[str, Any] | None:
        """Answer a failed call with a safe sentence; the turn goes on (T8)."""
        turn = CURRENT_TURN.get()
        return None if turn is None else await turn.failed(tool_context, error)

    async def on_event_callback(
        self, *, invocation_context: InvocationContext, event: Event
    ) -> Event | None:
        """Note how calls ended, and keep a failure's own words out of the session (T8, T10)."""
        turn = CURRENT_TURN.get()
        if turn is None:
            return None
        turn.meet(event)
        turn.asks.meet(event)
        # What is said into a microphone or out of a loudspeaker is no file.
        if invocation_context.live_request_queue is None or event.get_function_responses():
            await turn.files.neutralise(event)
        noted: dict[str, Any] = {}
        notices = turn.notices.take()
        if notices:
            self._note(event, {"notices": notices})
        if not event.partial:
            event.timestamp = _next_moment(invocation_context)
            noted = await _outcomes(turn, event)
            if event.error_message and event.error_code != ABORTED:
                event.error_message = PUBLIC_FAILURE
        self._note(event, noted)
        self._note(event, turn.order.note(event))
        # An event that is returned would keep other plugins from seeing this one.
        return None

    def _note(self, event: Event, noted: dict[str, Any]) -> None:
        if noted:
            metadata = event.custom_metadata or {}
            ours = {**metadata.get(METADATA_KEY, {}), **noted}
            event.custom_metadata = {**metadata, METADATA_KEY: ours}


def _next_moment(context: InvocationContext) -> float:
    """The time now, and after that of the event before.

    ADK: stores sort a session by time, and an event has that of the last piece which came through
    the Runner; so of agents that speak at once, one that ended later could be read as the earlier.
    """
    stored = context.session.events
    earliest = stored[-1].timestamp + _TICK if stored else 0.0
    return max(get_time(), earliest)


async def _outcomes(turn: ApprovalGuard, event: Event) -> dict[str, Any]:
    """How the calls that this event answers ended, where it is not a plain output (T8)."""
    names = [response.id or "" for response in event.get_function_responses()]
    if event.error_code == ABORTED:
        await _seal(turn, event.invocation_id, names)
    if event.node_info.path:
        names.append(NODE_CONFIRMATION + event.node_info.path)
    outcomes = {name: turn.outcomes[name] for name in names if name in turn.outcomes}
    return {"outcomes": outcomes} if outcomes else {}


async def _seal(turn: ApprovalGuard, invocation: str, names: Sequence[str]) -> None:
    """Note what it means for calls that the end of the turn has ended them (A5, T8)."""
    # ADK: those that were asked about are among them.
    for row in await turn.asks.close(turn.chat, invocation, names, turn.ledger):
        approved, sentence = closing_sentence(row)
        kind = "error" if approved else "denied"
        turn.outcomes.setdefault(row.key.call, {"kind": kind, "text": sentence})
    for name in names:
        text = OUTCOME_UNKNOWN if name in turn.claims.cut or name in turn.claims else STOPPED
        turn.outcomes.setdefault(name, {"kind": "error", "text": text})
