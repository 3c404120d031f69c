"""The table of mutants fits the source; whether each is killed is what ``make mutants`` shows."""

from __future__ import annotations

import ast

import pytest

from tests.mutants.run import SOURCE, TESTS, Mutant, mutants


@pytest.mark.parametrize("mutant", mutants(), ids=lambda mutant: mutant.name)
def test_a_mutant_changes_one_place_and_is_still_python(mutant: Mutant) -> None:
    changed = mutant.broken(SOURCE)
    assert changed != (SOURCE / "sluicegate" / mutant.file).read_text()
    ast.parse(changed)


@pytest.mark.parametrize("mutant", mutants(), ids=lambda mutant: mutant.name)
def test_the_tests_that_should_notice_are_there(mutant: Mutant) -> None:
    assert mutant.tests
    assert all((TESTS / name).is_file() for name in mutant.tests)


def test_every_mutant_has_a_name_of_its_own() -> None:
    names = [mutant.name for mutant in mutants()]
    assert len(set(names)) == len(names)
