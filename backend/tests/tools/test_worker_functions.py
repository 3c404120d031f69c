"""What a worker makes of the functions of a file (S1-R18 to S1-R23, S1-R29)."""

from __future__ import annotations

import enum
from datetime import date
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from sluicegate.errors import ConfigurationError, ToolError
from sluicegate.tools.docstrings import docs_of
from sluicegate.tools.worker_functions import function_tool, load_functions


class Colour(enum.Enum):
    RED = "red"


class Item(BaseModel):
    name: str
    count: int = 1


class Opaque:
    pass


def everything(  # noqa: PLR0913, D417 - it has one parameter of each kind
    text: str,
    day: date,
    item: Item,
    colour: Colour = Colour.RED,
    kind: Literal["a", "b"] = "a",
    maybe: int | None = None,
    many: list[float] = [],  # noqa: B006 - a default of a tool
    some: dict[str, bool] | None = None,
    anything: Any = None,
    *,
    schema: int = 3,
) -> None:
    """Take everything.

    It goes on here.

    Args:
        text (str): A text,
            over two lines.
        day: A day: the next.

    Returns:
        Nothing.
    """


def test_every_hint_default_and_docstring_is_in_the_schema() -> None:
    tool = function_tool("everything", everything)
    assert tool.description == "Take everything.\n\nIt goes on here."
    assert tool.schema["required"] == ["text", "day", "item"]
    assert tool.schema["additionalProperties"] is False
    properties = tool.schema["properties"]
    assert list(properties)[:3] == ["text", "day", "item"]
    assert properties["text"] == {"type": "string", "description": "A text, over two lines."}
    assert properties["day"] == {
        "type": "string",
        "format": "date",
        "description": "A day: the next.",
    }
    assert properties["schema"] == {"type": "integer", "default": 3}
    assert properties["maybe"]["anyOf"] == [{"type": "integer"}, {"type": "null"}]
    assert properties["kind"]["enum"] == ["a", "b"]
    assert tool.schema["$defs"]["Item"]["properties"]["count"]["default"] == 1


def test_arguments_arrive_as_their_hints_say() -> None:
    tool = function_tool("everything", everything)
    read = tool.read({"text": "x", "day": "2026-01-02", "item": {"name": "n"}, "schema": 4})
    assert (read["day"], read["item"], read["schema"]) == (date(2026, 1, 2), Item(name="n"), 4)
    assert read["colour"] is Colour.RED
    with pytest.raises(ToolError, match=r"Not run: item\.name: Field required"):
        tool.read({"text": "x", "day": "2026-01-02", "item": {}})


def no_hint(x) -> None:  # type: ignore[no-untyped-def]
    """Do."""


def opaque(x: Opaque) -> None:
    """Do."""


def nested(x: list[dict[str, Opaque]]) -> None:
    """Do."""


def binary(x: bytes) -> None:
    """Do."""


def spread(*x: int) -> None:
    """Do."""


def silent(x: int) -> None: ...


def unknown(x: Missing) -> None:  # type: ignore[name-defined]  # noqa: F821
    """Do."""


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (no_hint, "no_hint.x has no type hint."),
        (opaque, "opaque.x is of the type Opaque, which no JSON schema describes."),
        (nested, "nested.x is of the type list[dict[str, "),
        (binary, "binary.x takes bytes, which a model cannot write"),
        (spread, "spread.x cannot be given by its name"),
        (silent, "silent has no docstring"),
        (unknown, "The type hints of unknown cannot be read: NameError"),
    ],
)
def test_what_cannot_be_a_tool_is_refused_by_its_path(function: Any, sentence: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        function_tool(function.__name__, function)
    assert str(refused.value).startswith(sentence)


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


def test_rest_docstrings_are_read_too() -> None:
    def each(one: int, two: int) -> None:
        """Do each.

        :param one: the first
        :param int two: the second,
            of two
        :returns: nothing
        """

    docs = docs_of(each)
    assert docs.text == "Do each."
    assert docs.arguments == {"one": "the first", "two": "the second, of two"}
