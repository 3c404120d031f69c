"""Corrections of when ADK pauses a run: beside calls of the page, and in parallel agents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from google.adk.agents.base_agent import BaseAgent

from sluicegate.adk_private import invocation_of
from sluicegate.core.event_reading import CREDENTIAL, INPUT

if TYPE_CHECKING:
    from google.adk.agents.callback_context import CallbackContext
    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.events.event import Event

_ASKS_USER: Final = frozenset({INPUT, CREDENTIAL})


def go_on_after_answers(run: InvocationContext) -> None:
    """Have a run make the calls again in which something waits, beside calls of the page.

    ADK: a step with a call that the page answers pauses until all its calls have results. So what
    waits in another call of it never goes on. A run goes on when everything that was asked is
    answered.
    """
    if run.live_request_queue is not None:
        return
    should_pause = run.should_pause_invocation
    earlier = {event.id for event in run.session.events}
    session = run.session

    def should_pause_invocation(event: Event) -> bool:
        if event.id in earlier:
            calls = event.get_function_calls()
            pausing = {call.id for call in calls if call.name in _ASKS_USER}
            others = {call.id for call in calls} - pausing - (event.long_running_tool_ids or set())
            answered = {r.id for each in session.events for r in each.get_function_responses()}
            if not others <= answered:
                return False
        return should_pause(event)

    # ADK: the context of each agent is a copy of this one.
    vars(run)["should_pause_invocation"] = should_pause_invocation


def waits_below(context: CallbackContext) -> bool:
    """Return whether an agent has handed over, and a call waits for the user or the page there.

    ADK: an agent goes on after a step whose last event is no final response, unless a call waits
    on the branch of the agent. Parallel agents have branches of their own, so an agent that has
    handed over to them is asked again although one of them waits, if the last event is the result
    of another call.
    """
    run = invocation_of(context)
    agent = run.agent
    if not isinstance(agent, BaseAgent) or not agent.sub_agents:
        return False
    asked: set[str] = set()
    answered: set[str | None] = set()
    for event in reversed(run.session.events):
        if event.invocation_id != run.invocation_id:
            return False
        is_own = event.author == agent.name and event.branch == run.branch
        if is_own and event.content is not None:
            return event.actions.transfer_to_agent is not None and not asked <= answered
        if event.actions.transfer_to_agent == agent.name:
            return False
        answered.update(response.id for response in event.get_function_responses())
        if agent.find_agent(event.author) is not None:
            asked.update(event.long_running_tool_ids or ())
    return False
