"""The capabilities of models: a table with one row per family, which a user's file can extend (S3).

The row is found by the model's name alone, without a call to the provider.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from sluicegate.errors import ConfigurationError
from sluicegate.media.model_client_libraries import Route

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


_PUBLISHED: Final = re.compile(r"(?:projects/.+/)?publishers/[^/]+/models/(.+)")
_TUNED: Final = re.compile(r"projects/.+/endpoints/.+|tunedmodels/.+")
_VERSION: Final = re.compile(r"(@[\w.-]+|:[\w.-]+)$")


def _compiles(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"is not a regular expression ({error})") from None
    return pattern


Pattern: TypeAlias = Annotated[str, AfterValidator(_compiles)]
Count: TypeAlias = Annotated[int, Field(ge=1)]


class ModelCapabilities(BaseModel):
    """The capabilities of one family; the head of the table explains the fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    family: str
    models: tuple[Pattern, ...] = ()
    results: Literal["nested", "siblings", "message"] = "siblings"
    litellm: Literal["message", "native"] = "message"
    payload: Literal["status", "output", "text"] = "status"
    accepts: tuple[str, ...] = ()
    nested: tuple[str, ...] = ()
    nested_by: tuple[Route, ...] = ("genai", "vertex", "anthropic", "other")
    links: tuple[str, ...] = ()
    vertex_links: tuple[str, ...] = ()
    model_media: bool = False
    signatures: str = ""
    signs_calls: bool = False
    uploads: tuple[Literal["genai", "litellm", "anthropic"], ...] = ()
    uploaded: tuple[str, ...] = ("*/*",)
    max_upload_bytes: Count = 2_000_000_000
    max_upload_total_bytes: Count = 100_000_000_000
    max_file_bytes: Count = 20 * 1024 * 1024
    max_total_bytes: Count = 15_000_000
    max_files: Count = 100
    max_side: Count = 16_000
    max_pages: Count = 1_000


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    rows: tuple[ModelCapabilities, ...] = ()
    unknown: ModelCapabilities | None = None
    aliases: dict[str, str] = {}


class CapabilityTable:
    """The table; rows of earlier tables take precedence."""

    def __init__(self, *tables: _Table) -> None:
        self._rows = [
            (re.compile("|".join(f"(?:{pattern})" for pattern in row.models)), row)
            for table in tables
            for row in table.rows
        ]
        self._unknown = next(table.unknown for table in tables if table.unknown is not None)
        self._aliases = {
            normalise_model_name(name): model
            for table in reversed(tables)
            for name, model in table.aliases.items()
        }

    @classmethod
    def load(cls, path: str | None = None) -> CapabilityTable:
        """Read the built-in table, and optionally a file of the same format that precedes it.

        Raises:
            ConfigurationError: The file cannot be read; the sentence names the path of the field.
        """
        return cls(_built_in()) if path is None else cls(_read(path), _built_in())

    def row(self, model: str | None) -> ModelCapabilities:
        """Return the row of a model, by any of its names (S3-R25)."""
        name = normalise_model_name(model)
        name = normalise_model_name(self._aliases.get(name, name))
        for pattern, row in self._rows:
            if pattern.fullmatch(name):
                return row
        return self._unknown


def nests_media(model: str | None, route: Route) -> bool:
    """Whether a model reads files in function responses that a client sends (S3-R01 to S3-R04)."""
    row = CapabilityTable.load().row(model)
    return row.results == "nested" and route in row.nested_by


def normalise_model_name(model: str | None) -> str:
    """Return a model's name without provider, path and version.

    It is empty for tuned models, whose id does not name their base model.
    """
    name = (model or "").strip().lower()
    if _TUNED.fullmatch(name):
        return ""
    published = _PUBLISHED.fullmatch(name)
    name = published[1] if published else name
    is_fine_tuned = name.startswith("ft:")
    name = name.rpartition("/")[2]
    return name if is_fine_tuned else _VERSION.sub("", name)


@cache
def _built_in() -> _Table:
    text = files("sluicegate.media").joinpath("capabilities.yaml").read_text("utf-8")
    return _Table.model_validate(yaml.safe_load(text))


def _read(path: str) -> _Table:
    try:
        data: Any = yaml.safe_load(Path(path).read_text("utf-8"))
    except (OSError, UnicodeDecodeError):
        raise ConfigurationError(f"The table of models {path!r} cannot be read.") from None
    except yaml.YAMLError:
        raise ConfigurationError(f"The table of models {path!r} is not YAML or JSON.") from None
    try:
        return _Table.model_validate(data)
    except ValidationError as error:
        raise ConfigurationError(_sentence(path, error.errors()[0])) from None


def _sentence(path: str, detail: ErrorDetails) -> str:
    field = ".".join(str(part) for part in detail["loc"]) or "its top"
    reason = detail["msg"].removeprefix("Value error, ")
    reason = f"{reason[:1].lower()}{reason[1:]}"
    return f"The table of models {path!r} cannot be used at {field}: {reason}."
