"""Which names a callable's code uses: read from code objects, never from source text.

Source is not always there (a frozen program, a REPL) and lies when a name stands in a comment;
code objects list every global, attribute and constant that a function really touches.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Collection, Iterator, Mapping
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Final, TypeAlias

_NOT_THE_USERS: Final = frozenset(sys.stdlib_module_names) | {"google", "pydantic", "sluicegate"}
_MOST: Final = 5_000
_LARGE: Final = 200

_Used: TypeAlias = Collection[str] | None
"""The names by which an object's attributes are reached; None: all of them."""


def find_name(root: object, name: str) -> str | None:
    """Say where ``root``'s code names ``name``: the qualified name of the function, else None.

    ``root`` is a function, a method, a class or a callable object. Followed are nested functions,
    what a decorator or ``functools.partial`` wraps, closures, defaults, and the functions, classes
    and objects of the user's own code that it reaches by name.
    """
    for function in reachable_functions(root):
        if name in names_in(function.__code__):
            return function.__qualname__
    return None


def names_in(code: CodeType) -> set[str]:
    """Globals, attributes, free variables and string constants of ``code``, nested code too."""
    names = {*code.co_names, *code.co_freevars}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= names_in(constant)
        elif isinstance(constant, str):
            names.add(constant)
    return names


def reachable_functions(root: object) -> Iterator[FunctionType]:
    """The functions ``root`` consists of, and those of the user that they reach, each once."""
    functions: dict[int, FunctionType] = {}
    looked_at: set[tuple[int, int]] = set()
    waiting: list[tuple[object, _Used, int]] = [(root, None, 0)]
    while waiting and len(looked_at) < _MOST:
        value, used, user = waiting.pop()
        function = value.__func__ if isinstance(value, MethodType) else value
        if isinstance(function, FunctionType):
            if isinstance(value, MethodType):
                waiting.append((value.__self__, names_in(function.__code__), id(function)))
            if id(function) not in functions:
                functions[id(function)] = function
                yield function
                names = names_in(function.__code__)
                waiting += [
                    (found, names, id(function))
                    for found in values_in(function)
                    if _is_the_users(found)
                ]
        elif (id(value), user) not in looked_at:
            looked_at.add((id(value), user))
            waiting += [(part, used, user) for part in _parts(value, used)]


def values_in(function: FunctionType) -> Iterator[object]:
    """What ``function`` can reach by name: globals it uses, its closure, its defaults."""
    names = names_in(function.__code__)
    for name in names:
        value = function.__globals__.get(name)
        if isinstance(value, ModuleType):
            if _is_the_users(value):
                yield from (vars(value)[n] for n in names if n in vars(value))
        else:
            yield from _spread(value)
    for cell in function.__closure__ or ():
        try:
            yield from _spread(cell.cell_contents)
        except ValueError:  # the cell is still empty
            continue
    for default in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
        yield from _spread(default)
    yield vars(function).get("__wrapped__")


def _parts(value: object, used: _Used) -> Iterator[object]:
    """What can run when ``value`` is used."""
    if isinstance(value, functools.partial):
        yield value.func
        yield from value.args
        yield from value.keywords.values()
    elif isinstance(value, type):
        for attribute, member in _members(value):
            if used is None or attribute in used or attribute in {"__init__", "__call__"}:
                yield _bare(member)
    elif not isinstance(value, ModuleType):
        yield from _parts_of_object(value, used)


def _parts_of_object(value: object, used: _Used) -> Iterator[object]:
    yield getattr(value, "__wrapped__", None)
    for attribute, member in _members(type(value)):
        bare = _bare(member)
        wanted = used is None or attribute in used or attribute == "__call__"
        if wanted and isinstance(bare, FunctionType):
            yield MethodType(bare, value)
    for attribute, member in list(getattr(value, "__dict__", {}).items()):
        if (used is None or attribute in used) and _is_the_users(member):
            yield from _spread(member)


def _members(kind: type) -> Iterator[tuple[str, object]]:
    """Attributes of a class and of its bases, as far as the user wrote them."""
    for base in kind.__mro__:
        if _is_the_users(base):
            yield from list(vars(base).items())


def _spread(value: object) -> Iterator[object]:
    """A value, and what a plain collection of moderate size holds."""
    yield value
    if isinstance(value, Mapping) and len(value) <= _LARGE:
        yield from list(value.values())
    elif isinstance(value, list | tuple | set | frozenset) and len(value) <= _LARGE:
        yield from list(value)


def _bare(member: object) -> object:
    if isinstance(member, staticmethod | classmethod):
        return member.__func__
    if isinstance(member, property):
        return member.fget
    return member.func if isinstance(member, functools.cached_property) else member


def _is_the_users(value: object) -> bool:
    """Whether a value comes from the user's code or from a library, not from Python or ADK."""
    if isinstance(value, ModuleType):
        module: object = value.__name__
    elif isinstance(value, functools.partial | MethodType):
        return True
    else:
        module = getattr(value, "__module__", None) or type(value).__module__
    return isinstance(module, str) and module.partition(".")[0] not in _NOT_THE_USERS
