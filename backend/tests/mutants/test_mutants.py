"""The table of mutants fits the source; whether each is killed is what ``make mutants`` shows."""

from __future__ import annotations

import ast

import pytest

from tests.mutants.run import SOURCE, Mutant, mutants


@pytest.mark.parametrize("mutant", mutants(), ids=lambda mutant: mutant.name)
def test_a_mutant_changes_one_place_and_is_still_python(mutant: Mutant) -> None:
    changed = mutant.broken(SOURCE)
    assert changed != (SOURCE / "sluicegate" / mutant.file).read_text()
    ast.parse(changed)
