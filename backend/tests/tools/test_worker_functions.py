"""The functions of a worker's file (S1-R22, S1-R23, S1-R29)."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

import pytest

from sluicegate.errors import ConfigurationError
from sluicegate.tools.worker_server import load_functions

ORDER = """\
from __future__ import annotations
from dataclasses import dataclass

@dataclass
class Order:
    lines: list[Line]

@dataclass
class Line:
    article: str

def order(order: Order) -> Order:
    "Order."
    return order
"""


def test_files_replace_no_module_and_keep_their_own(tmp_path: Path) -> None:
    """Types of the file refer to each other by name, and their values can be pickled."""
    before = dict(sys.modules)
    (tmp_path / "one.py").write_text(ORDER)
    (tmp_path / "two.py").write_text(ORDER)
    functions = [load_functions(tmp_path / f"{name}.py")[0] for name in ("one", "two")]
    assert {name: sys.modules[name] for name in before} == before
    for function in functions:
        [order] = function.validate({"order": {"lines": [{"article": "tea"}]}}).values()
        assert type(order).__module__ == function.call.__module__
        assert pickle.loads(pickle.dumps(order)) == order


def test_a_file_that_fails_leaves_no_module(tmp_path: Path) -> None:
    before = set(sys.modules)
    (tmp_path / "some.py").write_text("1 / 0\n")
    with pytest.raises(ConfigurationError):
        load_functions(tmp_path / "some.py")
    assert set(sys.modules) == before


def test_public_functions_are_those_of_the_file_or_of_its_all(tmp_path: Path) -> None:
    code = 'from json import dumps\ndef a(x: int):\n    "A."\ndef _b(): ...\ndef c():\n    "C."\n'
    file = tmp_path / "some.py"
    file.write_text(code)
    assert [each.name for each in load_functions(file)] == ["a", "c"]
    file.write_text(f'{code}__all__ = ["c"]\n')
    assert [each.name for each in load_functions(file)] == ["c"]


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("x = 1\n", "defines no public function"),
        ("1 / 0\n", "cannot be imported: ZeroDivisionError"),
        ("def x(:\n", "cannot be imported: SyntaxError"),
        ('def ä(x: int):\n    "A."\n', "The tool name 'ä' is not a letter followed by"),
        ('def a(x: bytes):\n    "A."\n', "a.x takes bytes, which a model cannot write"),
        (None, "is not there"),
    ],
)
def test_a_file_that_cannot_be_served_is_refused_in_one_sentence(
    tmp_path: Path, code: str | None, sentence: str
) -> None:
    file = tmp_path / "some.py"
    if code is not None:
        file.write_text(code)
    with pytest.raises(ConfigurationError, match=sentence):
        load_functions(file)
