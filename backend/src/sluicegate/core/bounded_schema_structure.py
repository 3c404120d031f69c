"""The structure of a JSON schema, read once and bounded before anything is checked with it.

A schema of a worker or of a page is data of a stranger. What makes the check of a value unbounded
is refused here: references that leave the schema or lead back to themselves without a step into
the value, references that expand to more than the schema says, patterns without a linear engine,
and keywords whose evaluation cannot be bounded.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote

from sluicegate.core.linear_patterns import MAX_SIZE, LinearPattern
from sluicegate.errors import UnusableSchema

MAX_BYTES: Final = 64 * 1024
MAX_DEPTH: Final = 64
"""Objects and lists inside each other."""

MAX_SCHEMAS: Final = 2_000
MAX_REFERENCES: Final = 500
MAX_BRANCHES: Final = 300
"""Alternatives, conditions and negations: the schemas that apply to the same value as another."""

MAX_EXPANDED: Final = 10_000
"""Schemas with every reference replaced by its target, as some model clients do."""

MAX_CHAIN: Final = 200
"""Schemas inside each other, with references followed."""

DIALECTS: Final = {
    "http://json-schema.org/draft-06/schema": "draft6",
    "http://json-schema.org/draft-07/schema": "draft7",
    "https://json-schema.org/draft/2019-09/schema": "draft2019-09",
    "https://json-schema.org/draft/2020-12/schema": "draft2020-12",
}
_DEFAULT_DIALECT: Final = "draft2020-12"

_TYPES: Final = frozenset(
    {"array", "boolean", "integer", "null", "number", "object", "string"},
)
_SAME_VALUE: Final = frozenset(
    {"allOf", "anyOf", "dependencies", "dependentSchemas", "else", "if", "not", "oneOf", "then"}
)
_SINGLE: Final = frozenset(
    {
        "additionalItems",
        "additionalProperties",
        "contains",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
    }
)
_LISTS: Final = frozenset({"allOf", "anyOf", "items", "oneOf", "prefixItems"})
_MAPS: Final = frozenset(
    {
        "$defs",
        "definitions",
        "dependencies",
        "dependentSchemas",
        "patternProperties",
        "properties",
    }
)
_OF_THE_ROOT: Final = frozenset({"$id", "$schema"})
_UNBOUNDED: Final = frozenset(
    {"$dynamicRef", "$recursiveRef", "unevaluatedItems", "unevaluatedProperties"}
)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_FORMS: Final[Mapping[str, Callable[[Any], bool]]] = {
    "$ref": _is_text,
    "dependentRequired": lambda value: (
        isinstance(value, dict) and all(map(_is_texts, value.values()))
    ),
    "enum": lambda value: isinstance(value, list),
    "exclusiveMaximum": _is_number,
    "exclusiveMinimum": _is_number,
    "format": _is_text,
    "maxContains": _is_count,
    "maxItems": _is_count,
    "maxLength": _is_count,
    "maxProperties": _is_count,
    "maximum": _is_number,
    "minContains": _is_count,
    "minItems": _is_count,
    "minLength": _is_count,
    "minProperties": _is_count,
    "minimum": _is_number,
    "multipleOf": lambda value: _is_number(value) and value > 0,
    "pattern": _is_text,
    "required": _is_texts,
    "type": lambda value: (
        {value} <= _TYPES if _is_text(value) else _is_texts(value) and {*value} <= _TYPES
    ),
    "uniqueItems": lambda value: isinstance(value, bool),
}
"""What the value of a keyword must be; the keywords that hold schemas are not among them."""


@dataclass(slots=True)
class SchemaStructure:
    """A schema that can be checked in bounded time.

    ``root`` is the schema without its own ``$id`` and ``$schema``; ``patterns`` are the compiled
    patterns by their text, ``references`` the targets by their text.
    """

    dialect: str
    root: dict[str, Any]
    patterns: dict[str, LinearPattern] = field(default_factory=dict)
    references: dict[str, Any] = field(default_factory=dict)


def read_structure(schema: Mapping[str, Any]) -> SchemaStructure:
    """Read the structure of a schema.

    Raises:
        UnusableSchema: It is no JSON schema, or checking a value with it is not bounded.
    """
    check_size(schema)
    structure = SchemaStructure(
        _dialect(schema.get("$schema")),
        # jsonschema would leave the bounded validator at a $schema, and resolve URLs at an $id.
        {name: value for name, value in schema.items() if name not in _OF_THE_ROOT},
    )
    known = _Reader(structure).read()
    for reference in structure.references:
        target = target_of(structure.root, reference)
        if id(target) not in known:
            raise UnusableSchema(f"the reference {reference[:80]!r} names no schema inside it")
        structure.references[reference] = target
    alone = frozenset({id(structure.root)})
    _Expansion(structure.references).visit(structure.root, alone, alone, 0)
    return structure


def _dialect(value: object) -> str:
    if value is None:
        return _DEFAULT_DIALECT
    if not isinstance(value, str):
        raise UnusableSchema("its $schema is no text")
    known = DIALECTS.get(value.removesuffix("#"))
    if known is None and "draft-0" in value:
        raise UnusableSchema("its dialect is older than draft 6")
    return known or _DEFAULT_DIALECT


def check_size(schema: Mapping[str, Any]) -> None:
    """Refuse a schema that is nested too deeply, or too long.

    Raises:
        UnusableSchema: It is, or it is not JSON.
    """
    pending: list[tuple[object, int]] = [(schema, 1)]
    while pending:
        value, depth = pending.pop()
        if depth > MAX_DEPTH:
            raise UnusableSchema(f"it is nested more than {MAX_DEPTH} levels deep")
        if isinstance(value, Mapping):
            pending.extend((each, depth + 1) for each in value.values())
        elif isinstance(value, list):
            pending.extend((each, depth + 1) for each in value)
    try:
        size = len(json.dumps(schema, ensure_ascii=False).encode("utf-8", "replace"))
    except (TypeError, ValueError):
        raise UnusableSchema("it is not JSON") from None
    if size > MAX_BYTES:
        raise UnusableSchema(f"it has more than {MAX_BYTES:,} bytes")


class _Reader:
    """Visits every schema inside a schema, and counts."""

    def __init__(self, structure: SchemaStructure) -> None:
        self._structure = structure
        self._schemas = 0
        self._references = 0
        self._branches = 0
        self._pattern_size = 0

    def read(self) -> set[int]:
        """Return the identities of all schemas inside."""
        known: set[int] = set()
        pending: list[Any] = [self._structure.root]
        while pending:
            each = pending.pop()
            self._schemas += 1
            if self._schemas > MAX_SCHEMAS:
                raise UnusableSchema(f"it holds more than {MAX_SCHEMAS} schemas")
            if isinstance(each, bool):
                continue
            known.add(id(each))
            if not isinstance(each, dict):
                raise UnusableSchema("one of its schemas is neither an object nor true or false")
            if not _OF_THE_ROOT.isdisjoint(each):
                raise UnusableSchema("a schema inside it has an $id or a $schema of its own")
            self._read_keywords(each)
            pending.extend(inner for _, inner in schemas_in(each))
        return known

    def _read_keywords(self, schema: dict[str, Any]) -> None:
        for keyword, value in schema.items():
            if keyword in _UNBOUNDED:
                raise UnusableSchema(f"it uses {keyword}, which cannot be checked in bounded time")
            form = _FORMS.get(keyword)
            if form is not None and not form(value):
                raise UnusableSchema(f"the value of {keyword} is not valid in a JSON schema")
        if "$ref" in schema:
            self._structure.references.setdefault(schema["$ref"], None)
            self._references += 1
        self._branches += sum(keyword in _SAME_VALUE for keyword, _ in schemas_in(schema))
        if self._references > MAX_REFERENCES:
            raise UnusableSchema(f"it has more than {MAX_REFERENCES} references")
        if self._branches > MAX_BRANCHES:
            raise UnusableSchema(f"it has more than {MAX_BRANCHES} alternatives and conditions")
        patterns = [schema["pattern"]] if "pattern" in schema else []
        for pattern in [*patterns, *schema.get("patternProperties", ())]:
            self._add_pattern(pattern)

    def _add_pattern(self, pattern: str) -> None:
        if pattern in self._structure.patterns:
            return
        compiled = LinearPattern(pattern)
        self._structure.patterns[pattern] = compiled
        self._pattern_size += compiled.size
        if self._pattern_size > MAX_SIZE:
            raise UnusableSchema("its patterns together are too large")


def unusable_pattern(schema: Mapping[str, Any]) -> str | None:
    """Return why a pattern inside a schema cannot be searched in linear time; None if all can."""
    pending: list[Any] = [schema]
    while pending:
        each = pending.pop()
        if not isinstance(each, Mapping):
            continue
        named = each.get("patternProperties")
        try:
            for pattern in [each.get("pattern"), *(named if isinstance(named, Mapping) else ())]:
                if isinstance(pattern, str):
                    LinearPattern(pattern)
        except UnusableSchema as error:
            return str(error)
        # What else is invalid in a schema of the author is not judged here.
        with contextlib.suppress(UnusableSchema):
            pending.extend(inner for _, inner in schemas_in(each))
    return None


def schemas_in(schema: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the schemas directly inside a schema, with their keyword.

    Raises:
        UnusableSchema: A keyword holds something else.
    """
    for keyword, value in schema.items():
        if keyword in _MAPS:
            if not isinstance(value, dict):
                raise UnusableSchema(f"the value of {keyword} is not valid in a JSON schema")
            for inner in value.values():
                if keyword != "dependencies" or not _is_texts(inner):
                    yield keyword, inner
        elif keyword in _LISTS and isinstance(value, list):
            for inner in value:
                yield keyword, inner
        elif keyword in _SINGLE:
            yield keyword, value
        elif keyword in _LISTS:
            raise UnusableSchema(f"the value of {keyword} is not valid in a JSON schema")


def target_of(schema: Mapping[str, Any], reference: str) -> object:
    """Return what a JSON pointer in a reference names, None if nothing."""
    if reference == "#":
        return schema
    if not reference.startswith("#/"):
        return None
    found: object = schema
    for step in unquote(reference[2:]).split("/"):
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, Mapping):
            found = found.get(name)
        elif isinstance(found, list) and name.isdecimal() and int(name[:9]) < len(found):
            found = found[int(name[:9])]
        else:
            return None
    return found


class _Expansion:
    """Replaces every reference by its target, without building the result.

    A reference to an enclosing schema ends there, as in a client that expands references.
    """

    def __init__(self, references: Mapping[str, Any]) -> None:
        self._references = references
        self._left = MAX_EXPANDED

    def visit(
        self, schema: Any, enclosing: frozenset[int], same_value: frozenset[int], depth: int
    ) -> None:
        """Visit a schema.

        Args:
            schema: An object, or true or false.
            enclosing: The identities of the schemas around it.
            same_value: Those of them that apply to the same value.
            depth: The number of schemas around it.
        """
        self._left -= 1
        if self._left < 0:
            raise UnusableSchema(f"its references expand to more than {MAX_EXPANDED} schemas")
        if depth > MAX_CHAIN:
            raise UnusableSchema(f"its references nest more than {MAX_CHAIN} schemas")
        if isinstance(schema, bool):
            return
        inner = [(keyword in _SAME_VALUE, each) for keyword, each in schemas_in(schema)]
        if "$ref" in schema:
            inner.append((True, self._references[schema["$ref"]]))
        for is_same, each in inner:
            if is_same and id(each) in same_value:
                raise UnusableSchema("one of its references leads back to itself")
            if isinstance(each, bool) or id(each) in enclosing:
                continue
            around = same_value if is_same else frozenset[int]()
            self.visit(each, enclosing | {id(each)}, around | {id(each)}, depth + 1)
