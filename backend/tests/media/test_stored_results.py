"""Tool results that are stored unchanged, and those that are replaced by a note."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from sluicegate.media.stored_results import as_storable


@pytest.mark.parametrize("result", [None, {}, {"a": 1}, "text", [1, 2]])
def test_plain_results_are_not_changed(result: object) -> None:
    assert as_storable(result) is None


@pytest.mark.parametrize(
    ("result", "stored"),
    [
        ({"data": b"1234"}, {"data": "[4 bytes]"}),
        ({"rate": math.nan}, {"rate": None}),
        ({"text": "a\0"}, {"text": "a\ufffd"}),
        (b"12", {"result": "[2 bytes]"}),
        ({"text": "a\ud800"}, {"text": "a\ufffd"}),
        ({"a\ud800": ["b\ud800", {"c": b"1"}]}, {"a\ufffd": ["b\ufffd", {"c": "[1 bytes]"}]}),
        ([{"rate": math.inf}], {"result": [{"rate": None}]}),
    ],
)
def test_a_result_that_is_not_json_becomes_a_note(result: object, stored: object) -> None:
    assert as_storable(result) == stored


def test_a_result_with_a_reference_cycle_can_be_stored() -> None:
    loop: dict[str, Any] = {"name": "loop"}
    loop["again"] = loop
    assert json.dumps(as_storable(loop))
