"""Typed declarations: google-genai's own models, restricted to what providers accept.

Each class is a subclass of google-genai's, with the same fields and the same JSON, so ADK accepts
it. It refuses more, with one sentence that names the path of the field.
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

_ANY_JSON_FIELDS: Final = frozenset({"additional_properties", "default", "example"})
"""Fields of a schema that hold any JSON."""

# google-genai's enums raise AttributeError for values that are not strings.
_INVALID: Final = (ValidationError, RecursionError, AttributeError)

_MAX_PATH: Final = 300
"""Characters of a path in a sentence."""

_GENAI_CLASSES: Final = (
    types.FunctionCall,
    types.FunctionDeclaration,
    types.FunctionResponse,
    types.GoogleSearch,
    types.Part,
    types.Schema,
    types.Tool,
)


class Declared(BaseModel):
    """Base of the declarations, beside the class of google-genai.

    Fields are accepted under both names, ``any_of`` and ``anyOf``.

    Raises:
        DeclarationError: A field is not valid; the sentence begins with its path.
    """

    def __init__(self, **data: Any) -> None:
        try:
            super().__init__(**data)
        except _INVALID as error:
            raise DeclarationError(describe_problem(type(self).__name__, error)) from None

    # Without the mark pydantic calls __init__ for every nested object, and the path in the sentence
    # begins at the nested object.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    @classmethod
    def read(cls, value: object) -> Self:
        """Validate JSON, or an object of google-genai.

        Raises:
            DeclarationError: It is not valid.
        """
        try:
            return cls.model_validate(plain(value))
        except _INVALID as error:
            raise DeclarationError(describe_problem(cls.__name__, error)) from None

    def to_genai(self) -> Any:
        """Convert to google-genai's own class; no field is added or left out."""
        (base,) = (each for each in type(self).__bases__ if each in _GENAI_CLASSES)
        return base.model_validate(plain(self))

    def to_json(self) -> dict[str, Any]:
        """Convert to the JSON of the API: camelCase, but the names of properties stay unchanged."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_unset=True)


def plain(value: object) -> object:
    """Convert objects of google-genai to their set fields, recursively; JSON stays unchanged."""
    if isinstance(value, _GENAI_CLASSES):
        # Objects of google-genai may leave the type open; JSON has to declare it.
        open_type = {"type": None} if isinstance(value, types.Schema) else {}
        return open_type | {
            name: each if name in _ANY_JSON_FIELDS else plain(each)
            for name, each in {**dict(value), **(value.model_extra or {})}.items()
            if name in value.model_fields_set and each is not None
        }
    if isinstance(value, list):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    return value


def describe_problem(root: str, error: Exception) -> str:
    """Return one sentence with the path and message of an error; ``root`` is the empty path."""
    if isinstance(error, RecursionError):
        return f"{root}: It is nested too deep."
    if not isinstance(error, ValidationError):
        return f"{root}: One of its words is none that is known."
    first = error.errors(include_url=False, include_input=False)[0]
    path = ".".join(str(step) for step in first["loc"]) or root
    # The path may hold keys that a model or a worker has chosen.
    path = "".join(c if c.isprintable() else " " for c in path[:_MAX_PATH])
    return f"{path}: {first['msg'].removeprefix('Value error, ')}."


def one_of(value: object, members: Collection[_Enum]) -> object:
    """Refuse an unknown enum member, which google-genai would accept with a warning.

    Raises:
        ValueError: The value is not a member.
    """
    if value is not None and not (isinstance(value, str) and value in members):
        raise ValueError(f"Input should be one of {', '.join(sorted(members))}")
    return value


TYPES: Final = frozenset(
    {"ARRAY", "BOOLEAN", "INTEGER", "NULL", "NUMBER", "OBJECT", "STRING", "TYPE_UNSPECIFIED"}
)

_Type = Annotated[types.Type | None, BeforeValidator(lambda value: one_of(value, TYPES))]


class Schema(Declared, types.Schema):
    """The schema of a value.

    ``type`` is required unless ``any_of`` or ``ref`` is set; None leaves it open. The keys of
    ``properties`` are names of the tool and never change their case (S1-R13).

    Raises:
        DeclarationError: The type is missing, an array has no ``items``, or a required property is
            not declared.
    """

    type: _Type
    # The base declares lists and mappings of google-genai's own schemas.
    properties: dict[str, Schema] | None = None  # type: ignore[assignment]
    items: Schema | None = None
    any_of: list[Schema] | None = None  # type: ignore[assignment]
    defs: dict[str, Schema] | None = None  # type: ignore[assignment]

    @model_validator(mode="before")
    @classmethod
    def _allow_missing_type(cls, value: Any) -> Any:
        if isinstance(value, dict) and any(
            value.get(name) is not None for name in ("any_of", "anyOf", "ref")
        ):
            return {"type": None, **value}
        return value

    @model_validator(mode="after")
    def _check_items_and_required(self) -> Self:
        if self.type == types.Type.ARRAY and self.items is None:
            raise ValueError("An array needs items")
        declared = set(self.properties or ())
        missing = next((name for name in self.required or () if name not in declared), None)
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
    """A call by a model; ``id`` distinguishes calls of the same tool (S1-R40).

    Missing arguments are an empty object, and arguments in a string are parsed (S1-R14).

    Raises:
        DeclarationError: The name is missing, or the arguments are not an object.
    """

    name: _Name
    args: dict[str, Any] = Field(default_factory=dict)

    @field_validator("args", mode="before")
    @classmethod
    def _parse_string(cls, value: Any) -> Any:
        if value is None:
            return {}
        if isinstance(value, str):
            try:
                return json.loads(value)
            except (ValueError, RecursionError):
                raise ValueError("Input should be JSON") from None
        return value


class FunctionResponse(Declared, types.FunctionResponse):
    """The response to a call, under its name and id (S1-R09).

    Raises:
        DeclarationError: The name is missing, or the response is not an object.
    """

    name: _Name
    response: dict[str, Any]
    scheduling: _Scheduling = None

    @classmethod
    def to(cls, call: types.FunctionCall, result: object) -> Self:
        """Respond to a call with its result, whatever it is, under ``result`` (S1-R27).

        Raises:
            DeclarationError: The result is not JSON.
        """
        try:
            value = to_jsonable_python(result, inf_nan_mode="null")
        except (PydanticSerializationError, RecursionError, TypeError, ValueError):
            kind = type(result).__name__
            raise DeclarationError(f"{call.name}: A {kind} is no result in JSON.") from None
        return cls._for(call, {"result": value})

    @classmethod
    def failed(cls, call: types.FunctionCall, sentence: str) -> Self:
        """Respond with an error, which the model reads."""
        return cls._for(call, {"error": sentence})

    @classmethod
    def _for(cls, call: types.FunctionCall, response: dict[str, Any]) -> Self:
        call_id = {} if call.id is None else {"id": call.id}
        return cls.read({**call_id, "name": call.name, "response": response})


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
    """A part of a message with at most one payload, and optionally a thought signature.

    An unknown kind of part stays unchanged instead of becoming an empty text (S1-R15).

    Raises:
        DeclarationError: It is empty, has several payloads, or one that is not valid.
    """

    model_config = ConfigDict(extra="allow")

    function_call: FunctionCall | None = None
    function_response: FunctionResponse | None = None

    @model_validator(mode="after")
    def _check_payload(self) -> Self:
        payloads = [name for name in _PAYLOADS if getattr(self, name) is not None]
        if len(payloads) > 1:
            raise ValueError(f"A part holds one thing, not {' and '.join(payloads)}")
        if not self.model_fields_set:
            raise ValueError("A part holds something")
        return self

    def to_genai(self) -> types.Part:
        """Convert to google-genai's own class.

        Raises:
            DeclarationError: google-genai has no such kind of part.
        """
        if self.model_extra:
            raise DeclarationError(
                f"{next(iter(self.model_extra))}: google-genai has no such part."
            )
        return types.Part.model_validate(super().to_genai())


FUNCTION_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
"""A valid name of a tool, for model and page (S1-R29)."""

_BEHAVIORS: Final = frozenset({"BLOCKING", "NON_BLOCKING", "UNSPECIFIED"})
_Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
_Behavior = Annotated[
    types.Behavior | None, BeforeValidator(lambda value: one_of(value, _BEHAVIORS))
]


class FunctionDeclaration(Declared, types.FunctionDeclaration):
    """The declaration of a function for a model (S1-R07).

    The arguments are described by ``parameters`` or by ``parameters_json_schema``, each of which
    describes an object; without either the function has no arguments.

    Raises:
        DeclarationError: The name is not valid, the description is missing, or the arguments are
            not an object.
    """

    name: str
    description: _Text
    parameters: Schema | None = None
    response: Schema | None = None
    behavior: _Behavior = None

    @field_validator("name")
    @classmethod
    def _check_name(cls, value: str) -> str:
        if not FUNCTION_NAME.fullmatch(value):
            raise ValueError(
                "A name is a letter or _ followed by at most 63 letters, digits and _ . -"
            )
        return value

    @field_validator("parameters")
    @classmethod
    def _check_parameters(cls, value: Schema | None) -> Schema | None:
        if value is not None and value.type != types.Type.OBJECT:
            raise ValueError("The arguments of a function are an OBJECT")
        return value

    @field_validator("parameters_json_schema")
    @classmethod
    def _check_json_schema(cls, value: Any) -> Any:
        if value is not None and not (isinstance(value, dict) and value.get("type") == "object"):
            raise ValueError("The arguments of a function are an object")
        return value

    @model_validator(mode="after")
    def _check_single_schema(self) -> Self:
        if self.parameters is not None and self.parameters_json_schema is not None:
            raise ValueError("parameters and parametersJsonSchema exclude each other")
        return self


class Tool(Declared, types.Tool):
    """The tools of a request (S1-R04): functions, or a built-in tool such as `GoogleSearch`.

    Tools that the provider runs are fields of google-genai's class and pass unchanged (S1-R03).

    Raises:
        DeclarationError: Two functions have the same name, or one is not valid.
    """

    function_declarations: list[FunctionDeclaration] = []  # type: ignore[assignment]

    @field_validator("function_declarations")
    @classmethod
    def _check_unique_names(cls, value: list[FunctionDeclaration]) -> list[FunctionDeclaration]:
        names = [declaration.name for declaration in value]
        duplicate = next((name for name in names if names.count(name) > 1), None)
        if duplicate is not None:
            raise ValueError(f"There are two functions named {duplicate!r}")
        return value
