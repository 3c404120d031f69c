"""The words of the documents: nouns in place of pronouns, and the field's verbs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.markdown import PAGES, ROOT

# Decisions stay as they were made, and the changelog names what was.
READ = [
    *(page for page in PAGES if "decisions" not in page.parts and page.name != "CHANGELOG.md"),
    ROOT / "frontend" / "client" / "README.md",
]
WORDS = re.compile(r"\b(?:nobody|somebody|whoever|told|tells?)\b", re.IGNORECASE)
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)


@pytest.mark.parametrize("page", READ, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_names_who_acts_and_what_is_sent(page: Path) -> None:
    prose = CODE.sub("", page.read_text("utf-8"))
    assert [line for line in prose.splitlines() if WORDS.search(line)] == []
