"""What all typed declarations share: google-genai's own models, held to what providers accept.

A class here *is* one of google-genai: it has its fields and its JSON, and can be handed to ADK. It
differs in what it refuses, and in how: with one sentence that names the place.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

from google.genai import types
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticSerializationError, to_jsonable_python

from sluicegate.errors import DeclarationError

if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Self

_Enum = TypeVar("_Enum", bound=str)

_AS_THEY_ARE: Final = frozenset({"additional_properties", "default", "example"})
"""Fields of a schema that hold any JSON."""
# The enums of google-genai look for words alone, and fail at anything else.
_REFUSED: Final = (ValidationError, RecursionError, AttributeError)

_LONGEST: Final = 300
"""Characters of a place in a sentence."""

_CONVERTED: Final = (
    types.FunctionCall,
    types.FunctionDeclaration,
    types.FunctionResponse,
    types.GoogleSearch,
    types.Part,
    types.Schema,
    types.Tool,
)


class Declared(BaseModel):
    """Reads, refuses and converts; the class of google-genai stands beside it as a base.

    Raises:
        DeclarationError: what it is made of cannot be used; the sentence begins with the place.
    """

    def __init__(self, **data: Any) -> None:
        """Check the fields, by either of their names: ``any_of`` or ``anyOf``."""
        try:
            super().__init__(**data)
        except _REFUSED as error:
            raise DeclarationError(describe_problem(type(self).__name__, error)) from None

    # Pydantic calls the own __init__ of a class for every nested object unless it is marked as one
    # that adds nothing; then the place in the sentence would end at the nested object.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    @classmethod
    def read(cls, value: object) -> Self:
        """Read JSON, or an object of google-genai.

        Raises:
            DeclarationError: it cannot be used.
        """
        try:
            return cls.model_validate(plain(value))
        except _REFUSED as error:
            raise DeclarationError(describe_problem(cls.__name__, error)) from None

    def to_genai(self) -> Any:
        """The same as an object of google-genai's own class, nothing added and nothing left out."""
        (base,) = (each for each in type(self).__bases__ if each in _CONVERTED)
        return base.model_validate(plain(self))

    def to_json(self) -> dict[str, Any]:
        """As the API has it: its own names in camelCase, those of properties as they are."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_unset=True)


def plain(value: object) -> object:
    """The fields of an object of google-genai that are set, all the way down; JSON as it is."""
    if isinstance(value, _CONVERTED):
        # What others leave open stays open; only who writes JSON has to say it.
        open_type = {"type": None} if isinstance(value, types.Schema) else {}
        return open_type | {
            name: each if name in _AS_THEY_ARE else plain(each)
            for name, each in {**dict(value), **(value.model_extra or {})}.items()
            if name in value.model_fields_set and each is not None
        }
    if isinstance(value, list):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    return value


def describe_problem(what: str, error: Exception) -> str:
    """What is wrong and where, as one sentence; without a place, ``what`` is."""
    if isinstance(error, RecursionError):
        return f"{what}: It is nested too deep."
    if not isinstance(error, ValidationError):
        return f"{what}: One of its words is none that is known."
    first = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(step) for step in first["loc"]) or what
    # Names in it come from anywhere.
    place = "".join(c if c.isprintable() else " " for c in place[:_LONGEST])
    return f"{place}: {first['msg'].removeprefix('Value error, ')}."


def one_of(value: object, known: Collection[_Enum]) -> object:
    """Refuse a word that google-genai would take with a warning and pass on.

    Raises:
        ValueError: it is none of the known ones.
    """
    if value is not None and not (isinstance(value, str) and value in known):
        raise ValueError(f"Input should be one of {', '.join(sorted(known))}")
    return value


TYPES: Final = frozenset(
    {"ARRAY", "BOOLEAN", "INTEGER", "NULL", "NUMBER", "OBJECT", "STRING", "TYPE_UNSPECIFIED"}
)

_Type = Annotated[types.Type | None, BeforeValidator(lambda value: one_of(value, TYPES))]


class Schema(Declared, types.Schema):
    """What a value may be.

    ``type`` is said, unless ``any_of`` or ``ref`` says it; None leaves it open. The keys of
    ``properties`` are names of the tool's and never change their case (S1-R13).

    Raises:
        DeclarationError: no type, an array without ``items``, a required property that is none.
    """

    type: _Type
    # Lists and mappings of google-genai's own schemas are what the base has.
    properties: dict[str, Schema] | None = None  # type: ignore[assignment]
    items: Schema | None = None
    any_of: list[Schema] | None = None  # type: ignore[assignment]
    defs: dict[str, Schema] | None = None  # type: ignore[assignment]

    @model_validator(mode="before")
    @classmethod
    def _type_may_be_elsewhere(cls, value: Any) -> Any:
        if isinstance(value, dict) and any(
            value.get(name) is not None for name in ("any_of", "anyOf", "ref")
        ):
            return {"type": None, **value}
        return value

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.type == types.Type.ARRAY and self.items is None:
            raise ValueError("An array needs items")
        known = set(self.properties or ())
        missing = next((name for name in self.required or () if name not in known), None)
        if self.properties is not None and missing is not None:
            raise ValueError(f"The required {missing!r} is not among the properties")
        return self


_Name = Annotated[str, StringConstraints(min_length=1)]
_SCHEDULES: Final = frozenset({"INTERRUPT", "SCHEDULING_UNSPECIFIED", "SILENT", "WHEN_IDLE"})
_Scheduling = Annotated[
    types.FunctionResponseScheduling | None,
    BeforeValidator(lambda value: one_of(value, _SCHEDULES)),
]


class FunctionCall(Declared, types.FunctionCall):
    """What a model asks for; ``id`` tells calls of the same tool apart (S1-R40).

    Arguments that are missing are none, and those in a string are read (S1-R14).

    Raises:
        DeclarationError: no name, or arguments that are no object.
    """

    name: _Name
    args: dict[str, Any] = Field(default_factory=dict)

    @field_validator("args", mode="before")
    @classmethod
    def _may_be_a_string(cls, value: Any) -> Any:
        if value is None:
            return {}
        if isinstance(value, str):
            try:
                return json.loads(value)
            except (ValueError, RecursionError):
                raise ValueError("Input should be JSON") from None
        return value


class FunctionResponse(Declared, types.FunctionResponse):
    """The answer to a call, under its name and id (S1-R09).

    Raises:
        DeclarationError: no name, or a response that is no object.
    """

    name: _Name
    response: dict[str, Any]
    scheduling: _Scheduling = None

    @classmethod
    def to(cls, call: types.FunctionCall, result: object) -> Self:
        """Answer a call; what is no mapping stands under ``result``, as in ADK (S1-R27).

        Raises:
            DeclarationError: the result is not JSON.
        """
        try:
            value = to_jsonable_python(result, inf_nan_mode="null")
        except (PydanticSerializationError, RecursionError, TypeError, ValueError):
            kind = type(result).__name__
            raise DeclarationError(f"{call.name}: A {kind} is no result in JSON.") from None
        return cls._for(call, value if isinstance(value, dict) else {"result": value})

    @classmethod
    def failed(cls, call: types.FunctionCall, sentence: str) -> Self:
        """Tell the model why a call brought nothing."""
        return cls._for(call, {"error": sentence})

    @classmethod
    def _for(cls, call: types.FunctionCall, response: dict[str, Any]) -> Self:
        own = {} if call.id is None else {"id": call.id}
        return cls.read({**own, "name": call.name, "response": response})


_PAYLOADS: Final = (
    "code_execution_result",
    "executable_code",
    "file_data",
    "function_call",
    "function_response",
    "inline_data",
    "text",
    "tool_call",
    "tool_response",
)


class Part(Declared, types.Part):
    """A piece of a message with one payload, and its thought signature where there is one.

    A kind that is not known stays as it is, instead of becoming an empty text (S1-R15).

    Raises:
        DeclarationError: it has no payload, or two, or one that cannot be used.
    """

    model_config = ConfigDict(extra="allow")

    function_call: FunctionCall | None = None
    function_response: FunctionResponse | None = None

    @model_validator(mode="after")
    def _has_one_payload(self) -> Self:
        found = [name for name in _PAYLOADS if getattr(self, name) is not None]
        if len(found) > 1:
            raise ValueError(f"A part holds one thing, not {' and '.join(found)}")
        if not self.model_fields_set:
            raise ValueError("A part holds something")
        return self

    def to_genai(self) -> types.Part:
        """The same as google-genai's own.

        Raises:
            DeclarationError: google-genai does not know this kind.
        """
        if self.model_extra:
            raise DeclarationError(
                f"{next(iter(self.model_extra))}: google-genai has no such part."
            )
        return types.Part.model_validate(super().to_genai())


FUNCTION_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
"""What model and page may call a tool (S1-R29)."""

_BEHAVIORS: Final = frozenset({"BLOCKING", "NON_BLOCKING", "UNSPECIFIED"})
_Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
_Behavior = Annotated[
    types.Behavior | None, BeforeValidator(lambda value: one_of(value, _BEHAVIORS))
]


class FunctionDeclaration(Declared, types.FunctionDeclaration):
    """A function as a model sees it (S1-R07).

    Arguments are described by ``parameters`` or by ``parameters_json_schema``; without either there
    are none. Both describe an object.

    Raises:
        DeclarationError: no usable name, no description, or arguments that are no object.
    """

    name: str
    description: _Text
    parameters: Schema | None = None
    response: Schema | None = None
    behavior: _Behavior = None

    @field_validator("name")
    @classmethod
    def _is_a_name(cls, value: str) -> str:
        if not FUNCTION_NAME.fullmatch(value):
            raise ValueError(
                "A name is a letter or _ followed by at most 63 letters, digits and _ . -"
            )
        return value

    @field_validator("parameters")
    @classmethod
    def _is_an_object(cls, value: Schema | None) -> Schema | None:
        if value is not None and value.type != types.Type.OBJECT:
            raise ValueError("The arguments of a function are an OBJECT")
        return value

    @field_validator("parameters_json_schema")
    @classmethod
    def _is_a_json_object(cls, value: Any) -> Any:
        if value is not None and not (isinstance(value, dict) and value.get("type") == "object"):
            raise ValueError("The arguments of a function are an object")
        return value

    @model_validator(mode="after")
    def _says_it_once(self) -> Self:
        if self.parameters is not None and self.parameters_json_schema is not None:
            raise ValueError("parameters and parametersJsonSchema exclude each other")
        return self


class Tool(Declared, types.Tool):
    """What a request offers the model (S1-R04): functions, a marker such as `GoogleSearch`.

    Kinds that only the provider knows are fields of google-genai's and pass unchanged (S1-R03).

    Raises:
        DeclarationError: two functions have the same name, or one cannot be used.
    """

    function_declarations: list[FunctionDeclaration] = []  # type: ignore[assignment]

    @field_validator("function_declarations")
    @classmethod
    def _have_own_names(cls, value: list[FunctionDeclaration]) -> list[FunctionDeclaration]:
        names = [declaration.name for declaration in value]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"There are two functions named {twice!r}")
        return value
