"""Private parts of google-adk are used by `adk_private` and `adk_private_resumption` alone."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import google.adk
import pytest

import sluicegate

SOURCE = Path(sluicegate.__file__).parent


ADK = Path(google.adk.__path__[0])


OTHER_LIBRARIES = {
    "_asdict": "named tuples",
    "_mapping": "rows of SQLAlchemy",
    "_exit": "os",
    "_actions": "argparse",
    "_SubParsersAction": "argparse",
    "_listen_for_exit_signal": "sse-starlette",
}
"""Private names that belong to neither sluicegate nor ADK."""


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        if name not in ("adk_private.py", "adk_private_resumption.py"):
            yield name, ast.parse(path.read_text("utf-8"))


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


@cache
def names_of_adk() -> frozenset[str]:
    """Every private name that google-adk defines: functions, classes, attributes."""
    found: set[str] = set()
    for path in ADK.rglob("*.py"):
        text = path.read_text("utf-8")
        found.update(re.findall(r"(?:def|class) (_[A-Za-z]\w*)", text))
        found.update(re.findall(r"self\.(_[a-z]\w*)(?:: [^=\n]+)? =", text))
        found.update(re.findall(r"^ +(_[a-z]\w*): ", text, re.MULTILINE))
    return frozenset(found)


def own_names(tree: ast.AST) -> set[str]:
    """The private names that a module defines itself."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.id if isinstance(node, ast.Name) else node.attr)
    return found


def private_uses(tree: ast.Module) -> Iterator[str]:
    """Imports of private parts of ADK, and private attributes of objects of others."""
    own = own_names(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("google.adk"):
            parts = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
            yield from (f"import of {part}" for part in parts if is_private(part))
        elif isinstance(node, ast.Import):
            yield from (
                f"import of {alias.name}"
                for alias in node.names
                if alias.name.startswith("google.adk") and "._" in alias.name
            )
        elif isinstance(node, ast.Attribute) and is_private(node.attr):
            is_self = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            if not is_self and node.attr not in own and node.attr not in OTHER_LIBRARIES:
                yield f".{node.attr}"
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            named = is_private(node.value) and node.value not in own
            if named and node.value in names_of_adk():
                yield repr(node.value)


def classes() -> Iterator[type]:
    for info in pkgutil.walk_packages(sluicegate.__path__, "sluicegate."):
        if info.name == "sluicegate.__main__" or info.name.startswith("sluicegate.adk_private"):
            continue
        module = importlib.import_module(info.name)
        for value in list(vars(module).values()):
            if isinstance(value, type) and value.__module__ == module.__name__:
                yield value


def class_body(tree: ast.Module, cls: type) -> ast.ClassDef:
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.name == cls.__name__:
            return node
    raise LookupError(cls)


def private_names_in(cls: type) -> set[str]:
    """Private names that a class defines, and those of itself that it reads."""
    path = Path(importlib.import_module(cls.__module__).__file__ or "")
    tree = ast.parse(path.read_text("utf-8"))
    body = next(
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and node.name == cls.__name__
    )
    found = {name for name in vars(cls) if is_private(name)}
    for node in ast.walk(body):
        is_attribute = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
        if is_attribute and node.value.id in ("self", "cls") and is_private(node.attr):  # type: ignore[attr-defined]
            found.add(node.attr)  # type: ignore[attr-defined]
    return found


@cache
def private_names_of_base(base: type) -> frozenset[str]:
    """Private names that one class of ADK defines on itself or on its instances."""
    path = Path(importlib.import_module(base.__module__).__file__ or "")
    tree = ast.parse(path.read_text("utf-8"))
    found = {name for name in vars(base) if is_private(name) and name != "_abc_impl"}
    found.update(name for name in own_names(class_body(tree, base)) if is_private(name))
    return frozenset(found)


def test_no_other_module_uses_a_private_part_of_adk() -> None:
    found = [f"{name}: {use}" for name, tree in modules() for use in private_uses(tree)]

    assert found == []


def test_each_private_name_of_another_library_is_used() -> None:
    used: set[str] = set()
    for _, tree in modules():
        attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        used |= attributes - own_names(tree)

    assert set(OTHER_LIBRARIES) - used == set()


def test_no_class_shares_a_private_name_with_its_base_class_in_adk() -> None:
    found = [
        f"{cls.__module__}.{cls.__name__}.{name}"
        for cls in classes()
        for base in cls.__mro__
        if base.__module__.startswith("google.adk.")
        for name in sorted(private_names_in(cls) & private_names_of_base(base))
    ]

    assert found == []


@pytest.mark.parametrize(
    ("code", "use"),
    [
        ("from google.adk.workflow._graph import Graph", "import of _graph"),
        ("from google.adk.tools.agent_tool import _TaskAgentTool", "import of _TaskAgentTool"),
        ("import google.adk.workflow._graph", "import of google.adk.workflow._graph"),
        ("context._invocation_context", "._invocation_context"),
        ("getattr(tool, '_require_confirmation')", "'_require_confirmation'"),
    ],
)
def test_a_use_of_a_private_part_is_found(code: str, use: str) -> None:
    assert list(private_uses(ast.parse(code))) == [use]
