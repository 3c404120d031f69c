"""What a value may be, in the words of the Gemini API (S1-R06)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

from google.genai import types
from pydantic import BeforeValidator, model_validator

from sluicegate.tools.declared import Declared, one_of

if TYPE_CHECKING:
    from typing import Self

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
