"""The rules that code references by id."""

from __future__ import annotations

import re

from tests.docs.markdown import DOCS, ROOT

ID = re.compile(r"\b[TDA][1-9]\d?\b")
DEFINED = re.compile(r"^- \*\*([TDA]\d+)\*\* ", re.MULTILINE)
PROTOCOL = DOCS / "reference" / "protocol.md"
SOURCES = ("backend/src/sluicegate", "e2e/conformance/harness", "e2e/conformance/stories")


def _named() -> set[str]:
    files = [
        path
        for folder in SOURCES
        for path in (ROOT / folder).rglob("*")
        if path.suffix in {".py", ".ts"} and "node_modules" not in path.parts
    ]
    return {found for path in files for found in ID.findall(path.read_text("utf-8"))}


def test_every_rule_is_defined_once_and_in_order() -> None:
    defined = DEFINED.findall(PROTOCOL.read_text("utf-8"))

    for letter, count in (("T", 10), ("D", 7), ("A", 6)):
        numbers = [int(name[1:]) for name in defined if name.startswith(letter)]
        assert numbers == sorted(set(numbers))
        assert numbers[:count] == list(range(1, count + 1))


def test_every_rule_referenced_in_code_is_defined() -> None:
    named = _named()

    assert named - set(DEFINED.findall(PROTOCOL.read_text("utf-8"))) == set()
    assert len(named) > 15
