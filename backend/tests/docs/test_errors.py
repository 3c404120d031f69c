"""The catalogue of errors is that of the classes, and the log refers to headings that exist."""

from __future__ import annotations

import re

import pytest

from scripts.error_catalogue import PAGE, catalogue
from sluicegate.errors import CATALOGUE, ModelError, RequestError
from tests.docs.markdown import ROOT

TEXT = PAGE.read_text("utf-8")


def test_the_catalogue_is_current() -> None:
    assert catalogue() == TEXT, "run scripts/error_catalogue.py"
    assert ROOT / CATALOGUE == PAGE


@pytest.mark.parametrize(
    "code",
    [
        *(kind.code for kind in RequestError.__subclasses__()),
        "host",
        ModelError.code,
        *(kind.code for kind in ModelError.__subclasses__()),
    ],
)
def test_each_code_has_a_heading_with_a_cause_and_a_fix(code: str) -> None:
    entry = TEXT.partition(f"### `{code}`\n")[2]
    assert re.search(r"\*\*Cause:\*\* [A-Z].+\.\n", entry.partition("\n## ")[0])
    assert re.search(r"\*\*Fix:\*\* [A-Z].+\.\n", entry.partition("\n## ")[0])
