"""Checks arguments with a tool's JSON schema, in bounded time.

jsonschema evaluates the keywords; patterns run in a linear engine, references were resolved
when the schema was read, and each evaluation of a keyword counts: a schema whose alternatives or
references multiply ends at `MAX_STEPS`, whatever the arguments are. A validator in Rust would be
faster, but it has no such bound, and a recursion that exhausts its stack ends the process.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final

from jsonschema import (  # type: ignore[import-untyped]
    Draft6Validator,
    Draft7Validator,
    Draft201909Validator,
    Draft202012Validator,
    validators,
)
from jsonschema.exceptions import ValidationError, best_match  # type: ignore[import-untyped]
from referencing import Registry

from sluicegate.core.bounded_schema_structure import read_structure
from sluicegate.core.json_values import canonical_json
from sluicegate.errors import UnusableSchema

if TYPE_CHECKING:
    from pydantic import JsonValue

    from sluicegate.core.bounded_schema_structure import SchemaStructure

MAX_STEPS: Final = 30_000
"""Evaluations of keywords in one check, about 60 ms."""

_MAX_LENGTH: Final = 200
_PER_VALUE: Final = frozenset(
    {"additionalItems", "contains", "items", "prefixItems", "properties", "propertyNames"}
)
"""Keywords that evaluate a schema for each value inside the value."""

_MAX_DEPTH: Final = 150
"""Evaluations inside each other; each takes some frames of Python's stack."""

_LEVELS_PER_STEP: Final = 8
_NAMES_PER_STEP: Final = 16
_CHARACTERS_PER_STEP: Final = 128
_AUTOMATON_PER_STEP: Final = 500
"""Characters of a text, times the size of the pattern that searches it."""

_CLASSES: Final = {
    "draft6": Draft6Validator,
    "draft7": Draft7Validator,
    "draft2019-09": Draft201909Validator,
    "draft2020-12": Draft202012Validator,
}

_Keyword = Callable[[Any, Any, Any, Any], Iterator[Any] | None]


class _TooLong(Exception):
    """The check has used up its steps."""


@dataclass(slots=True)
class _Check:
    """One check of arguments with a schema."""

    structure: SchemaStructure
    enums: dict[int, frozenset[str]]
    steps: int = MAX_STEPS
    depth: int = 0

    def spend(self, steps: int) -> None:
        self.steps -= steps
        if self.steps < 0:
            raise _TooLong

    def is_match(self, pattern: str, text: str) -> bool:
        """Search a text for a pattern of the schema."""
        compiled = self.structure.patterns[pattern]
        self.spend(1 + compiled.size * len(text) // _AUTOMATON_PER_STEP)
        return compiled.is_in(text)

    def identity(self, value: JsonValue) -> str:
        """Return a text that two values share only if they are equal in JSON."""
        text = canonical_json(value)
        self.spend(1 + len(text) // _CHARACTERS_PER_STEP)
        return text


_CURRENT: ContextVar[_Check] = ContextVar("sluicegate_schema_check")


class ArgumentSchema:
    """A schema that was read and compiled once.

    Raises:
        UnusableSchema: Arguments cannot be checked with it in bounded time.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._structure = read_structure(schema)
        # The empty registry keeps this process from fetching a reference.
        self._validator = _bounded(self._structure.dialect)(
            self._structure.root, registry=Registry()
        )
        self._enums: dict[int, frozenset[str]] = {}

    def error(self, arguments: Mapping[str, Any], root: str = "") -> str | None:
        """Return a short description of the first error; None for valid arguments.

        ``root`` is the path of an error of the arguments as a whole.
        """
        current = _CURRENT.set(_Check(self._structure, self._enums))
        try:
            error = best_match(self._validator.iter_errors(arguments))
        except (_TooLong, RecursionError):
            return "they are too large or too deep to be checked with the tool's schema"
        except (ArithmeticError, ValueError, TypeError):
            return "they cannot be checked with the tool's schema"
        finally:
            _CURRENT.reset(current)
        if error is None:
            return None
        path = ".".join(str(step) for step in error.absolute_path) or root
        message = f"{path}: {error.message}" if path else str(error.message)
        plain = "".join(c if c.isprintable() else " " for c in message[: _MAX_LENGTH + 1])
        return plain if len(plain) <= _MAX_LENGTH else f"{plain[:_MAX_LENGTH]}…"


def compile_schema(schema: Mapping[str, Any]) -> ArgumentSchema:
    """Return the compiled schema; an equal one is compiled once.

    Raises:
        UnusableSchema: Arguments cannot be checked with it in bounded time.
    """
    try:
        text = json.dumps(schema)
    except (RecursionError, TypeError, ValueError):
        raise UnusableSchema("it is not JSON") from None
    return _compile(text)


@lru_cache(maxsize=512)
def _compile(text: str) -> ArgumentSchema:
    return ArgumentSchema(json.loads(text))


def validation_error(edits: dict[str, JsonValue], schema: Mapping[str, JsonValue]) -> str | None:
    """Return a short description of the first error of edited arguments; None for valid ones."""
    # Tools ignore arguments that their schema does not list, so such an edit has no effect.
    closed = {"additionalProperties": False, **schema} if "properties" in schema else dict(schema)
    try:
        return compile_schema(closed).error(edits)
    except UnusableSchema:
        return "the tool's own schema cannot be used"


@cache
def _bounded(dialect: str) -> Any:
    """Return the validator of a dialect whose keywords count their steps."""
    original = _CLASSES[dialect]
    own = {**original.VALIDATORS, **_OWN}
    return validators.extend(original, {name: _counted(name, each) for name, each in own.items()})


def _counted(name: str, keyword: _Keyword) -> _Keyword:
    def evaluate(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        check = _CURRENT.get()
        if check.depth >= _MAX_DEPTH:
            raise _TooLong
        values = len(instance) if isinstance(instance, list | dict) else 0
        names = len(value) if isinstance(value, list | dict) else 0
        steps = values if name in _PER_VALUE else (names + values) // _NAMES_PER_STEP
        check.spend(1 + steps + check.depth // _LEVELS_PER_STEP)
        check.depth += 1
        try:
            for error in keyword(validator, value, instance, schema) or ():
                # The message of an error holds the value that is refused.
                check.spend(1 + len(error.message) // _CHARACTERS_PER_STEP)
                yield error
        finally:
            check.depth -= 1

    return evaluate


def _reference(validator: Any, value: str, instance: Any, schema: Any) -> Iterator[Any]:
    return validator.descend(instance, _CURRENT.get().structure.references[value])  # type: ignore[no-any-return]


def _pattern(validator: Any, value: str, instance: Any, schema: Any) -> Iterator[Any]:
    if isinstance(instance, str) and not _CURRENT.get().is_match(value, instance):
        yield ValidationError(f"{instance!r} does not match {value!r}")


def _pattern_properties(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if not isinstance(instance, dict):
        return
    for pattern, inner in value.items():
        for name, each in instance.items():
            if _CURRENT.get().is_match(pattern, name):
                yield from validator.descend(each, inner, path=name, schema_path=pattern)


def _additional_properties(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if not isinstance(instance, dict):
        return
    check, listed = _CURRENT.get(), schema.get("properties", {})
    patterns = [*schema.get("patternProperties", ())]
    extra = [
        name
        for name in instance
        if name not in listed and not any(check.is_match(pattern, name) for pattern in patterns)
    ]
    if value is False and extra:
        names = ", ".join(map(repr, sorted(extra)))
        verb = "was" if len(extra) == 1 else "were"
        yield ValidationError(f"Additional properties are not allowed ({names} {verb} unexpected)")
    elif isinstance(value, dict):
        for name in extra:
            yield from validator.descend(instance[name], value, path=name)


def _enum(validator: Any, value: list[Any], instance: Any, schema: Any) -> Iterator[Any]:
    check = _CURRENT.get()
    # The schema lives as long as its table, so the identity of its list stays unique.
    allowed = check.enums.get(id(value))
    if allowed is None:
        allowed = check.enums[id(value)] = frozenset(map(canonical_json, value))
    if check.identity(instance) not in allowed:
        yield ValidationError(f"{instance!r} is not one of {value!r}")


def _const(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if _CURRENT.get().identity(instance) != canonical_json(value):
        yield ValidationError(f"{value!r} was expected")


def _unique_items(validator: Any, value: bool, instance: Any, schema: Any) -> Iterator[Any]:  # noqa: FBT001
    if value and isinstance(instance, list):
        check = _CURRENT.get()
        if len({check.identity(each) for each in instance}) < len(instance):
            yield ValidationError(f"{instance!r} has non-unique elements")


_OWN: Final[Mapping[str, _Keyword]] = {
    "$ref": _reference,
    "additionalProperties": _additional_properties,
    "const": _const,
    "enum": _enum,
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "uniqueItems": _unique_items,
}
