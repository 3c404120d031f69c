"""Code of an agent class whose effect would happen again when the class is run again."""

from __future__ import annotations

import builtins
import dis
import logging
import re
from collections.abc import Iterator, Mapping
from enum import Enum
from types import CodeType, FunctionType, ModuleType
from typing import Final

from google.adk.agents.base_agent import BaseAgent
from pydantic import BaseModel

from sluicegate.adk_private import overrides_run, run_function_of

_MODULES: Final = ("logging", "contextlib", "google.genai.types")

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

_PLAIN: Final = (str, bytes, int, float, bool, type(None), re.Pattern, logging.Logger, Enum)


def repeated_effect(agent: BaseAgent) -> str:
    """Say what a class with its own order does that would happen again; empty if nothing."""
    return next(_effects(agent, run_function_of(own_class_of(agent)), set()), "")


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


def own_class_of(agent: BaseAgent) -> type[BaseAgent]:
    """The class of an agent, or its base, that says in which order sub-agents run."""
    return next(base for base in type(agent).__mro__ if overrides_run(base))
