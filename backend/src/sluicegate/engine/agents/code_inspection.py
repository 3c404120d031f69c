"""The names that a callable's code uses, read from code objects and never from source text.

Source is not always available (a frozen program, a REPL), and names in comments mean nothing. Code
objects list every global, attribute and constant that a function uses.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Collection, Iterator, Mapping
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Final, TypeAlias

_NOT_USER_CODE: Final = frozenset(sys.stdlib_module_names) | {"google", "pydantic", "sluicegate"}
_MAX_VISITED: Final = 5_000
_MAX_ITEMS: Final = 200

_Used: TypeAlias = Collection[str] | None
"""The names of attributes that are used of an object; None: any of them."""


def find_name(root: object, name: str) -> str | None:
    """Return the qualified name of the function in ``root``'s code that uses a name, if any.

    ``root`` is a function, a method, a class or a callable object. The search follows nested
    functions, functions inside decorators and ``functools.partial``, closures, defaults, and the
    functions, classes and objects of user code that are reached by name.
    """
    for function in reachable_functions(root):
        if name in names_in(function.__code__):
            return function.__qualname__
    return None


def names_in(code: CodeType) -> set[str]:
    """Return globals, attributes, free variables and strings of ``code`` and of nested code."""
    names = {*code.co_names, *code.co_freevars}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= names_in(constant)
        elif isinstance(constant, str):
            names.add(constant)
    return names


def reachable_functions(root: object) -> Iterator[FunctionType]:
    """Yield the functions of ``root`` and the functions of user code that they reach, each once."""
    functions: dict[int, FunctionType] = {}
    visited: set[tuple[int, int]] = set()
    pending: list[tuple[object, _Used, int]] = [(root, None, 0)]
    while pending and len(visited) < _MAX_VISITED:
        value, used, user = pending.pop()
        function = value.__func__ if isinstance(value, MethodType) else value
        if isinstance(function, FunctionType):
            if isinstance(value, MethodType):
                pending.append((value.__self__, names_in(function.__code__), id(function)))
            if id(function) not in functions:
                functions[id(function)] = function
                yield function
                names = names_in(function.__code__)
                pending += [
                    (found, names, id(function))
                    for found in values_in(function)
                    if _is_user_code(found)
                ]
        elif (id(value), user) not in visited:
            visited.add((id(value), user))
            pending += [(part, used, user) for part in _parts(value, used)]


def values_in(function: FunctionType) -> Iterator[object]:
    """Yield what a function reaches by name: the globals it uses, its closure, its defaults."""
    names = names_in(function.__code__)
    for name in names:
        value = function.__globals__.get(name)
        if isinstance(value, ModuleType):
            if _is_user_code(value):
                yield from (vars(value)[n] for n in names if n in vars(value))
        else:
            yield from _with_items(value)
    for cell in function.__closure__ or ():
        try:
            yield from _with_items(cell.cell_contents)
        except ValueError:  # the cell is still empty
            continue
    for default in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
        yield from _with_items(default)
    yield vars(function).get("__wrapped__")


def _parts(value: object, used: _Used) -> Iterator[object]:
    """Yield what may run when ``value`` is used."""
    if isinstance(value, functools.partial):
        yield value.func
        yield from value.args
        yield from value.keywords.values()
    elif isinstance(value, type):
        for attribute, member in _members(value):
            if used is None or attribute in used or attribute in {"__init__", "__call__"}:
                yield _unwrap(member)
    elif not isinstance(value, ModuleType):
        yield from _parts_of_object(value, used)


def _parts_of_object(value: object, used: _Used) -> Iterator[object]:
    yield getattr(value, "__wrapped__", None)
    for attribute, member in _members(type(value)):
        function = _unwrap(member)
        is_used = used is None or attribute in used or attribute == "__call__"
        if is_used and isinstance(function, FunctionType):
            yield MethodType(function, value)
    for attribute, member in list(getattr(value, "__dict__", {}).items()):
        if (used is None or attribute in used) and _is_user_code(member):
            yield from _with_items(member)


def _members(kind: type) -> Iterator[tuple[str, object]]:
    """Yield the attributes that a class and its bases define in user code."""
    for base in kind.__mro__:
        if _is_user_code(base):
            yield from list(vars(base).items())


def _with_items(value: object) -> Iterator[object]:
    """Yield a value and, for a small plain collection, its items."""
    yield value
    if isinstance(value, Mapping) and len(value) <= _MAX_ITEMS:
        yield from list(value.values())
    elif isinstance(value, list | tuple | set | frozenset) and len(value) <= _MAX_ITEMS:
        yield from list(value)


def _unwrap(member: object) -> object:
    if isinstance(member, staticmethod | classmethod):
        return member.__func__
    if isinstance(member, property):
        return member.fget
    return member.func if isinstance(member, functools.cached_property) else member


def _is_user_code(value: object) -> bool:
    """Whether a value comes from user code or a library, not from Python, ADK or this package."""
    if isinstance(value, ModuleType):
        module: object = value.__name__
    elif isinstance(value, functools.partial | MethodType):
        return True
    else:
        module = getattr(value, "__module__", None) or type(value).__module__
    return isinstance(module, str) and module.partition(".")[0] not in _NOT_USER_CODE
