"""The page that explains the code, compared with the code."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from sluicegate.core.approvals import TRANSITIONS
from tests.docs.markdown import DOCS, ROOT, one_fence, rows

PAGE = DOCS / "how-it-works.md"
TEXT = PAGE.read_text("utf-8")
SOURCE = ROOT / "backend" / "src" / "sluicegate"
WALKS = [
    (title, int(count), body)
    for title, count, body in re.findall(
        r"^### ([^\n]+): (\d+) files\n(.*?)(?=^##)", TEXT, re.MULTILINE | re.DOTALL
    )
]
STEP = re.compile(r"^(\d+)\. `([\w/]+\.py)` `([\w.]+)` — ", re.MULTILINE)


def _diagram() -> str:
    """The table of transitions as a mermaid diagram: states in the table's order."""
    order = list(TRANSITIONS)
    lines = ["stateDiagram-v2", f"    [*] --> {order[0]}"]
    for state, targets in TRANSITIONS.items():
        lines += [f"    {state} --> {target}" for target in sorted(targets, key=order.index)]
        if not targets:
            lines.append(f"    {state} --> [*]")
    return "\n".join(lines) + "\n"


def _names(file: Path) -> set[str]:
    """Functions, classes and methods of a module; methods as ``Class.method``."""
    found: set[str] = set()
    for node in ast.parse(file.read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {
                f"{node.name}.{method.name}"
                for method in node.body
                if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef)
            }
    return found


def test_the_diagram_shows_exactly_the_transitions_of_the_table() -> None:
    drawn = one_fence(TEXT, "mermaid")

    assert drawn == _diagram(), f"the diagram should be:\n{_diagram()}"


def test_every_state_is_explained_once() -> None:
    explained = [row[0].strip("`") for row in rows(TEXT)]

    assert sorted(name for name in explained if name in TRANSITIONS) == sorted(TRANSITIONS)


def test_the_page_has_three_walks() -> None:
    assert len(WALKS) == 3


@pytest.mark.parametrize(("title", "count", "body"), WALKS, ids=[walk[0] for walk in WALKS])
def test_each_step_of_a_walk_names_a_function_of_its_file(
    title: str, count: int, body: str
) -> None:
    steps = STEP.findall(body)

    assert [int(number) for number, _, _ in steps] == list(range(1, count + 1)), title
    assert len({file for _, file, _ in steps}) == count, title
    for _, file, name in steps:
        assert name in _names(SOURCE / file), f"{file} has no {name}"


def test_the_files_to_read_first_have_the_documented_number_of_lines() -> None:
    promise = re.search(r"about ([\d,]+) lines:\n(.+)\n", TEXT)
    assert promise is not None
    said = int(promise[1].replace(",", ""))
    files = re.findall(r"`([\w/]+\.py)`", promise[2])

    lines = sum(len((SOURCE / file).read_text("utf-8").splitlines()) for file in files)

    assert abs(lines - said) <= 0.05 * lines, f"{lines} lines"
