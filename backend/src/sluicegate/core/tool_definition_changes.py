"""Definitions of tools, to which grants are bound: what the model and the approver were shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sluicegate.core.json_values import hash_arguments, json_safe

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import JsonValue


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """The name, the description and the parameters of a tool, as they are declared.

    ``parameters`` is the JSON schema of the arguments, None for a tool that declares none;
    ``digest`` is the SHA-256 of the canonical JSON of all three.
    """

    name: str
    description: str
    parameters: JsonValue
    digest: str

    def as_json(self) -> dict[str, JsonValue]:
        """The definition as it is stored."""
        return {
            "name": self.name,
            "description": self.description,
            "parameters": self.parameters,
        }


def define(name: str, description: str, parameters: object) -> ToolDefinition:
    """Return the definition with its digest."""
    plain = json_safe(parameters)
    whole: dict[str, JsonValue] = {
        "name": name,
        "description": description,
        "parameters": plain,
    }
    return ToolDefinition(name, description, plain, hash_arguments(whole))


def stored_definition(stored: Mapping[str, JsonValue]) -> ToolDefinition:
    """Return a definition from `ToolDefinition.as_json`."""
    return define(str(stored["name"]), str(stored["description"]), stored["parameters"])


def changes(old: ToolDefinition, new: ToolDefinition) -> dict[str, JsonValue] | None:
    """The old and the new value of each part that differs; None for the same definition."""
    if old.digest == new.digest:
        return None
    changed: dict[str, JsonValue] = {}
    if old.description != new.description:
        changed["description"] = [old.description, new.description]
    if old.parameters != new.parameters:
        changed["parameters"] = [old.parameters, new.parameters]
    return changed
