"""Reads the project's Markdown."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[3]
DOCS: Final = ROOT / "docs"
TESTS: Final = ROOT / "backend" / "tests"
PAGES: Final = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])

_FENCE: Final = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK: Final = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_TEST: Final = re.compile(r"`([\w/]+\.py)(?:::(\w+))?`")
_HEADING: Final = re.compile(r"^#+ (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Fence:
    """A code block; ``language`` is empty if none is given."""

    language: str
    code: str


def fences(text: str) -> list[Fence]:
    """The code blocks of a page, in order."""
    return [Fence(*found) for found in _FENCE.findall(text)]


def one_fence(text: str, language: str) -> str:
    """The code of the only block in a language."""
    (code,) = (fence.code for fence in fences(text) if fence.language == language)
    return code


def links(text: str) -> list[str]:
    """The targets of the links of a page, except those in code blocks."""
    return _LINK.findall(_FENCE.sub("", text))


def anchors(text: str) -> set[str]:
    """The anchors of the headings of a page."""
    titles = _HEADING.findall(_FENCE.sub("", text))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def rows(text: str) -> list[list[str]]:
    """The cells of all table rows, without the separator rows."""
    found = []
    for line in text.splitlines():
        if line.startswith("| "):
            cells = [cell.strip() for cell in line.strip("|").split(" | ")]
            if not set("".join(cells)) <= {"-"}:
                found.append(cells)
    return found


def python_tests(cell: str) -> list[tuple[str, str]]:
    """The Python tests that a cell names: path, and name or an empty string."""
    found: list[tuple[str, str]] = _TEST.findall(cell)
    return found


def is_test(path: str, name: str) -> bool:
    """Whether a Python test exists; without a name, the file."""
    text = (TESTS / path).read_text("utf-8")
    return not name or re.search(rf"def {name}\b", text) is not None
