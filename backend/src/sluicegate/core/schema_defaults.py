"""The defaults that a JSON schema declares for arguments that a call leaves out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sluicegate.core.bounded_schema_structure import target_of
from sluicegate.core.json_values import json_safe

if TYPE_CHECKING:
    from pydantic import JsonValue


def defaults_in(
    schema: Mapping[str, Any], arguments: Mapping[str, JsonValue]
) -> dict[str, JsonValue]:
    """Return the defaults that a schema declares for what the arguments leave out, by name.

    A default inside an object that is given in part has the path as its name, such as ``to.city``;
    one inside the items of a list, such as ``lines[].unit``, holds for each item without it.
    """
    defaults: dict[str, JsonValue] = {}
    pending: list[tuple[str, Mapping[str, Any], JsonValue]] = [("", schema, dict(arguments))]
    while pending:
        path, declared, given = pending.pop()
        if isinstance(given, list):
            items = _only_with("items", declared, schema).get("items")
            if isinstance(items, Mapping):
                pending += [(f"{path}[]", items, item) for item in given]
        if not isinstance(given, dict):
            continue
        properties = _only_with("properties", declared, schema).get("properties")
        for name, inner in properties.items() if isinstance(properties, Mapping) else ():
            if not isinstance(inner, Mapping):
                continue
            inner_path = f"{path}.{name}" if path else name
            if name in given:
                pending.append((inner_path, inner, given[name]))
            elif "default" in inner:
                defaults[inner_path] = json_safe(inner["default"])
    return defaults


def _only_with(key: str, schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """The only alternative of a schema with a key, such as the object of a union; else empty."""
    found: list[Mapping[str, Any]] = []
    pending = [schema]
    references: set[str] = set()
    while pending:
        each = pending.pop()
        reference = each.get("$ref")
        if isinstance(reference, str):
            if reference not in references:
                references.add(reference)
                target = target_of(root, reference)
                pending += [target] if isinstance(target, Mapping) else []
        elif key in each:
            found.append(each)
        else:
            unions = (each.get(name) for name in ("anyOf", "oneOf", "allOf"))
            lists = [union for union in unions if isinstance(union, list)]
            pending += [one for union in lists for one in union if isinstance(one, Mapping)]
    return found[0] if len(found) == 1 else {}
