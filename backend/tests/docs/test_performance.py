"""The numbers of the page match the saved samples."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from bench.markdown_tables import capacity_table, plan_table, table
from tests.docs.markdown import DOCS

PAGE = (DOCS / "performance.md").read_text("utf-8")
SAMPLES = json.loads((DOCS / "performance.json").read_text("utf-8"))


@pytest.mark.parametrize("generated", [table, capacity_table, plan_table])
def test_the_tables_are_generated_from_the_samples(
    generated: Callable[[Mapping[str, Any]], list[str]],
) -> None:
    lines = generated(SAMPLES)
    assert len(lines) > 3
    for line in lines:
        assert line in PAGE


def test_the_page_names_the_machine() -> None:
    for named in SAMPLES["machine"].values():
        assert named in PAGE
