from typing import Any

import pytest

from sluicegate.core.json_values import storable_json

DIRTY: list[tuple[Any, Any]] = [
    ("a\0b", "a\ufffdb"),
    ("\ud800", "\ufffd"),
    ("a\udfff\ud800", "a\ufffd\ufffd"),
    ({"a\0": [1, {"b": "\0"}]}, {"a\ufffd": [1, {"b": "\ufffd"}]}),
]


@pytest.mark.parametrize(("value", "stored"), DIRTY)
def test_what_some_store_refuses_is_replaced(value: Any, stored: Any) -> None:
    assert storable_json(value) == stored
    assert storable_json(stored) is stored


@pytest.mark.parametrize("value", ["", "\x01 é 😀", 1, 0.5, True, None, [], {"a": [{"b": "c"}]}])
def test_what_every_store_keeps_comes_back_as_it_is(value: Any) -> None:
    assert storable_json(value) is value
