"""Loading the agent that a command line names."""

from __future__ import annotations

import importlib
import itertools
import os
import sys
import traceback
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dotenv import load_dotenv
from google.adk.apps.app import App
from google.adk.workflow import BaseNode
from pydantic import ValidationError

from sluicegate.engine.agents.target_location import (
    folder_of,
    missing_module,
    prepend_to_path,
    split_target,
)
from sluicegate.engine.describe_exceptions import reasons
from sluicegate.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from google.adk.agents.base_agent import BaseAgent

_DEFAULTS: Final = ("app", "root_agent")
_AGENT_FILES: Final = ("agent.py", "__init__.py")


def load_target(text: str) -> App | BaseAgent | BaseNode:
    """Load ``package.module:name``, ``path/agent.py:name`` or an ADK agent folder.

    Without ``:name`` it is an App called ``app``, else ``root_agent``. An agent folder has an
    ``agent.py``, or an ``__init__.py`` with one of the two. Modules are searched in the working
    directory too. For a file or a folder, a ``.env`` beside the agent sets environment variables
    that are not set yet, as ADK's own commands do. Credentials of models are not checked.

    Raises:
        ConfigurationError: The file, module or attribute does not exist, the user's code raised,
            the attribute is not an agent, or a folder holds several agents.
    """
    folder_of(text)
    location, name = split_target(text)
    path = Path(location)
    if path.is_dir():
        return _from_folder(path.resolve(), name)
    if path.is_file():
        return _select(_from_file(path.resolve()), name, location)
    return _select(_from_module(location), name, location)


def _select(module: ModuleType, name: str | None, location: str) -> App | BaseAgent | BaseNode:
    if name is None:
        found = [each for each in _DEFAULTS if hasattr(module, each)]
        if not found:
            message = (
                f"{location} has neither app nor root_agent; name the attribute: {location}:NAME."
            )
            raise ConfigurationError(message)
        # A module may well call its web application `app`.
        wanted = next((each for each in found if _is_target(getattr(module, each))), found[-1])
        value, name = getattr(module, wanted), wanted
    else:
        value = module
        for part in name.split("."):
            if not hasattr(value, part):
                existing = [each for each in _DEFAULTS if hasattr(module, each)]
                hint = f"; it has {' and '.join(existing)}" if existing else ""
                raise ConfigurationError(f"{location} has no attribute {name!r}{hint}.")
            value = getattr(value, part)
    if isinstance(value, App | BaseNode):
        return value
    raise ConfigurationError(
        f"{location}:{name} is of type {type(value).__name__}, not an ADK agent, Workflow or App."
    )


def _is_target(value: object) -> bool:
    return isinstance(value, App | BaseNode)


def _from_folder(folder: Path, name: str | None) -> App | BaseAgent | BaseNode:
    for file in (folder / each for each in _AGENT_FILES):
        if file.is_file():
            module = _from_file(file)
            if name is not None or any(hasattr(module, each) for each in _DEFAULTS):
                return _select(module, name, str(folder))
    agents = sorted(each.name for each in folder.iterdir() if (each / "agent.py").is_file())
    if agents:
        raise ConfigurationError(
            f"{folder} holds the agents {', '.join(agents)}; name one of them, such as "
            f"{folder / agents[0]}."
        )
    raise ConfigurationError(
        f"{folder} is no agent folder: it has no agent.py, and no __init__.py with app or "
        "root_agent."
    )


def _from_module(name: str) -> ModuleType:
    return _importing(lambda: importlib.import_module(name), name, {name})


def _from_file(file: Path) -> ModuleType:
    """Import a file, as part of its package if it has one, so that relative imports work."""
    load_dotenv(file.parent / ".env", override=False)
    top = file.parent
    parts = [] if file.name == "__init__.py" else [file.stem]
    while (top / "__init__.py").is_file():
        parts.insert(0, top.name)
        top = top.parent
    if file.parent == top:
        prepend_to_path(top)
        return _importing(lambda: _execute(file), str(file), set())
    name = ".".join(parts)
    prepend_to_path(top)
    _check_package_name(parts[0], top, file)
    module = _importing(lambda: importlib.import_module(name), str(file), set())
    if module.__file__ is None or not os.path.samefile(module.__file__, file):
        raise ConfigurationError(_name_conflict(file, name, module))
    return module


def _check_package_name(package: str, top: Path, file: Path) -> None:
    """Refuse a package whose name another loaded package has; Python would search that one."""
    loaded = sys.modules.get(package)
    locations = [*getattr(loaded, "__path__", ()), getattr(loaded, "__file__", None) or ""]
    if loaded is not None and not any(
        location.startswith(str(top / package)) for location in locations
    ):
        raise ConfigurationError(_name_conflict(file, package, loaded))


def _name_conflict(file: Path, name: str, by: ModuleType) -> str:
    return (
        f"{file} cannot be loaded as {name}, since that name is taken by {by.__file__ or by!r}; "
        "rename the folder."
    )


def _execute(file: Path) -> ModuleType:
    """Import a file that belongs to no package, under its own name if that is free."""
    name = _free_module_name(file.stem)
    spec = spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ConfigurationError(f"{file} is not a Python file.")
    module = module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module


def _free_module_name(stem: str) -> str:
    """Return a name under which no other module is registered."""
    if stem not in sys.modules and stem not in sys.stdlib_module_names:
        return stem
    name = f"sluicegate_target_{stem}"
    numbered = (f"{name}_{number}" for number in itertools.count(2))
    return next(each for each in itertools.chain([name], numbered) if each not in sys.modules)


def _importing(load: Callable[[], ModuleType], location: str, names: set[str]) -> ModuleType:
    try:
        return load()
    except ConfigurationError:
        raise
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if any(name == missing or name.startswith(f"{missing}.") for name in names):
            raise missing_module(missing, location) from error
        raise ConfigurationError(_import_failure(location, error)) from error
    except (Exception, SystemExit) as error:
        raise ConfigurationError(_import_failure(location, error)) from error


def _import_failure(location: str, error: BaseException) -> str:
    if isinstance(error, ValidationError):
        said = reasons(error).rstrip(".")
    elif isinstance(error, SyntaxError):
        # Its text repeats the file and the line.
        said = error.msg
    else:
        said = next(iter(str(error).splitlines()), "").strip().rstrip(".")[:200]
    about = f": {said}" if said else ""
    return f"{location} cannot be imported: {type(error).__name__} at {_where(error)}{about}."


def _where(error: BaseException) -> str:
    """Return file and line of an error: the innermost frame outside of libraries."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}"
    frames = [
        f"{frame.filename}:{frame.lineno}"
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith("<") and frame.filename != __file__
    ]
    users = [each for each in frames if not _is_library(each)]
    return next(reversed(users or frames), "an unknown line")


def _is_library(location: str) -> bool:
    file = Path(location).as_posix()
    return "/site-packages/" in file or file.startswith(Path(os.__file__).parent.as_posix() + "/")
