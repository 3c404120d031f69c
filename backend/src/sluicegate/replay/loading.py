"""Reads scenario files; every fault is one sentence that names the place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from pydantic import ValidationError

from sluicegate.errors import ScenarioError
from sluicegate.replay.scenario import Scenarios

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from pydantic_core import ErrorDetails


def load_scenarios(path: str | os.PathLike[str]) -> Scenarios:
    """Read a scenario file: JSON when its name ends in ``.json``, else YAML.

    Raises:
        ScenarioError: The file cannot be read or played; one sentence names the file, the number
            of the scenario (from 1) and the field.
    """
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as fault:
        reason = (fault.strerror or "unknown reason").lower()
        raise ScenarioError(f"The scenario file {file} cannot be read: {reason}.") from fault
    except UnicodeDecodeError as fault:
        raise ScenarioError(f"The scenario file {file} is not UTF-8 text.") from fault
    return parse_scenarios(_decode(text, file), name=str(file), folder=file.parent)


def parse_scenarios(data: object, *, name: str = "script", folder: Path | None = None) -> Scenarios:
    """Check scenarios that are already Python objects; ``name`` stands for the file in faults.

    Raises:
        ScenarioError: As for ``load_scenarios``.
    """
    try:
        return Scenarios.model_validate(data, context=folder or Path())
    except ValidationError as faults:
        raise ScenarioError(_sentence(name, faults.errors()[0])) from faults


def _decode(text: str, file: Path) -> Any:
    if file.suffix.lower() == ".json":
        try:
            return json.loads(text)
        except json.JSONDecodeError as fault:
            where = f"at line {fault.lineno}, column {fault.colno}"
            message = f"The scenario file {file} is not valid JSON {where}."
            raise ScenarioError(message) from fault
    try:
        return yaml.load(text, Loader=_StrictLoader)
    except yaml.MarkedYAMLError as fault:
        mark = fault.problem_mark
        where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        problem = f" ({fault.problem})" if fault.problem else ""
        message = f"The scenario file {file} is not valid YAML{where}{problem}."
        raise ScenarioError(message) from fault
    except yaml.YAMLError as fault:
        raise ScenarioError(f"The scenario file {file} is not valid YAML.") from fault


class _StrictLoader(yaml.SafeLoader):
    """YAML without object tags in which a key stands only once."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002
        # The last of two equal keys would win without a word.
        seen: set[object] = set()
        for key_node, _ in node.value:
            if isinstance(key_node, yaml.ScalarNode):
                if key_node.value in seen and key_node.value != "<<":
                    problem = f"the key {key_node.value} stands twice"
                    raise yaml.constructor.ConstructorError(
                        None, None, problem, key_node.start_mark
                    )
                seen.add(key_node.value)
        return super().construct_mapping(node, deep)


def _sentence(name: str, fault: ErrorDetails) -> str:
    place = fault["loc"]
    if len(place) >= 2 and place[0] == "scenarios" and isinstance(place[1], int):
        where = f"In {name}, scenario {place[1] + 1}"
        field = _field(place[2:])
        return f"{where}{f', {field}' if field else ''} {predicate(fault)}."
    return f"In {name}, {_field(place) or 'the file'} {predicate(fault)}."


def _field(place: Sequence[int | str]) -> str:
    text = ""
    for step in place:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def predicate(fault: ErrorDetails) -> str:
    """What is wrong with a field, as the rest of a sentence that begins with its name."""
    match fault["type"]:
        case "extra_forbidden":
            return "is not a known key"
        case "missing":
            return "is missing"
        case "value_error":
            return str(fault["ctx"]["error"])
        case "model_type" | "model_attributes_type" | "dict_type":
            return "should be a mapping"
        case "too_short":
            return "should not be empty"
        case _:
            return fault["msg"].removeprefix("Input ").rstrip(".")
