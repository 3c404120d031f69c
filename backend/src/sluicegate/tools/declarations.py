"""What a model is told of tools: functions, and the markers for what the provider runs itself."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Final

from google.genai import types
from google.genai.types import GoogleSearch
from pydantic import BeforeValidator, StringConstraints, field_validator, model_validator

from sluicegate.tools.declared import Declared, one_of
from sluicegate.tools.schema import Schema

if TYPE_CHECKING:
    from typing import Self

__all__ = ["FUNCTION_NAME", "FunctionDeclaration", "GoogleSearch", "Tool"]

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

    function_declarations: list[FunctionDeclaration] = []  # type: ignore[assignment]  # noqa: RUF012

    @field_validator("function_declarations")
    @classmethod
    def _have_own_names(cls, value: list[FunctionDeclaration]) -> list[FunctionDeclaration]:
        names = [declaration.name for declaration in value]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"There are two functions named {twice!r}")
        return value
