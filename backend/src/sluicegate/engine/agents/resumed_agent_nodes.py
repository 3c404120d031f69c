"""Agents that ADK runs as nodes: below a transfer, in a Workflow, or when they are called.

As a node, ADK resumes no SequentialAgent, ParallelAgent or LoopAgent: it takes the answer of a
person for the output. At the root it reads from the log where such an agent was, and so do the
copies here wherever they run. What they run, and how, is up to ADK.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, cast

from google.adk.agents.base_agent import BaseAgent, BaseAgentState
from google.adk.agents.llm_agent import LlmAgent
from google.adk.agents.loop_agent import LoopAgent
from google.adk.agents.parallel_agent import ParallelAgent
from google.adk.events.event import Event
from google.adk.utils.content_utils import to_user_content

from sluicegate.adk_private import NodeInterruptedError, interrupt, invocation_of
from sluicegate.adk_private_resumption import (
    hold_interruptions,
    keep_escalation,
    keep_output,
    resume_after_own_call,
    run_callbacks_once,
    shadow_node_run,
)
from sluicegate.engine.agents.agent_runs_in_log import AgentRun
from sluicegate.engine.agents.agent_tree import agents_in
from sluicegate.engine.agents.called_agent_session_view import CallSession
from sluicegate.engine.agents.every_turn_mark import runs_every_turn
from sluicegate.engine.agents.replay_ended_sub_agent_runs import follow

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from google.adk.agents.context import Context
    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.sessions.session import Session
    from google.genai import types

CALLED_ROOT: Final = "sluicegate_call"
"""The name of the nodes that run what is called, and author of the events with their state."""


def resume_as_node(agent: BaseAgent) -> None:
    """Have a copy of an agent go on where it waited, when ADK runs it as a node again."""
    if isinstance(agent, LlmAgent):
        resume_after_own_call(agent)
        keep_output(agent)
    else:
        # ADK: a node that is not run again gets the answer of a person as its output.
        agent.rerun_on_resume = True
        follow(agent)
    if isinstance(agent, ParallelAgent):
        hold_interruptions(agent, _enter_branch)
    if isinstance(agent, LoopAgent):
        keep_escalation(agent)
    run_callbacks_once(agent, AgentRun, runs_every_turn)
    shadow_node_run(agent, _resumed)


@contextmanager
def _resumed(ctx: Context, node_input: Any) -> Iterator[None]:
    """Prepare the run of a node, and keep what waits in it."""
    node, run = ctx.node, invocation_of(ctx)
    restored: Event | None = None
    if not isinstance(node, LlmAgent):
        assert isinstance(node, BaseAgent)
        _restore_states(node, run, ctx.node_path)
        if node.name == CALLED_ROOT:
            _begin_call(ctx, node, node_input)
    elif _answers_once(node) and ctx.resume_inputs and node_input is not None:
        restored = _restore_input(ctx, run.session.events, node_input)
    try:
        yield
    except NodeInterruptedError:
        # ADK: a Workflow goes on if its node does not know what waits below it.
        interrupt(ctx, _waiting_below(run.session.events, ctx.node_path))
    finally:
        if restored is not None:
            run.session.events.remove(restored)


def _begin_call(ctx: Context, node: BaseAgent, request: types.Content) -> None:
    """Show what is called a session of its own."""
    run = invocation_of(ctx)
    session = CallSession(
        run.session,
        request,
        invocation_id=run.invocation_id,
        branch=run.branch or "",
        parallel={each.name for each in agents_in(node) if isinstance(each, ParallelAgent)},
    )
    run.session = cast("Session", session)
    run.user_content = request
    ctx.isolation_scope = None


def _enter_branch(run: InvocationContext) -> None:
    """Hide from a branch of parallel agents what the other branches did before."""
    if isinstance(run.session, CallSession):
        run.session = cast("Session", run.session.of_branch())


def keep_transfer_inside(event: Event) -> None:
    """Store a transfer between agents inside a shell agent as no transfer of its node.

    ADK: a node that is resumed after one of its events has transferred hands over to that agent.
    """
    path = event.node_info.path
    if event.actions.transfer_to_agent and path and _node_of(path) != event.author:
        event.node_info.path = f"{path}/{event.author}@1"


def _answers_once(agent: LlmAgent) -> bool:
    has_history = agent.parent_agent is not None or bool(agent.sub_agents)
    return agent.mode == "single_turn" or (agent.mode is None and not has_history)


def _restore_input(ctx: Context, events: list[Event], node_input: Any) -> Event | None:
    """Put the input of a node before its first event: ADK gives it only to one that begins."""
    path = ctx.node_path
    index = next((n for n, event in enumerate(events) if event.node_info.path == path), None)
    if index is None:
        return None
    content = to_user_content(node_input).model_copy(update={"role": "user"})
    restored = Event(
        author="user",
        branch=ctx.branch,
        isolation_scope=ctx.isolation_scope,
        content=content,
    )
    restored.node_info.path = path
    events.insert(index, restored)
    return restored


def _restore_states(agent: BaseAgent, run: InvocationContext, path: str) -> None:
    """Read from the log where a shell agent was, as a Runner does for one at the root."""
    states: dict[str, dict[str, Any]] = {}
    ended: dict[str, bool] = {}
    loops = {each.name: each for each in agents_in(agent) if isinstance(each, LoopAgent)}
    events = [each for each in run.session.events if each.invocation_id == run.invocation_id]
    for event in _own_events(events, agent, path):
        # ADK: the state of the agent that is the node is kept by the path of the node.
        key = path if event.author == agent.name else event.author
        if event.actions.end_of_agent:
            ended[key] = True
            states.pop(key, None)
        elif event.actions.agent_state is not None:
            if event.author in loops and _begins_round(states.get(key), event):
                for each in agents_in(loops[event.author]):
                    states.pop(each.name, None)
                    ended.pop(each.name, None)
            states[key] = event.actions.agent_state
            ended[key] = False
        elif event.content and key not in states:
            states[key] = BaseAgentState().model_dump(mode="json")
            ended[key] = False
    run.agent_states, run.end_of_agents = states, ended


def _own_events(events: Iterable[Event], agent: BaseAgent, path: str) -> list[Event]:
    """The events of an agent's latest run as a node, without those of agents that it calls."""
    own = [event for event in events if event.author != "user"]
    paths = [event.node_info.path for event in own if _node_of(event.node_info.path) == agent.name]
    # ADK: a node with which a Runner begins has the path that it would have without other runs. Any
    # other node has its own, and shares nothing with an earlier run or an earlier call.
    begins_run = "/" not in path and path not in paths
    latest = paths[-1] if begins_run and paths else path
    return [event for event in own if event.node_info.path == latest]


def _node_of(path: str | None) -> str:
    return (path or "").rpartition("/")[2].partition("@")[0]


def _begins_round(state: dict[str, Any] | None, event: Event) -> bool:
    """Whether a loop begins a round with an event; ADK forgets the states of the one before."""
    known, new = state or {}, event.actions.agent_state or {}
    return bool(known.get("times_looped", 0) != new.get("times_looped", 0))


def _waiting_below(events: Iterable[Event], path: str) -> set[str]:
    """The calls at a path, and below it, that wait for an answer."""
    waiting: set[str] = set()
    for event in events:
        if f"{event.node_info.path}/".startswith(f"{path}/"):
            waiting |= event.long_running_tool_ids or set()
        waiting.difference_update(each.id or "" for each in event.get_function_responses())
    return waiting
