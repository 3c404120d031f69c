"""The declaration of a Python function, and its arguments (S1-R17 to S1-R22)."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple, Optional, Union
from uuid import UUID

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from sluicegate.errors import ConfigurationError, DeclarationError, ToolError
from sluicegate.tools import FunctionDeclaration, declare
from sluicegate.tools.docstrings import parse_docstring


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Item(BaseModel):
    name: str
    count: int = 1


class Order(BaseModel):
    items: list[Item]
    next: Optional[Order] = None  # noqa: UP045 - one of the spellings


@dataclass
class Place:
    lat: float
    lon: float


class Range(TypedDict, total=False):
    low: int
    high: int


class Pair(NamedTuple):
    left: int
    right: str


class Opaque:
    pass


class WithBytes(BaseModel):
    data: bytes


STRING = {"type": "string"}
INTEGER = {"type": "integer"}
NUMBER = {"type": "number"}
BOOLEAN = {"type": "boolean"}
NULL = {"type": "null"}
ITEM = {
    "type": "object",
    "properties": {
        "name": {"title": "Name", "type": "string"},
        "count": {"default": 1, "title": "Count", "type": "integer"},
    },
    "required": ["name"],
    "title": "Item",
}


def taking(hint: object) -> Callable[..., Any]:
    """A function with one parameter of a type."""

    def take(x: object) -> object:
        """Take it."""
        return x

    take.__annotations__ = {"x": hint}
    return take


@pytest.mark.parametrize(
    ("hint", "schema", "given", "taken"),
    [
        (str, STRING, "a", "a"),
        (int, INTEGER, 3, 3),
        (float, NUMBER, 3, 3.0),
        (bool, BOOLEAN, True, True),
        (None, NULL, None, None),
        (Any, {}, [{"a": 1}], [{"a": 1}]),
        (list, {"type": "array", "items": {}}, [1, "a"], [1, "a"]),
        (list[int], {"type": "array", "items": INTEGER}, [1], [1]),
        (Sequence[str], {"type": "array", "items": STRING}, ["a"], ["a"]),
        (set[int], {"type": "array", "items": INTEGER, "uniqueItems": True}, [1, 1], {1}),
        (
            tuple[int, str],
            {"type": "array", "prefixItems": [INTEGER, STRING], "minItems": 2, "maxItems": 2},
            [1, "a"],
            (1, "a"),
        ),
        (tuple[int, ...], {"type": "array", "items": INTEGER}, [1, 2], (1, 2)),
        (dict, {"type": "object", "additionalProperties": True}, {"a": 1}, {"a": 1}),
        (
            dict[str, int],
            {"type": "object", "additionalProperties": INTEGER},
            {"aB_c": 1},
            {"aB_c": 1},
        ),
        (
            Mapping[str, list[bool]],
            {"type": "object", "additionalProperties": {"type": "array", "items": BOOLEAN}},
            {"a": [True]},
            {"a": [True]},
        ),
        (int | None, {"anyOf": [INTEGER, NULL]}, None, None),
        (Optional[str], {"anyOf": [STRING, NULL]}, "a", "a"),  # noqa: UP045
        (Union[int, str], {"anyOf": [INTEGER, STRING]}, "a", "a"),  # noqa: UP007
        (list[int | str], {"type": "array", "items": {"anyOf": [INTEGER, STRING]}}, [1], [1]),
        (Literal["a", "b"], {"enum": ["a", "b"], "type": "string"}, "b", "b"),
        (Literal[1, 2], {"enum": [1, 2], "type": "integer"}, 2, 2),
        (Literal["a", 1, None], {"enum": ["a", 1, None]}, None, None),
        (Literal["a"], {"const": "a", "type": "string"}, "a", "a"),
        (datetime, {"type": "string", "format": "date-time"}, "2026-01-02T03:04:05", ...),
        (date, {"type": "string", "format": "date"}, "2026-01-02", date(2026, 1, 2)),
        (time, {"type": "string", "format": "time"}, "03:04:05", time(3, 4, 5)),
        (timedelta, {"type": "string", "format": "duration"}, "PT1M", timedelta(minutes=1)),
        (complex, STRING, "1+2j", 1 + 2j),
        (UUID, {"type": "string", "format": "uuid"}, str(UUID(int=1)), UUID(int=1)),
        (
            Annotated[int, Field(ge=1, le=9, description="A digit.")],
            {"type": "integer", "minimum": 1, "maximum": 9, "description": "A digit."},
            9,
            9,
        ),
    ],
    ids=str,
)
def test_every_annotation_becomes_a_schema_and_validates(
    hint: object, schema: dict[str, Any], given: object, taken: object
) -> None:
    declared = declare(taking(hint))
    assert declared.schema == {
        "type": "object",
        "properties": {"x": schema},
        "required": ["x"],
        "additionalProperties": False,
    }
    read = declared.validate({"x": given})["x"]
    if taken is not ...:
        assert (read, type(read)) == (taken, type(taken))


@pytest.mark.parametrize(
    ("hint", "name", "given", "taken"),
    [
        (Colour, "Colour", "blue", Colour.BLUE),
        (Level, "Level", 2, Level.HIGH),
        (Item, "Item", {"name": "n"}, Item(name="n")),
        (Place, "Place", {"lat": 1, "lon": 2}, Place(1, 2)),
        (Range, "Range", {"low": 1}, {"low": 1}),
        (Pair, "Pair", [1, "a"], Pair(1, "a")),
        (
            Order,
            "Order",
            {"items": [{"name": "n"}], "next": {"items": []}},
            Order(items=[Item(name="n")], next=Order(items=[])),
        ),
    ],
)
def test_classes_are_defined_once_and_referenced(
    hint: object, name: str, given: object, taken: object
) -> None:
    declared = declare(taking(hint))
    assert declared.schema["properties"]["x"] == {"$ref": f"#/$defs/{name}"}
    assert name in declared.schema["$defs"]
    assert declared.validate({"x": given}) == {"x": taken}


def test_nested_models_are_described_completely() -> None:
    schema = declare(taking(dict[str, list[Item]])).schema
    assert schema["$defs"] == {"Item": ITEM}
    assert schema["properties"]["x"] == {
        "type": "object",
        "additionalProperties": {"type": "array", "items": {"$ref": "#/$defs/Item"}},
    }


def test_decimals_are_numbers_or_strings() -> None:
    declared = declare(taking(Decimal))
    assert [each["type"] for each in declared.schema["properties"]["x"]["anyOf"]] == [
        "number",
        "string",
    ]
    assert declared.validate({"x": "1.10"}) == {"x": Decimal("1.10")}


@pytest.mark.parametrize(
    ("hint", "sentence"),
    [
        (bytes, "take.x takes bytes, which a model cannot write; take a text or an id instead."),
        (list[bytes | None], "take.x takes bytes"),
        (dict[str, WithBytes], "take.x takes bytes"),
        (bytearray, "take.x is of the type bytearray, which no JSON schema describes."),
        (Opaque, "take.x is of the type Opaque, which no JSON schema describes."),
        (list[dict[str, Opaque]], "take.x is of the type list[dict[str, "),
        (Callable[[int], str], "take.x is of the type collections.abc.Callable"),
        (type[Item], "take.x is of the type type["),
        ("Missing", "The type hints of take cannot be read: NameError"),
    ],
    ids=str,
)
def test_a_type_that_no_model_can_write_is_refused_by_its_path(hint: object, sentence: str) -> None:
    with pytest.raises(DeclarationError) as refused:
        declare(taking(hint))
    assert str(refused.value).startswith(sentence)


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
    tool = declare(everything)
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


def test_arguments_are_converted_to_their_type_hints() -> None:
    tool = declare(everything)
    read = tool.validate({"text": "x", "day": "2026-01-02", "item": {"name": "n"}, "schema": 4})
    assert (read["day"], read["item"], read["schema"]) == (date(2026, 1, 2), Item(name="n"), 4)
    assert read["colour"] is Colour.RED
    with pytest.raises(ToolError, match=r"Not run: item\.name: Field required"):
        tool.validate({"text": "x", "day": "2026-01-02", "item": {}})


def no_hint(x) -> None:  # type: ignore[no-untyped-def]
    """Do."""


def spread(*x: int) -> None:
    """Do."""


def positional(x: int, /) -> None:
    """Do."""


def silent(x: int) -> None: ...


def übel(x: int) -> None:
    """Do."""


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (no_hint, "no_hint.x has no type hint."),
        (spread, "spread.x cannot be given by its name"),
        (positional, "positional.x cannot be given by its name"),
        (silent, "silent has no docstring"),
        (übel, "name: A name is a letter or _ followed by"),
        (lambda: None, "<lambda> has no docstring"),
    ],
)
def test_a_function_that_cannot_be_a_tool_is_refused(function: Any, sentence: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        declare(function)
    assert str(refused.value).startswith(sentence)


def test_excluded_parameters_are_not_declared() -> None:
    declared = declare(everything, name="all", without=frozenset({"day", "item"}))
    assert declared.name == "all"
    assert declared.schema["required"] == ["text"]
    assert declared.validate({"text": "a"})["text"] == "a"


def test_the_declaration_is_sent_to_the_api() -> None:
    declaration = declare(taking(dict[str, int])).declaration
    assert isinstance(declaration, FunctionDeclaration)
    assert declaration.to_json() == {
        "name": "take",
        "description": "Take it.",
        "parametersJsonSchema": {
            "type": "object",
            "properties": {"x": {"type": "object", "additionalProperties": INTEGER}},
            "required": ["x"],
            "additionalProperties": False,
        },
    }


def test_arguments_nested_too_deeply_are_invalid() -> None:
    deep: list[Any] = []
    deep.append(deep)
    with pytest.raises(ToolError, match="Not run: "):
        declare(taking(Order)).validate({"x": {"items": deep, "next": deep}})


def test_rest_docstrings_are_parsed() -> None:
    def each(one: int, two: int) -> None:
        """Do each.

        :param one: the first
        :param int two: the second,
            of two
        :returns: nothing
        """

    docs = parse_docstring(each)
    assert docs.text == "Do each."
    assert docs.arguments == {"one": "the first", "two": "the second, of two"}
