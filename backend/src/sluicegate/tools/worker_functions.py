"""The functions of a file as tools of a worker."""

from __future__ import annotations

import importlib.util
import inspect
import sys
import typing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sluicegate.errors import ConfigurationError
from sluicegate.tools.functions import DeclaredFunction, declare
from sluicegate.tools.worker_names import checked_tool_name

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

_MODULE: Final = "sluicegate_worker_file"


def load_functions(file: str | Path) -> list[DeclaredFunction]:
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
    return [declare(function, name=checked_tool_name(name)) for name, function in found]


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
