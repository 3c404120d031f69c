"""What all typed declarations share: google-genai's own models, held to what providers accept.

A class here *is* one of google-genai: it has its fields and its JSON, and can be handed to ADK. It
differs in what it refuses, and in how: with one sentence that names the place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

from google.genai import types
from pydantic import BaseModel, ValidationError

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
            raise DeclarationError(problem(type(self).__name__, error)) from None

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
            raise DeclarationError(problem(cls.__name__, error)) from None

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


def problem(what: str, error: Exception) -> str:
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
