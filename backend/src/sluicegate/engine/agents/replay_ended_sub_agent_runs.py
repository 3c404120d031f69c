"""Agent classes with an order of their own: which of their runs of sub-agents have ended.

Such a class records no state, so it is run again from its beginning after an answer. Its runs of
sub-agents are numbered in the log. Those that have ended yield the events that they have stored,
and the state of the session is what it was then, so that the class decides as before. The current
run goes on where it waited. What the class does beside that would happen again, so
`repeated_effect` says whether there is something.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from google.adk.agents.base_agent import BaseAgent

from sluicegate.adk_private_resumption import follow_runs
from sluicegate.core.event_reading import METADATA_KEY, notes_of
from sluicegate.engine.agents.code_inspection import find_name
from sluicegate.engine.agents.repeated_effects import own_class_of, repeated_effect
from sluicegate.errors import ConfigurationError

if TYPE_CHECKING:
    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.events.event import Event

_RECORDS_STATE: Final = "set_agent_state"
_OWN: Final = "own"
"""The note on events that the class yields beside those of its sub-agents."""


def records_no_state(agent: BaseAgent) -> bool:
    """Whether an agent has a class of the user that runs others and records no state."""
    kind = own_class_of(agent)
    is_users = not kind.__module__.startswith(("google.adk.", "sluicegate."))
    return is_users and not find_name(kind, _RECORDS_STATE)


def follow(agent: BaseAgent) -> None:
    """Have the copy of an agent go on in the run of a sub-agent that waited."""
    if records_no_state(agent) and not repeated_effect(agent):
        follow_runs(agent, list(_agents_of(agent)), Journal)


def _agents_of(agent: BaseAgent) -> Iterator[BaseAgent]:
    """The agents that an agent can run: its sub-agents, and those in its other fields."""
    found: dict[int, BaseAgent] = {}
    for name, value in vars(agent).items():
        if name == "parent_agent":
            continue
        items = value.values() if isinstance(value, Mapping) else value
        for each in items if isinstance(value, Mapping | list | tuple) else [value]:
            if isinstance(each, BaseAgent):
                found[id(each)] = each
    yield from found.values()


def _below(agent: BaseAgent) -> Iterator[BaseAgent]:
    yield agent
    for each in agent.sub_agents:
        yield from _below(each)


class Journal:
    """The runs of sub-agents in one run of an agent, as the log has them.

    Args:
        ctx: The context of the agent's run.
        current: The number of the run that waited; None for an agent that begins.
    """

    def __init__(self, ctx: InvocationContext, current: int | None) -> None:
        agent = ctx.agent
        assert isinstance(agent, BaseAgent)
        self.agent = agent
        self._session = ctx.session
        self._branch = ctx.branch
        self._count = 0
        self._current = current or 0
        self._stored: dict[int, list[Event]] = {}
        self._agents: dict[int, str] = {}
        self._begun: tuple[int, str] | None = None
        self._replayed: set[str] = set()
        self._passed: set[str] = set()
        self._own_stored = 0
        self._now: dict[str, Any] = {}
        self._then: dict[str, Any] | None = None
        if current is not None:
            self._read(ctx)

    def begin(self, agent: BaseAgent, ctx: InvocationContext) -> list[Event] | None:
        """Begin the next run; returns its events if it has ended.

        Raises:
            ConfigurationError: The class has run another agent before the answer.
        """
        self._count += 1
        known = self._agents.get(self._count)
        if known is not None and known != agent.name:
            raise ConfigurationError(
                f"the agent {self.agent.name!r} ran {agent.name!r} after an answer where it had "
                f"run {known!r}: let its order depend on the state of the session alone"
            )
        if self._count < self._current:
            events = self._stored.get(self._count, [])
            self._replayed.update(event.id for event in events)
            self._apply(events)
            return [event for event in events if event.author in _names(agent)]
        self._end_replay()
        since = {event.author for event in self._stored.get(self._count, [])}
        for each in _below(agent):
            if self._count > self._current or each.name not in since:
                # ADK: what has ended in an earlier run of the agent would not run in this one.
                ctx.set_agent_state(each.name)
        if self._count > self._current:
            self._begun = (self._count, agent.name)
        return None

    def passed(self, event: Event) -> None:
        """Note an event of a sub-agent that runs."""
        self._passed.add(event.id)

    def take_begun(self) -> tuple[int, str] | None:
        """Return the number and the agent of a run that the log does not have yet, once."""
        begun, self._begun = self._begun, None
        return begun

    def is_new(self, event: Event) -> bool:
        """Whether an event is not in the log; notes those of the class itself."""
        if event.id in self._replayed:
            return False
        if event.id in self._passed:
            return True
        if self._own_stored > 0:
            self._own_stored -= 1
            self._apply([event])
            return False
        if event.branch is None and "@" in (self._branch or ""):
            # What is called sees the events of its call, which have its branch.
            event.branch = self._branch
        notes = {**notes_of(event), _OWN: True}
        event.custom_metadata = {**(event.custom_metadata or {}), METADATA_KEY: notes}
        return True

    def close(self) -> None:
        """End the run."""
        self._end_replay()

    def _read(self, ctx: InvocationContext) -> None:
        events, name = self._session.events, self.agent.name
        begin, number = 0, 0
        for index, event in enumerate(events):
            state = event.actions.agent_state if event.author == name else None
            if state is not None and state.get("run") == 0 and self._is_own(event, ctx):
                begin = index
        for event in events[begin + 1 :]:
            state = event.actions.agent_state if event.author == name else None
            if state is not None and "run" in state:
                number = state["run"]
                self._agents[number] = state.get("agent", "")
            elif notes_of(event).get(_OWN) is True and event.author == name:
                self._own_stored += 1
            elif event.author != "user":
                self._stored.setdefault(number, []).append(event)
        self._now = dict(self._session.state)
        self._then = _state_before(events, begin, self._now)
        self._replace_state(self._then)
        if not self._agents:
            self._end_replay()

    @staticmethod
    def _is_own(event: Event, ctx: InvocationContext) -> bool:
        return event.invocation_id == ctx.invocation_id and event.branch == ctx.branch

    def _end_replay(self) -> None:
        """Go on with the state as it is now, and with what the class itself has changed."""
        if self._then is None:
            return
        changed = {
            key: value
            for key, value in self._session.state.items()
            if key not in self._then or self._then[key] != value
        }
        self._then = None
        self._replace_state({**self._now, **changed})

    def _apply(self, events: Iterable[Event]) -> None:
        """Apply what stored events have changed, as long as the state is that of an earlier run."""
        if self._then is not None:
            for event in events:
                for state in (self._session.state, self._then):
                    state.update(event.actions.state_delta)

    def _replace_state(self, state: Mapping[str, Any]) -> None:
        current = self._session.state
        current.clear()
        current.update(state)


def _names(agent: BaseAgent) -> set[str]:
    return {each.name for each in _below(agent)}


def _state_before(events: list[Event], index: int, now: Mapping[str, Any]) -> dict[str, Any]:
    """The state of a session before an event: what no later one has changed is as it is now."""
    later = {key for event in events[index:] for key in event.actions.state_delta}
    state = {key: value for key, value in now.items() if key not in later}
    for event in events[:index]:
        changes = event.actions.state_delta
        state.update({key: changes[key] for key in changes if key in later})
    return state
