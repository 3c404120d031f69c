"""The functions of a file as tools: what a model is told of them, and how they are called."""

from __future__ import annotations

import importlib.util
import inspect
import sys
import typing
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    create_model,
)
from pydantic.errors import PydanticUserError
from pydantic_core import PydanticUndefined

from sluicegate.errors import ConfigurationError, ToolError
from sluicegate.tools.docstrings import docs_of
from sluicegate.tools.worker_names import checked_tool_name

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

_MODULE: Final = "sluicegate_worker_file"
_STRICT: Final = ConfigDict(extra="forbid", arbitrary_types_allowed=False)
_NAMED: Final = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_BYTES: Final = (bytes, bytearray, memoryview)


@dataclass(frozen=True, slots=True)
class WorkerFunction:
    """A function as a tool.

    ``schema`` is the JSON schema of its arguments; ``names`` are its parameters by the fields of
    the model that reads the arguments.
    """

    name: str
    description: str
    schema: dict[str, Any]
    call: Callable[..., Any]
    model: type[BaseModel]
    names: dict[str, str]

    def read(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments as the function takes them (S1-R37).

        Raises:
            ToolError: They do not fit; the sentence names the argument.
        """
        try:
            read = self.model.model_validate(arguments)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            place = ".".join(str(step) for step in first["loc"]) or "arguments"
            raise ToolError(f"Not run: {place}: {first['msg']}.") from None
        return {self.names[field]: getattr(read, field) for field in self.names}


def load_functions(file: str | Path) -> list[WorkerFunction]:
    """Read a file and return its public functions, in the order in which they stand there.

    Public is what ``__all__`` names, or else what the file defines without a leading underscore.

    Raises:
        ConfigurationError: The file cannot be read, has no such function, or one of them cannot
            be a tool; the sentence names the parameter.
    """
    path = Path(file)
    module = _loaded(path)
    found = list(_public(module))
    if not found:
        raise ConfigurationError(f"The file {path.name} defines no public function.")
    return [function_tool(name, function) for name, function in found]


def function_tool(name: str, function: Callable[..., Any]) -> WorkerFunction:
    """Describe a function as a tool (S1-R18 to S1-R23).

    Raises:
        ConfigurationError: It cannot be one.
    """
    checked_tool_name(name)
    docs = docs_of(function)
    if not docs.text:
        raise ConfigurationError(f"{name} has no docstring; say there what it does.")
    hints = _hints(name, function)
    fields: dict[str, Any] = {}
    names: dict[str, str] = {}
    for number, parameter in enumerate(inspect.signature(function).parameters.values()):
        path = f"{name}.{parameter.name}"
        _check_kind(parameter, path)
        hint = hints.get(parameter.name)
        if hint is None:
            raise ConfigurationError(f"{path} has no type hint.")
        _check_type(hint, path)
        missing = parameter.default is inspect.Parameter.empty
        default = PydanticUndefined if missing else parameter.default
        said = docs.arguments.get(parameter.name)
        # The name of a field may not be one that pydantic has already.
        field = f"argument{number}"
        names[field] = parameter.name
        fields[field] = (hint, Field(default, alias=parameter.name, description=said))
    model = create_model("Arguments", __config__=_STRICT, **fields)
    return WorkerFunction(name, docs.text, _schema(model, name), function, model, names)


def _loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(_MODULE, path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise ConfigurationError(f"The file {path} is not there, or is no Python file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[_MODULE] = module
    sys.path.insert(0, str(path.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise ConfigurationError(
            f"The file {path} cannot be imported: {type(error).__name__}: {error}."
        ) from error
    return module


def _public(module: ModuleType) -> typing.Iterator[tuple[str, Callable[..., Any]]]:
    named = getattr(module, "__all__", None)
    for name, value in vars(module).items():
        if not inspect.isfunction(value):
            continue
        own = value.__module__ == module.__name__ and not name.startswith("_")
        if name in named if named is not None else own:
            yield name, value


def _hints(name: str, function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function, include_extras=True)
    except Exception as error:
        raise ConfigurationError(
            f"The type hints of {name} cannot be read: {type(error).__name__}: {error}."
        ) from error


def _check_kind(parameter: inspect.Parameter, path: str) -> None:
    if parameter.kind not in _NAMED:
        raise ConfigurationError(f"{path} cannot be given by its name; a tool's arguments are.")


def _check_type(hint: Any, path: str) -> None:
    if _holds_bytes(hint):
        raise ConfigurationError(
            f"{path} takes bytes, which a model cannot write; take a text or an id instead."
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            TypeAdapter(hint).json_schema()
    except (PydanticUserError, TypeError) as error:
        raise ConfigurationError(
            f"{path} is of the type {_shown(hint)}, which no JSON schema describes."
        ) from error


def _holds_bytes(hint: Any) -> bool:
    return hint in _BYTES or any(_holds_bytes(inner) for inner in typing.get_args(hint))


def _shown(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) else str(hint)


def _schema(model: type[BaseModel], name: str) -> dict[str, Any]:
    with warnings.catch_warnings():
        # A default that is not JSON is left out of the schema.
        warnings.simplefilter("ignore")
        try:
            schema = model.model_json_schema(by_alias=True)
        except PydanticUserError as error:
            raise ConfigurationError(f"The parameters of {name} have no JSON schema.") from error
    schema.pop("title", None)
    for field in schema.get("properties", {}).values():
        field.pop("title", None)
    schema.setdefault("properties", {})
    return schema
