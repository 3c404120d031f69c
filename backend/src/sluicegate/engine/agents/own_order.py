"""Agent classes with an order of their own: which of their runs of sub-agents have ended.

Such a class keeps no place, so it is run again from its beginning after an answer. Its runs of
sub-agents are numbered in the log. Those that have ended yield the events that they have stored,
and the state of the session is what it was then, so that the class decides as before. The current
run goes on where it waited. What the class does beside that would happen again, so
`repeated_effect` says whether there is something.
"""

from __future__ import annotations

import builtins
import dis
import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, Final

from google.adk.agents.base_agent import BaseAgent
from pydantic import BaseModel

from sluicegate.adk_private import overrides_run, run_function_of
from sluicegate.adk_private_runs import follow_runs
from sluicegate.core.event_reading import METADATA_KEY, notes_of
from sluicegate.engine.agents.code_inspection import find_name
from sluicegate.errors import ConfigurationError

if TYPE_CHECKING:
    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.events.event import Event

_RECORDS_STATE: Final = "set_agent_state"
_OWN: Final = "own"
"""The note on events that the class yields beside those of its sub-agents."""

# fmt: off
_BUILTINS: Final = frozenset({
    "abs", "all", "any", "bool", "dict", "enumerate", "filter", "float", "frozenset", "getattr",
    "hasattr", "int", "isinstance", "len", "list", "map", "max", "min", "print", "range", "repr",
    "reversed", "round", "set", "sorted", "str", "sum", "tuple", "zip", "Exception", "KeyError",
    "RuntimeError", "TypeError", "ValueError",
})
# fmt: on
_SERVICES: Final = frozenset(
    {
        "artifact_service",
        "memory_service",
        "session_service",
        "credential_service",
        "plugin_manager",
    }
)
_LIBRARIES: Final = ("google.adk.events", "google.adk.utils", "google.genai", "typing")
_MODULES: Final = ("logging", "contextlib", "google.genai.types")
_PLAIN: Final = (str, bytes, int, float, bool, type(None), re.Pattern, logging.Logger, Enum)


def keeps_no_place(agent: BaseAgent) -> bool:
    """Whether an agent has a class of the user that runs others and records no state."""
    kind = _kind_of(agent)
    is_users = not kind.__module__.startswith(("google.adk.", "sluicegate."))
    return is_users and not find_name(kind, _RECORDS_STATE)


def repeated_effect(agent: BaseAgent) -> str:
    """Say what a class with its own order does that would happen again; empty if nothing."""
    return next(_effects(agent, run_function_of(_kind_of(agent)), set()), "")


def follow(agent: BaseAgent) -> None:
    """Have the copy of an agent go on in the run of a sub-agent that waited."""
    if keeps_no_place(agent) and not repeated_effect(agent):
        follow_runs(agent, list(_agents_of(agent)), Journal)


def _kind_of(agent: BaseAgent) -> type[BaseAgent]:
    return next(base for base in type(agent).__mro__ if overrides_run(base))


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


def _codes(function: FunctionType) -> Iterator[CodeType]:
    pending = [function.__code__]
    while pending:
        code = pending.pop()
        yield code
        pending += [each for each in code.co_consts if isinstance(each, CodeType)]


def _effects(agent: BaseAgent, function: FunctionType, seen: set[FunctionType]) -> Iterator[str]:
    if function in seen:
        return
    seen.add(function)
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    for code in _codes(function):
        for step in dis.get_instructions(code):
            name = step.argval
            if step.opname in ("IMPORT_NAME", "STORE_GLOBAL"):
                yield f"uses {name}"
            elif step.opname == "GET_AWAITABLE" and step.arg == 0:
                yield "awaits something"
            elif step.opname == "STORE_ATTR" and name != "end_invocation":
                yield f"sets {name}"
            elif step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                yield from _value_effects(agent, name, function.__globals__.get(name, name), seen)
            elif step.opname == "LOAD_DEREF" and name in cells and name != "__class__":
                yield from _value_effects(agent, name, cells[name].cell_contents, seen)
            elif step.opname in ("LOAD_ATTR", "LOAD_METHOD"):
                yield from _attribute_effects(agent, name, seen)


def _value_effects(
    agent: BaseAgent, name: str, value: object, seen: set[FunctionType]
) -> Iterator[str]:
    """What code may do by a global name."""
    if value is name and hasattr(builtins, name):
        if name not in _BUILTINS:
            yield f"uses {name}"
    elif isinstance(value, FunctionType) and not value.__module__.startswith(_LIBRARIES):
        if value.__module__.partition(".")[0] not in ("contextlib",):
            yield from _effects(agent, value, seen)
    elif isinstance(value, ModuleType):
        if value.__name__ not in _MODULES:
            yield f"uses {name}"
    elif isinstance(value, type):
        is_plain = issubclass(value, BaseModel | Enum) and not issubclass(value, BaseAgent)
        is_known = value.__module__.startswith((*_LIBRARIES, "contextlib", "builtins"))
        if not (is_plain or is_known):
            yield f"uses {name}"
    elif not _is_plain(value):
        yield f"uses {name}"


def _attribute_effects(agent: BaseAgent, name: str, seen: set[FunctionType]) -> Iterator[str]:
    """What code may do by an attribute, of the agent if it has one of that name."""
    if name in _SERVICES:
        yield f"uses {name}"
        return
    own = vars(agent).get(name, agent)
    member = next((vars(k)[name] for k in type(agent).__mro__ if name in vars(k)), None)
    if isinstance(member, property):
        member = member.fget
    if own is not agent:
        if not _is_plain(own):
            yield f"uses {name}"
    elif isinstance(member, FunctionType) and not member.__module__.startswith("google.adk."):
        yield from _effects(agent, member, seen)


def _is_plain(value: object) -> bool:
    """Whether a value is data, or an agent, and no object that may have effects."""
    if isinstance(value, Mapping):
        return all(map(_is_plain, value.values()))
    if isinstance(value, list | tuple | set | frozenset):
        return all(map(_is_plain, value))
    return isinstance(value, (*_PLAIN, BaseAgent))
