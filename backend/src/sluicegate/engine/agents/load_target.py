"""Finding the agent that a command line names."""

from __future__ import annotations

import importlib
import itertools
import os
import re
import sys
import traceback
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dotenv import load_dotenv
from google.adk.apps.app import App
from google.adk.workflow import BaseNode

from sluicegate.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from google.adk.agents.base_agent import BaseAgent

_DEFAULTS: Final = ("app", "root_agent")
_MODULE: Final = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
_AGENT_FILES: Final = ("agent.py", "__init__.py")


def load_target(text: str) -> App | BaseAgent | BaseNode:
    """Load ``package.module:name``, ``path/agent.py:name`` or an ADK agent folder.

    Without ``:name`` an App called ``app`` is taken, else ``root_agent``. A folder is one with
    ``agent.py``, or with an ``__init__.py`` that has one of the two. Modules are looked for in the
    working directory too. As with ADK's own commands, a ``.env`` beside the agent sets environment
    variables that are not set yet. Credentials of models are not checked.

    Raises:
        ConfigurationError: There is no such file, module or attribute, the user's code raised, the
            attribute is no agent, or a folder holds several agents.
    """
    place, name = _split(text)
    if not place:
        raise ConfigurationError(
            "The target is empty; name one, such as agent.py:root_agent or a folder with agent.py."
        )
    path = Path(place)
    if path.is_dir():
        return _from_folder(path.resolve(), name)
    if path.is_file():
        return _pick(_from_file(path.resolve()), name, place)
    if _MODULE.fullmatch(place) is None or path.suffix == ".py":
        raise ConfigurationError(f"There is no file {place}; check the path of the target.")
    return _pick(_from_module(place), name, place)


def _split(text: str) -> tuple[str, str | None]:
    """Part the place from the attribute; the colon after a drive letter parts nothing."""
    place, colon, name = text.strip().rpartition(":")
    if colon and name.replace(".", "_").isidentifier():
        return place, name
    return (place, None) if colon and not name else (text.strip(), None)


def _pick(module: ModuleType, name: str | None, place: str) -> App | BaseAgent | BaseNode:
    if name is None:
        found = [each for each in _DEFAULTS if hasattr(module, each)]
        if not found:
            message = f"{place} has neither app nor root_agent; name the attribute: {place}:NAME."
            raise ConfigurationError(message)
        # A module may well call its web application `app`.
        wanted = next((each for each in found if _is_target(getattr(module, each))), found[-1])
        value, name = getattr(module, wanted), wanted
    else:
        value = module
        for part in name.split("."):
            if not hasattr(value, part):
                known = [each for each in _DEFAULTS if hasattr(module, each)]
                hint = f"; it has {' and '.join(known)}" if known else ""
                raise ConfigurationError(f"{place} has no attribute {name!r}{hint}.")
            value = getattr(value, part)
    if isinstance(value, App | BaseNode):
        return value
    raise ConfigurationError(
        f"{place}:{name} is of type {type(value).__name__}, not an ADK agent, Workflow or App."
    )


def _is_target(value: object) -> bool:
    return isinstance(value, App | BaseNode)


def _from_folder(folder: Path, name: str | None) -> App | BaseAgent | BaseNode:
    for file in (folder / each for each in _AGENT_FILES):
        if file.is_file():
            module = _from_file(file)
            if name is not None or any(hasattr(module, each) for each in _DEFAULTS):
                return _pick(module, name, str(folder))
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
    _search_first(Path.cwd())
    return _guarded(lambda: importlib.import_module(name), name, {name})


def _from_file(file: Path) -> ModuleType:
    """Import a file: as part of its package when it has one, so that relative imports work."""
    load_dotenv(file.parent / ".env", override=False)
    top = file.parent
    parts = [] if file.name == "__init__.py" else [file.stem]
    while (top / "__init__.py").is_file():
        parts.insert(0, top.name)
        top = top.parent
    if file.parent == top:
        _search_first(top)
        return _guarded(lambda: _execute(file), str(file), set())
    name = ".".join(parts)
    _search_first(top)
    _check_free(parts[0], top, file)
    module = _guarded(lambda: importlib.import_module(name), str(file), set())
    if module.__file__ is None or not os.path.samefile(module.__file__, file):
        raise ConfigurationError(_taken(file, name, module))
    return module


def _check_free(package: str, top: Path, file: Path) -> None:
    """Another package of that name may be loaded already; Python would look for ours in it."""
    known = sys.modules.get(package)
    places = [*getattr(known, "__path__", ()), getattr(known, "__file__", None) or ""]
    if known is not None and not any(place.startswith(str(top / package)) for place in places):
        raise ConfigurationError(_taken(file, package, known))


def _taken(file: Path, name: str, by: ModuleType) -> str:
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


def _guarded(load: Callable[[], ModuleType], place: str, names: set[str]) -> ModuleType:
    try:
        return load()
    except ConfigurationError:
        raise
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if any(name == missing or name.startswith(f"{missing}.") for name in names):
            raise ConfigurationError(
                f"There is no module {missing!r}; check the name of the target {place!r}, or name "
                "its file, such as path/agent.py:root_agent."
            ) from error
        raise ConfigurationError(_in_their_words(place, error)) from error
    except (Exception, SystemExit) as error:
        raise ConfigurationError(_in_their_words(place, error)) from error


def _in_their_words(place: str, error: BaseException) -> str:
    said = next(iter(str(error).splitlines()), "").strip().rstrip(".")[:200]
    about = f": {said}" if said else ""
    return f"{place} cannot be imported: {type(error).__name__} at {_where(error)}{about}."


def _where(error: BaseException) -> str:
    """File and line of an error: the deepest in code that is not a library's."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}"
    frames = [
        f"{frame.filename}:{frame.lineno}"
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith("<") and frame.filename != __file__
    ]
    users = [each for each in frames if not _is_a_librarys(each)]
    return next(reversed(users or frames), "an unknown line")


def _is_a_librarys(place: str) -> bool:
    file = Path(place).as_posix()
    return "/site-packages/" in file or file.startswith(Path(os.__file__).parent.as_posix() + "/")


def _search_first(folder: Path) -> None:
    importlib.invalidate_caches()
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
