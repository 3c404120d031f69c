"""Whether something waits where an agent has handed over.

ADK: an agent goes on after a step whose last event is no final response, unless a call waits on the
branch of the agent. Parallel agents have branches of their own, so an agent that has handed over to
them is asked again although one of them waits, if the last event is the result of another call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from google.adk.agents.base_agent import BaseAgent

from sluicegate.adk_private import invocation_of

if TYPE_CHECKING:
    from google.adk.agents.callback_context import CallbackContext


def waits_below(context: CallbackContext) -> bool:
    """Return whether an agent has handed over, and a call waits for the user or the page there."""
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
