"""Calls of tools and their answers, with ids and signatures (S1-R08 to S1-R10, S1-R43)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, Final

from google.genai import types
from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticSerializationError, to_jsonable_python

from sluicegate.errors import DeclarationError
from sluicegate.tools.declared import Declared, one_of

if TYPE_CHECKING:
    from typing import Self

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
