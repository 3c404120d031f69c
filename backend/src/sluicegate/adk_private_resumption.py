"""The private parts of google-adk by which copies of agents are resumed; see `adk_private`."""

from __future__ import annotations

from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from google.adk.agents.base_agent import BaseAgent, BaseAgentState
from google.adk.agents.llm_agent import LlmAgent
from google.adk.agents.loop_agent import LoopAgent
from google.adk.agents.parallel_agent import ParallelAgent
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.plugins.plugin_manager import PluginManager
from google.adk.runners import Runner

from sluicegate.adk_private import NodeInterruptedError
from sluicegate.core.event_reading import CONFIRMATION, CREDENTIAL, TRANSFER

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
    from contextlib import AbstractContextManager

    from google.adk.agents.context import Context
    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.sessions.session import Session
    from google.adk.workflow import BaseNode

NODE_FAILURE_LOGGERS: Final = (
    "google_adk.google.adk.workflow._node_runner",
    "google_adk.google.adk.runners",
)
"""The loggers on which ADK reports an exception that fails a node.

The first has the name of a private module, and no setting turns the reports off. Without it each
failed model call is logged with its traceback, which has the provider's text.
"""


class ResumableShell(BaseAgent):
    """An agent that runs one other agent, and marks its beginning and its end in the log.

    By ``_load_agent_state`` and ``_create_agent_state_event``, as the shell agents of ADK do.
    Without it an agent that has ended inside a call runs again when the call is made again. By
    ``_handle_before_agent_callback`` and ``_handle_after_agent_callback`` no plugin sees it.
    """

    async def _handle_before_agent_callback(self, ctx: InvocationContext) -> Event | None:
        return None

    async def _handle_after_agent_callback(
        self, invocation_context: InvocationContext
    ) -> Event | None:
        return None

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        if self._load_agent_state(ctx, BaseAgentState) is None:
            ctx.set_agent_state(self.name, agent_state=BaseAgentState())
            yield self._create_agent_state_event(ctx)
        [root] = self.sub_agents
        pauses = False
        async with aclosing(root.run_async(ctx)) as events:
            async for event in events:
                yield event
                pauses = pauses or ctx.should_pause_invocation(event)
        if not pauses:
            ctx.set_agent_state(self.name, end_of_agent=True)
            yield self._create_agent_state_event(ctx)


def shadow_node_run(
    node: BaseNode, around: Callable[[Context, Any], AbstractContextManager[None]]
) -> None:
    """Run the copy of a node within a context manager.

    Shadows ``_run_impl``, the hook of a node; ``around`` gets its context and input. Without it ADK
    takes an answer for the output of a shell agent, and a Workflow goes on before a call in an
    agent that its node has called.
    """

    async def _run_impl(*, ctx: Context, node_input: Any) -> AsyncGenerator[Any, None]:
        # ADK: a node that a function or a tool runs is a copy of the one that it was given.
        current, run = ctx.node or node, ctx._invocation_context
        run_impl = type(current)._run_impl(current, ctx=ctx, node_input=node_input)
        with around(ctx, node_input):
            async with aclosing(run_impl) as events:
                async for event in events:
                    # ADK: an event without a branch gets that of the event before it.
                    if isinstance(event, Event) and event.branch is None and run.branch is not None:
                        event.branch = ""
                    yield event

    vars(node)["_run_impl"] = _run_impl


def resume_after_own_call(agent: LlmAgent) -> None:
    """Have a copy of an agent go on with its own calls, unless it has handed over after them.

    Shadows ``_get_subagent_to_resume``, which returns the sub-agent that the agent has handed over
    to before, if the last event is of another agent or a Workflow; if that sub-agent had handed
    back, without end. Only below a shell agent.
    """

    def _get_subagent_to_resume(ctx: InvocationContext) -> BaseAgent | None:
        agent = ctx.agent
        assert isinstance(agent, LlmAgent)
        events = ctx._get_events(current_invocation=True, current_branch=True)
        for event in reversed([each for each in events if each.author == agent.name]):
            if any(response.name == TRANSFER for response in event.get_function_responses()):
                break
            calls = {call.name for call in event.get_function_calls()}
            if calls - {CONFIRMATION, CREDENTIAL}:
                return None
        return type(agent)._get_subagent_to_resume(agent, ctx)

    vars(agent)["_get_subagent_to_resume"] = _get_subagent_to_resume


class _Branch:
    """A sub-agent of a ParallelAgent; ``held`` gets its interruption."""

    def __init__(
        self,
        agent: BaseAgent,
        held: list[NodeInterruptedError],
        enter: Callable[[InvocationContext], None],
    ) -> None:
        self.name = agent.name
        self._agent = agent
        self._held = held
        self._enter = enter

    async def run_async(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        self._enter(ctx)
        try:
            async with aclosing(self._agent.run_async(ctx)) as events:
                async for event in events:
                    yield event
        except NodeInterruptedError as error:
            self._held.append(error)


def hold_interruptions(
    agent: ParallelAgent, enter: Callable[[InvocationContext], None] = lambda _: None
) -> None:
    """Let the other branches of a copy of a ParallelAgent end before one that waits interrupts it.

    ``enter`` gets the context of each branch.
    Shadows ``_run_async_impl``: ADK cancels the other branches. Without it a call that is running
    in another branch is cancelled, and one that was approved is made again.
    """

    async def _run_async_impl(ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        parallel = ctx.agent
        assert isinstance(parallel, ParallelAgent)
        held: list[NodeInterruptedError] = []
        branches = [_Branch(each, held, enter) for each in parallel.sub_agents]
        fresh = parallel.model_copy()
        object.__setattr__(fresh, "sub_agents", branches)
        async with aclosing(type(fresh)._run_async_impl(fresh, ctx)) as events:
            async for event in events:
                yield event
        if held:
            raise held[0]

    vars(agent)["_run_async_impl"] = _run_async_impl


def keep_output(agent: LlmAgent) -> None:
    """Have a copy of an agent add to what it has said before a call waited, not begin anew.

    Shadows ``_run_async_impl``, which collects the text for ``output_key`` during one run. Without
    it a text beside a call is in the state only until the agent goes on after the answer.
    """

    async def _run_async_impl(ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        current = ctx.agent
        assert isinstance(current, LlmAgent)
        key, said = current.output_key or "", _said_in_run(current, ctx)
        async with aclosing(type(current)._run_async_impl(current, ctx)) as events:
            async for event in events:
                output = event.actions.state_delta.get(key)
                if event.author == current.name and isinstance(output, str) and _text_of(event):
                    event.actions.state_delta[key] = said + output
                yield event

    if agent.output_key and agent.output_schema is None and agent.mode != "task":
        vars(agent)["_run_async_impl"] = _run_async_impl


def _said_in_run(agent: LlmAgent, ctx: InvocationContext) -> str:
    said = ""
    if not ctx.is_resumable:
        # It waits for nothing, and the end of an earlier run of it is not in the log.
        return said
    for event in ctx._get_events(current_invocation=True, current_branch=True):
        if event.author == agent.name:
            said = "" if event.actions.end_of_agent else said + _text_of(event)
        elif event.node_info.path and event.node_info.path == ctx.node_path:
            # ADK: with the result of a task that it delegated, the agent begins anew.
            said = ""
    return said


def _text_of(event: Event) -> str:
    parts = (event.content and event.content.parts) or ()
    is_whole = not event.partial
    return "".join(part.text for part in parts if part.text and not part.thought and is_whole)


class AgentRun(Protocol):
    """A run of an agent in an exchange; `agent_runs_in_log.AgentRun`."""

    def goes_on(self) -> bool:
        """Whether it has begun in an earlier turn."""

    def has_ended(self) -> bool:
        """Whether the log has its end."""

    def is_waiting(self) -> bool:
        """Whether a call in it waits for an answer."""

    def has_handed_over(self) -> bool:
        """Whether a transfer has ended it, so that nothing runs after it."""


def run_callbacks_once(
    agent: BaseAgent,
    run_of: Callable[[BaseAgent, InvocationContext], AgentRun],
    is_marked: Callable[[object], bool],
) -> None:
    """Have the callbacks around a copy of an agent run once for a run of it that waits.

    Those that are marked run in each turn. Shadows ``_handle_before_agent_callback`` and
    ``_handle_after_agent_callback``, which ADK calls in each turn in which the agent goes on.
    Without it the effects of callbacks are repeated, a ParallelAgent runs again an agent whose
    callback has answered in its place, and what is returned after an agent is also said when the
    agent has not ended.
    """

    async def _handle_before_agent_callback(ctx: InvocationContext) -> Event | None:
        current = ctx.agent
        assert isinstance(current, BaseAgent)
        if run_of(current, ctx).goes_on():
            event = await _run_marked(current, ctx, "before_agent_callback", is_marked)
        else:
            event = await type(current)._handle_before_agent_callback(current, ctx)
        if event is not None and event.content and ctx.is_resumable:
            ctx.set_agent_state(current.name, end_of_agent=True)
            event.actions.end_of_agent = True
        return event

    async def _handle_after_agent_callback(ctx: InvocationContext) -> Event | None:
        current = ctx.agent
        assert isinstance(current, BaseAgent)
        run = run_of(current, ctx)
        if run.has_handed_over():
            return None
        has_ended = run.has_ended()
        if not ctx.is_resumable or has_ended or not run.is_waiting():
            event = await type(current)._handle_after_agent_callback(current, ctx)
            if event is not None and event.content and has_ended:
                # ADK: an agent with a content after its end has begun anew.
                event.actions.end_of_agent = True
            return event
        event = await _run_marked(current, ctx, "after_agent_callback", is_marked)
        if event is not None:
            event.content = None
        has_changes = event and (event.actions.state_delta or event.actions.artifact_delta)
        return event if has_changes else None

    vars(agent)["_handle_before_agent_callback"] = _handle_before_agent_callback
    vars(agent)["_handle_after_agent_callback"] = _handle_after_agent_callback


async def _run_marked(
    agent: BaseAgent, ctx: InvocationContext, name: str, is_marked: Callable[[object], bool]
) -> Event | None:
    """Run the callbacks of one name that are marked, of plugins and of the agent."""
    plugins = [each for each in ctx.plugin_manager.plugins if is_marked(getattr(each, name))]
    callbacks = [each for each in getattr(agent, f"canonical_{name}s") if is_marked(each)]
    if not plugins and not callbacks:
        return None
    current = agent.model_copy(update={name: callbacks})
    own = ctx.model_copy(update={"plugin_manager": PluginManager(plugins)})
    event: Event | None = await getattr(type(agent), f"_handle_{name}")(current, own)
    ctx.end_invocation = own.end_invocation
    return event


class _Escalated:
    """A sub-agent of a LoopAgent that goes on, after it has ended the loop."""

    def __init__(self, agent: BaseAgent) -> None:
        self.name = agent.name
        self._agent = agent

    async def run_async(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        pauses = False
        async with aclosing(self._agent.run_async(ctx)) as events:
            async for event in events:
                yield event
                pauses = pauses or ctx.should_pause_invocation(event)
        if not pauses:
            yield Event(
                author=self.name,
                invocation_id=ctx.invocation_id,
                branch=ctx.branch,
                actions=EventActions(escalate=True),
            )


def keep_escalation(agent: LoopAgent) -> None:
    """Have a copy of a LoopAgent end when it was ended before a call waited.

    Shadows ``_run_async_impl``, which notices an ``escalate`` only during one run. Without it the
    loop goes on if the agent that has ended it waits for an answer first.
    """

    async def _run_async_impl(ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        loop = ctx.agent
        assert isinstance(loop, LoopAgent)
        current = loop
        if step := _escalated_step(loop, ctx):
            current = loop.model_copy()
            agents = [_Escalated(each) if each.name == step else each for each in loop.sub_agents]
            object.__setattr__(current, "sub_agents", agents)
        async with aclosing(type(current)._run_async_impl(current, ctx)) as events:
            async for event in events:
                yield event

    vars(agent)["_run_async_impl"] = _run_async_impl


def _escalated_step(loop: LoopAgent, ctx: InvocationContext) -> str | None:
    """The sub-agent in which a loop that is resumed was ended."""
    step: str | None = None
    has_ended = False
    below = {each.name for each in _agents_below(loop)}
    own = f"{ctx.branch}." if ctx.branch else ""
    for event in ctx.session.events:
        branch = f"{event.branch}." if event.branch else ""
        if event.invocation_id != ctx.invocation_id or not branch.startswith(own):
            continue
        if event.author == loop.name and branch == own:
            step, has_ended = (event.actions.agent_state or {}).get("current_sub_agent"), False
        # What is called has a branch with the id of its call, and ends no loop around the caller.
        elif event.author in below and "@" not in branch.removeprefix(own):
            has_ended = has_ended or bool(event.actions.escalate)
    return step if has_ended else None


def _agents_below(agent: BaseAgent) -> Iterator[BaseAgent]:
    for each in agent.sub_agents:
        yield each
        yield from _agents_below(each)


class _RunState(BaseAgentState):
    """The place in an agent of a class with its own order: the run of a sub-agent, from 1."""

    run: int = 0
    agent: str = ""


class FollowedRuns(Protocol):
    """The runs of sub-agents in one run of an agent; `replay_ended_sub_agent_runs.Journal`."""

    agent: BaseAgent

    def begin(self, agent: BaseAgent, ctx: InvocationContext) -> list[Event] | None:
        """Begin the next run; returns its events if it has ended."""

    def passed(self, event: Event) -> None:
        """Note an event of a sub-agent that runs."""

    def take_begun(self) -> tuple[int, str] | None:
        """Return the number and the agent of a run that the log does not have yet, once."""

    def is_new(self, event: Event) -> bool:
        """Whether an event is not in the log."""

    def close(self) -> None:
        """End the run of the agent."""


class _Paused(BaseException):
    """Ends the code of a class whose sub-agent waits for an answer."""


_RUNS: Final = "sluicegate_runs"


def follow_runs(
    agent: BaseAgent,
    sub_agents: Iterable[BaseAgent],
    new_runs: Callable[[InvocationContext, int | None], FollowedRuns],
) -> None:
    """Number the runs of sub-agents by the copy of an agent of the user's class, and stop at one.

    Shadows ``_run_async_impl``, and ``run_async`` of the sub-agents, whose context has the runs; by
    ``_load_agent_state`` and ``_create_agent_state_event``, as the shell agents of ADK do. Without
    it the class runs what has ended again after an answer.
    ``new_runs`` gets the context of the agent, and the number of the run that waited.
    """

    async def _run_async_impl(ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        own = ctx.agent
        assert isinstance(own, BaseAgent)
        state = own._load_agent_state(ctx, _RunState)
        if state is None:
            ctx.set_agent_state(own.name, agent_state=_RunState())
            yield own._create_agent_state_event(ctx)
        runs = vars(ctx)[_RUNS] = new_runs(ctx, None if state is None else state.run)
        try:
            async with aclosing(type(own)._run_async_impl(own, ctx)) as events:
                async for event in events:
                    if (begun := runs.take_begun()) is not None:
                        run, name = begun
                        ctx.set_agent_state(own.name, agent_state=_RunState(run=run, agent=name))
                        yield own._create_agent_state_event(ctx)
                    if runs.is_new(event):
                        yield event
        except _Paused:
            return
        finally:
            runs.close()
        ctx.set_agent_state(own.name, end_of_agent=True)
        yield own._create_agent_state_event(ctx)

    vars(agent)["_run_async_impl"] = _run_async_impl
    for each in sub_agents:
        vars(each)["run_async"] = partial(_run_followed, each)


async def _run_followed(
    agent: BaseAgent, parent_context: InvocationContext
) -> AsyncGenerator[Event, None]:
    runs: FollowedRuns | None = vars(parent_context).get(_RUNS)
    is_direct = runs is not None and runs.agent is parent_context.agent
    stored = runs.begin(agent, parent_context) if runs is not None and is_direct else None
    for event in stored or ():
        yield event
    if stored is not None:
        return
    pauses = False
    async with aclosing(type(agent).run_async(agent, parent_context)) as events:
        async for event in events:
            if runs is not None and is_direct:
                runs.passed(event)
                pauses = pauses or parent_context.should_pause_invocation(event)
            yield event
    if pauses:
        raise _Paused


class TreeRunner(Runner):
    """A Runner that resumes the outermost shell agent around a call.

    By ``_find_agent_to_run`` and ``_restore_branch_from_history``, which choose the author of an
    answered call alone, and ``_run_node_async``, which runs any agent as a node. Without it the
    rest of a sequence never runs after an approval, and no agent is called below a root shell
    agent, since only nodes have an event queue. ``as_node``: the root runs as a node.
    """

    def __init__(self, *, as_node: bool = False, **settings: Any) -> None:
        super().__init__(**settings)
        self._as_node = as_node

    def run_async(self, **request: Any) -> AsyncGenerator[Event, None]:
        """Run the agent; the parameters are those of `Runner.run_async`."""
        return self._run_node_async(**request) if self._as_node else super().run_async(**request)

    def _find_agent_to_run(self, session: Session, root_agent: BaseAgent) -> BaseAgent:
        found = each = super()._find_agent_to_run(session, root_agent)
        while each.parent_agent is not None:
            each = each.parent_agent
            if not isinstance(each, LlmAgent):
                found = each
        return found

    def _restore_branch_from_history(
        self, invocation_context: InvocationContext, node: BaseNode, **place: Any
    ) -> None:
        if isinstance(node, LlmAgent):
            super()._restore_branch_from_history(invocation_context, node, **place)
            return
        # ADK: it reads the branch of the last event below the node.
        events = reversed(invocation_context.session.events)
        own = next((event for event in events if event.author == node.name), None)
        invocation_context.branch = None if own is None else own.branch
