"""What all chunks share."""

from __future__ import annotations

from typing import Any, ClassVar, TypeAlias

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

ProviderMetadata: TypeAlias = dict[str, dict[str, Any]]
"""Metadata by provider name; the client refuses a flat record."""


class BaseChunk(BaseModel):
    """A chunk of any type. Fields cannot be set again and values are never coerced.

    An optional field that is None is not on the wire (T6), but for those in ``nullable``, whose
    null is a value: they are on the wire whenever they were passed.
    """

    model_config = ConfigDict(
        frozen=True,
        strict=True,
        extra="forbid",
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
    )

    nullable: ClassVar[frozenset[str]] = frozenset()
