"""Reads the project's Markdown."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[3]
DOCS: Final = ROOT / "docs"
PAGES: Final = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])

_FENCE: Final = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK: Final = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
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
