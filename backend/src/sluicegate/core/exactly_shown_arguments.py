"""The arguments of a call as an approver sees them: exactly those it would run with, or none.

Rule 1: what cannot be shown exactly is refused before the request, never abbreviated. Rule 2: the
digest of an approval covers the arguments and the defaults that are shown beside them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, NoReturn

from sluicegate.core.json_values import (
    MAX_EXACT_INTEGER,
    hash_arguments,
    is_storable_text,
)
from sluicegate.core.schema_defaults import defaults_in

if TYPE_CHECKING:
    from pydantic import JsonValue

MAX_DEPTH: Final = 24
"""Nested arrays and objects of a call's arguments: a client posts them back inside a message."""

MAX_VALUES: Final = 10_000
"""Values of a call's arguments: arrays, objects and their items."""

MAX_CHARACTERS: Final = 2**20
"""Characters of all texts and keys of a call's arguments."""


class NotShowable(ValueError):
    """Arguments cannot be shown exactly; the text is the reason, as a clause."""

    subject = "the arguments"


class PayloadNotShowable(NotShowable):
    """As `NotShowable`, for the payload of a confirmation."""

    subject = "the payload of the confirmation"


@dataclass(frozen=True, slots=True)
class ShownArguments:
    """The arguments of a call, and the defaults of those that it leaves out.

    ``payload`` is that of its confirmation, None without one.
    """

    arguments: dict[str, JsonValue]
    defaults: Mapping[str, JsonValue] = field(default_factory=dict)
    payload: JsonValue = None

    @property
    def digest(self) -> str:
        """The digest that an approval of the call covers."""
        return hash_arguments(self.arguments, self.defaults, self.payload)


def shown_arguments(
    arguments: Mapping[str, Any], schema: Mapping[str, Any] | None = None
) -> ShownArguments:
    """Copy the arguments of a call as JSON that every store and client reads back unchanged.

    ``schema`` is the JSON schema of the tool's arguments, from which the defaults are taken.

    Raises:
        NotShowable: The copy would differ from the arguments.
    """
    copied = _Copy().members(arguments, 1)
    return ShownArguments(copied, {} if schema is None else defaults_in(schema, copied))


class _Copy:
    """One copy; it counts values and characters."""

    def __init__(self) -> None:
        self._values = MAX_VALUES
        self._characters = MAX_CHARACTERS

    def members(self, value: Mapping[Any, Any], depth: int) -> dict[str, JsonValue]:
        self._enter(len(value), depth)
        copied: dict[str, JsonValue] = {}
        for key, item in value.items():
            if type(key) is not str:
                _refuse("a key is not a text")
            if key == "__proto__" or (
                key == "constructor" and isinstance(item, Mapping) and "prototype" in item
            ):
                # The AI SDK ends a response that has such a key.
                _refuse(f"clients do not accept the key {key}")
            copied[self._text(key)] = self._value(item, depth)
        return copied

    def _value(self, value: Any, depth: int) -> JsonValue:
        if value is None or value is True or value is False:
            return value
        kind = type(value)
        if kind is str:
            return self._text(value)
        if kind is int:
            integer: int = value
            if not -MAX_EXACT_INTEGER <= integer <= MAX_EXACT_INTEGER:
                _refuse("a whole number is beyond 2^53 - 1; send it as a text")
            return integer
        if kind is float:
            number: float = value
            if not isfinite(number):
                _refuse("a number is not finite")
            return number
        if kind is dict:
            return self.members(value, depth + 1)
        if kind is list or kind is tuple:
            self._enter(len(value), depth + 1)
            return [self._value(item, depth + 1) for item in value]
        _refuse(f"a value of the type {kind.__name__} is not JSON")

    def _enter(self, count: int, depth: int) -> None:
        if depth > MAX_DEPTH:
            _refuse(f"they are nested more than {MAX_DEPTH} levels deep")
        self._values -= count
        if self._values < 0:
            _refuse(f"they have more than {MAX_VALUES} values")

    def _text(self, text: str) -> str:
        self._characters -= len(text)
        if self._characters < 0:
            _refuse(f"they have more than {MAX_CHARACTERS} characters")
        if not is_storable_text(text):
            _refuse("a text has a character that cannot be stored")
        return text


def _refuse(reason: str) -> NoReturn:
    raise NotShowable(reason)
