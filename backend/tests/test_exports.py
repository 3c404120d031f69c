"""The public names of the package: few, listed here, and imported only when they are used."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import sluicegate

PUBLIC = [
    "ConfigurationError",
    "RequestError",
    "ScriptedModel",
    "Settings",
    "ToolError",
    "ToolResult",
    "User",
    "__version__",
    "client_tool",
    "create_app",
    "every_turn",
]


def test_the_public_names_are_these_and_at_most_twelve() -> None:
    assert sluicegate.__all__ == PUBLIC
    assert len(PUBLIC) <= 12
    assert dir(sluicegate) == sorted(PUBLIC)


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_can_be_imported(name: str) -> None:
    value = getattr(sluicegate, name)
    assert value is getattr(sluicegate, name)
    assert isinstance(value, str) or value.__module__.startswith("sluicegate.")


def test_other_names_are_not_there() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = sluicegate.nonsense


def test_importing_the_package_imports_nothing_else_of_weight() -> None:
    program = (
        "import sys, time; began = time.process_time(); import sluicegate; "
        "took = time.process_time() - began; sluicegate.__version__; "
        "heavy = {name.partition('.')[0] for name in sys.modules} "
        "& {'google', 'pydantic', 'starlette', 'sqlalchemy', 'uvicorn', 'sse_starlette'}; "
        "print(sorted(heavy), took < 0.15)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[] True\n"


def test_serving_without_an_exporter_does_not_import_the_sdk_of_opentelemetry() -> None:
    program = (
        "import sys, sluicegate.server.serve_commands as commands; "
        "from sluicegate.server.settings import Settings; "
        "entered = commands.exporting(Settings(), {}); entered.__enter__(); "
        "sdk = ('opentelemetry.sdk', 'opentelemetry.exporter'); "
        "print([name for name in sys.modules if name.startswith(sdk)])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def room(name: str) -> str:
    """An import of every module of a room."""
    folder = Path(sluicegate.__file__).parent / name
    return ", ".join(f"sluicegate.{name}.{path.stem}" for path in sorted(folder.glob("[!_]*.py")))


WEIGHT = {
    "wire": (room("wire"), {"google", "starlette", "sqlalchemy", "uvicorn", "anyio", "asyncio"}),
    # The validator of changed arguments is the one module of core that is imported when needed.
    "core": (
        room("core").replace("sluicegate.core.schema_validation, ", ""),
        {"google", "starlette", "sqlalchemy", "uvicorn", "anyio", "jsonschema"},
    ),
    "the options of the command line": (
        "sluicegate.server.cli",
        {"google", "starlette", "sqlalchemy", "uvicorn", "anyio", "httpx", "jsonschema"},
    ),
    # google-genai imports Pillow where it is installed.
    "what serve imports": (
        "sluicegate.server.serve_commands, sluicegate.server.app, sluicegate.server.uvicorn_server",
        {"asyncpg", "jsonschema", "litellm", "mcp", "pillow_heif", "prometheus_client", "redis"},
    ),
}


@pytest.mark.parametrize("part", WEIGHT)
def test_nothing_is_imported_that_is_not_needed(part: str) -> None:
    modules, heavy = WEIGHT[part]
    program = (
        f"import sys, {modules}; "
        f"print(sorted({heavy!r} & {{name.partition('.')[0] for name in sys.modules}}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
