"""The fuzz targets of the soak test in their short form."""

from __future__ import annotations

import pytest

from tests.faults.soak.fuzz import KINDS, Kind, play

COUNTS: dict[Kind, int] = {"frames": 500, "bodies": 500, "worker answers": 20}


@pytest.mark.parametrize("kind", KINDS)
async def test_mutated_input_is_refused_in_one_sentence_or_accepted(kind: Kind) -> None:
    assert await play(kind, range(COUNTS[kind])) == []
