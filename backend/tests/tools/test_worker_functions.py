"""What a worker makes of the functions of a file (S1-R22, S1-R23, S1-R29)."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluicegate.errors import ConfigurationError
from sluicegate.tools.worker_server import load_functions


def test_public_is_what_the_file_defines_or_names(tmp_path: Path) -> None:
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
def test_a_file_that_cannot_be_served_is_one_sentence(
    tmp_path: Path, code: str | None, sentence: str
) -> None:
    file = tmp_path / "some.py"
    if code is not None:
        file.write_text(code)
    with pytest.raises(ConfigurationError, match=sentence):
        load_functions(file)
