"""The request of a tool that asks again: in a turn, the next model call of its agent makes it.

ADK: it requests no approval of a call that it resumes. It calls the model of the agent with the
placeholder as the result of the call. A response of a callback in place of that model call is an
event of the agent like any other, so ADK stops the agent, and all that depend on it, as at the
first request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from google.adk.events.event import Event
from google.adk.flows.llm_flows.functions import generate_request_confirmation_event
from google.adk.models.llm_response import LlmResponse
from google.adk.tools.base_tool import BaseTool
from google.genai import types

from sluicegate.adk_private import invocation_of
from sluicegate.core.event_reading import CONFIRMATION
from sluicegate.core.missing_requests import calls_without_request

if TYPE_CHECKING:
    from google.adk.agents.callback_context import CallbackContext
    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.models.llm_request import LlmRequest
    from google.adk.tools.tool_context import ToolContext


class _RequestTool(BaseTool):
    """What ADK takes the request for: a call of a tool whose result comes later."""

    def __init__(self) -> None:
        super().__init__(
            name=CONFIRMATION, description="Requests an approval.", is_long_running=True
        )

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> None:
        """Return nothing: the result is the user's answer."""


REQUEST_TOOL: Final = _RequestTool()


def next_request(context: CallbackContext, request: LlmRequest) -> LlmResponse | None:
    """Return the requests of the calls that ask again, in place of a model call; None without one.

    The log says which, so they are also made after a crash.
    """
    run = invocation_of(context)
    response = _last_response(run)
    if response is None or not response.actions.requested_tool_confirmations:
        return None
    events = [e for e in run.session.events if e.invocation_id == run.invocation_id]
    asking = {c for c, event in calls_without_request(events).items() if event is response}
    calls = [
        types.Part(function_call=call)
        for event in events
        for call in event.get_function_calls()
        if call.id in asking
    ]
    asked = Event(author=response.author, content=types.Content(role="model", parts=calls))
    confirmation = generate_request_confirmation_event(run, asked, response) if calls else None
    if confirmation is None:
        return None
    request.tools_dict[CONFIRMATION] = REQUEST_TOOL
    return LlmResponse(content=confirmation.content)


def _last_response(run: InvocationContext) -> Event | None:
    """Return the last event of an agent's run that holds results of tools."""
    name = run.agent.name if run.agent else ""
    for event in reversed(run.session.events):
        if event.invocation_id != run.invocation_id:
            return None
        is_own = event.author == name and event.branch == run.branch
        if is_own and event.get_function_responses():
            return event
    return None
