"""The numbers of the page match the saved samples."""

from __future__ import annotations

import json

from bench.page import table
from tests.docs.markdown import DOCS

PAGE = (DOCS / "performance.md").read_text("utf-8")
SAMPLES = json.loads((DOCS / "performance.json").read_text("utf-8"))


def test_the_table_is_generated_from_the_samples() -> None:
    for line in table(SAMPLES):
        assert line in PAGE


def test_the_page_names_the_machine() -> None:
    for named in SAMPLES["machine"].values():
        assert named in PAGE
