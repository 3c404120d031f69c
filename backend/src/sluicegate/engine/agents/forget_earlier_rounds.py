"""The rounds of a LoopAgent in a run that is resumed.

ADK: a LoopAgent forgets at the end of a round which agents in it have ended, but a run that is
resumed reads that from the whole log. Without this module, parallel agents that ended in an earlier
round would not run in a later round after an approval.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.loop_agent import LoopAgent

from sluicegate.engine.agents.agent_tree import agents_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.events.event import Event


def forget_earlier_rounds(run: InvocationContext) -> None:
    """Remove from a run what ADK has read of agents in earlier rounds of their loops."""
    if not isinstance(run.agent, BaseAgent):
        return
    loops = [agent for agent in agents_in(run.agent) if isinstance(agent, LoopAgent)]
    if not loops:
        return
    events = [each for each in run.session.events if each.invocation_id == run.invocation_id]
    for loop in loops:
        current = {event.author for event in events[_begin_of_round(loop, events) :]}
        for agent in agents_in(loop):
            if agent is not loop and agent.name not in current:
                run.agent_states.pop(agent.name, None)
                run.end_of_agents.pop(agent.name, None)


def _begin_of_round(loop: LoopAgent, events: Sequence[Event]) -> int:
    """The index of the event with which a loop has begun its latest round."""
    begin, latest = 0, None
    for index, event in enumerate(events):
        state = event.actions.agent_state if event.author == loop.name else None
        if state is not None and state.get("times_looped") != latest:
            begin, latest = index, state.get("times_looped")
    return begin
