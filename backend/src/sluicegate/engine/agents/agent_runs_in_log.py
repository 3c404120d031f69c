"""The runs of an agent as the log has them: the callbacks around an agent run once for each.

Which runs have begun and ended is in the log: a call that waits is an event of its agent, shell
agents store where they are, and each agent stores its end. So nothing else is stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from google.adk.agents.llm_agent import LlmAgent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from google.adk.agents.base_agent import BaseAgent
    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.events.event import Event


class AgentRun:
    """A run of an agent in an exchange, as the log has it."""

    def __init__(self, agent: BaseAgent, ctx: InvocationContext) -> None:
        self._agent = agent
        self._ctx = ctx

    def goes_on(self) -> bool:
        """Whether it has begun in an earlier turn."""
        # In a live chat no call ends its turn, and no agent stores its end.
        if not self._ctx.is_resumable or self._ctx.live_request_queue is not None:
            return False
        events = list(self._events())
        if not events or events[0].actions.end_of_agent:
            return False
        # ADK: an agent begins anew after each of its tasks.
        tasks = {each.name for each in self._agent.sub_agents if _is_task(each)}
        calls = next((found for each in events if (found := each.get_function_calls())), [])
        return not any(call.name in tasks for call in calls)

    def has_ended(self) -> bool:
        """Whether the log has its end."""
        last = next(self._events(), None)
        return last is not None and bool(last.actions.end_of_agent)

    def is_waiting(self) -> bool:
        """Whether a call of the agent, or of one below it, waits for an answer."""
        ctx, waiting = self._ctx, set[str]()
        own = f"{ctx.branch}." if ctx.branch else ""
        for event in ctx.session.events:
            is_own = f"{event.branch or ''}.".startswith(own)
            if is_own and event.invocation_id == ctx.invocation_id:
                waiting |= event.long_running_tool_ids or set()
                waiting.difference_update(each.id or "" for each in event.get_function_responses())
        return bool(waiting)

    def has_handed_over(self) -> bool:
        """Whether a transfer has ended it, so that nothing runs after it."""
        return False

    def _events(self) -> Iterator[Event]:
        """The events of the agent at its place, since the agents around it began; latest first."""
        agent, ctx = self._agent, self._ctx
        around = set(_shells_around(agent))
        path = ctx.node_path or ""
        for event in reversed(ctx.session.events):
            if event.invocation_id != ctx.invocation_id:
                continue
            if event.author in around and event.actions.agent_state is not None:
                return
            is_own = event.author == agent.name and (event.branch or "") == (ctx.branch or "")
            if is_own and _is_at(path, _path_of(event)):
                yield event


class CalledAgentRun(AgentRun):
    """A run of an agent that ADK runs as a node in an `AgentTool`: a transfer ends it."""

    def has_handed_over(self) -> bool:
        """Whether a transfer has ended it.

        ADK: there, no callback runs after an agent that hands over. In the session of the chat it
        is no node, and ends after the other agent.
        """
        events = (event for event in self._events() if not event.actions.end_of_agent)
        last = next(events, None)
        return last is not None and bool(last.actions.transfer_to_agent)


def _is_task(agent: BaseAgent) -> bool:
    return isinstance(agent, LlmAgent) and agent.mode == "task"


def _shells_around(agent: BaseAgent) -> Iterator[str]:
    parent = agent.parent_agent
    while parent is not None:
        if not isinstance(parent, LlmAgent):
            yield parent.name
        parent = parent.parent_agent


def _path_of(event: Event) -> str:
    path = event.node_info.path or ""
    if event.actions.transfer_to_agent:
        # It is stored with the path of its agent; see `keep_transfer_inside`.
        return path.removesuffix(f"/{event.author}@1")
    return path


def _is_at(path: str, stored: str) -> bool:
    """Whether an event with a stored path is of the node at a path.

    ADK: a node with which a Runner begins has no path above it, and another number.
    """
    mine = path.split("/")
    theirs = stored.split("/")[-len(mine) :]
    return mine[1:] == theirs[1:] and mine[0].partition("@")[0] == theirs[0].partition("@")[0]
