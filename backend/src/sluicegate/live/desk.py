"""Where the gate of a live run asks: requests go into the log as ADK would have written them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.flows.llm_flows.tools._functions import generate_request_confirmation_event
from google.genai import types

from sluicegate.live.connection import listened_to
from sluicegate.live.ears import Ears

if TYPE_CHECKING:
    from collections.abc import Callable

    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.models.llm_request import LlmRequest

    from sluicegate.engine.guard.guard import Connecting
    from sluicegate.live.asks import Asks
    from sluicegate.live.ears import Listening
    from sluicegate.live.exchange import LiveExchange
    from sluicegate.live.line import Line
    from sluicegate.live.live_gate import Question
    from sluicegate.live.run import LiveRun
    from sluicegate.live.sorter import Orders, Sorter


class LiveDesk:
    """Serves the gate of one run."""

    def __init__(self, sorter: Sorter, line: Line, asks: Asks, listening: Listening) -> None:
        self._sorter = sorter
        self._line = line
        self._asks = asks
        self._listening = listening
        self.run: LiveRun
        self.has_begun = asyncio.Event()

    def began(self, run: InvocationContext) -> None:
        """The run has begun."""
        self.run.began(run)
        self.has_begun.set()

    def meet(self, event: Event) -> Orders:
        """An event is about to be stored."""
        return self._sorter.meet(event)

    def connect(
        self, connected: Callable[[LlmRequest], Connecting], request: LlmRequest
    ) -> Connecting:
        """Open a connection to the model."""
        model = getattr(connected, "__self__", None)
        ears = Ears(self.run, self._listening, model, request.model)
        return listened_to(connected, request, ears)

    def began_call(self, call_id: str, run: InvocationContext) -> None:
        """A call is looked at, in that part of the run."""
        self.run.began_call(call_id, run)

    def owner(self, call_id: str) -> LiveExchange | None:
        """The exchange of a call."""
        return self._sorter.owner(call_id)

    def is_stopping(self, exchange: LiveExchange | None) -> bool:
        """Whether no call of an exchange may begin any more."""
        turn = self._line.running(exchange) if exchange is not None else None
        return turn is not None and turn.turn_gate.stopping

    def has_open_calls(self, call_id: str) -> bool:
        """Whether another call than this one is at work, or waits."""
        return any(name != call_id for each in self._line.exchanges for name in each.calls)

    async def ask(self, question: Question) -> bool:
        """Ask and wait; whether the answer was yes.

        ADK itself asks nobody in a live run. With the request and its placeholder in the log a
        call can be answered later as any other, when this run is gone.
        """
        placeholder = _placeholder(question)
        context = question.context._invocation_context
        asking = Event(
            author=context.agent.name if context.agent else "",
            content=types.Content(role="model", parts=[types.Part(function_call=question.call)]),
        )
        request = generate_request_confirmation_event(context, asking, placeholder)
        if request is not None:
            await self.run.store(request)
        await self.run.store(placeholder)
        return await self._asks.wait(question.call.id or "")


def _placeholder(question: Question) -> Event:
    """What ADK would have answered in place of the tool."""
    context = question.context._invocation_context
    call = question.call
    response = types.FunctionResponse(
        id=call.id, name=call.name, response=dict(question.placeholder)
    )
    return Event(
        invocation_id=context.invocation_id,
        author=context.agent.name if context.agent else "",
        branch=context.branch,
        content=types.Content(role="user", parts=[types.Part(function_response=response)]),
        actions=EventActions(
            skip_summarization=True,
            requested_tool_confirmations={call.id or "": question.confirmation},
        ),
    )
