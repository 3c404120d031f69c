"""Results of tools that are more than JSON: text, data and files in any order (S0)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Final,
    Literal,
    NoReturn,
    TypeAlias,
    get_args,
)

from google.genai import types
from pydantic_core import (
    PydanticSerializationError,
    SchemaSerializer,
    core_schema,
    to_jsonable_python,
)

from sluicegate.errors import DetailError, DetailTypeError
from sluicegate.media.attachments_and_links import Attachment, Link, as_file_source
from sluicegate.media.base64_detection import looks_encoded
from sluicegate.media.file_inspection import check_media_type
from sluicegate.wire.stored_files import StoredFile

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, JsonValue

    from sluicegate.media.attachments_and_links import FileSource

Status: TypeAlias = Literal["success", "error", "denied", "pending"]
"""The outcome of a tool."""

Detail: TypeAlias = (
    str
    | Mapping[str, Any]
    | Attachment
    | types.Blob
    | types.FileData
    | types.Image
    | types.Part
    | Path
    | Link
    | StoredFile
)
"""Text, data, or a file."""

STATUSES: Final[tuple[str, ...]] = get_args(Status)
MAX_FILE_BYTES: Final = 20 * 1024 * 1024
"""Bytes of a file, by default (S4-R40)."""

MAX_FILES: Final = 10
"""Files in one result, by default."""


def _refuse_to_serialize(result: object) -> NoReturn:
    raise PydanticSerializationError(
        "A ToolResult is neither stored nor sent as it is: add sluicegate.media.MediaPlugin() to "
        "the plugins of the App or the Runner."
    )


_REFUSED: Final = core_schema.plain_serializer_function_ser_schema(_refuse_to_serialize)


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a tool, independent of the model that reads it.

    ``details`` are strings, mappings and files in any order. Strings are joined by line breaks;
    mappings are merged, and later values replace earlier ones (S0-R08, S0-R09); files keep their
    order.

    Raises:
        DetailError: A detail is not valid; the sentence names its path. It is a ``ValueError``.
        DetailTypeError: A detail has another type. It is a ``TypeError``, too.
    """

    # A value of type Any, as in a function response of ADK, is serialized by this attribute.
    __pydantic_serializer__: ClassVar = SchemaSerializer(
        core_schema.any_schema(serialization=_REFUSED)
    )

    details: Sequence[Detail] = ()
    status: Status = "success"

    def __post_init__(self) -> None:
        """Validate every detail, so that an error is raised in the tool's own code (S0-R20)."""
        if isinstance(self.details, str | bytes | Mapping) or not isinstance(
            self.details, Sequence
        ):
            raise DetailTypeError(f"details is a {type(self.details).__name__}, not a list")
        if self.status not in STATUSES:
            raise DetailError(f"status is not one of {', '.join(STATUSES)}")
        object.__setattr__(self, "details", tuple(self.details))
        for number, detail in enumerate(self.details):
            _check_detail(detail, f"details[{number}]")

    # ADK: it reads the schema of a function's return type, and logs a traceback without one.
    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: object, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        """Accept an instance unchanged, and refuse to serialize it."""
        return core_schema.is_instance_schema(cls, serialization=_REFUSED)

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Describe an object; its form depends on the model's family."""
        return {"type": "object"}

    @property
    def text(self) -> str:
        """All texts, joined by line breaks (S4-R08)."""
        return "\n".join(text for detail in self.details if (text := _text_of(detail)))

    @property
    def files(self) -> list[FileSource]:
        """The files in the order of ``details`` (S0-R12)."""
        return [file for detail in self.details if (file := as_file_source(detail)) is not None]

    @property
    def response(self) -> dict[str, JsonValue]:
        """The function response's payload: ``status``, ``text_result``, ``structured_result``."""
        response: dict[str, JsonValue] = {"status": self.status}
        if self.text:
            response["text_result"] = self.text
        structured: dict[str, JsonValue] = {}
        for detail in self.details:
            if isinstance(detail, Mapping):
                structured.update(to_jsonable_python(dict(detail), inf_nan_mode="null"))
        if structured:
            response["structured_result"] = structured
        return response

    def to_parts(self, *, name: str, id: str) -> list[types.Part]:
        """Return the response to call ``id`` of tool ``name``, followed by the files.

        It is for programs that call a model themselves; an agent's tools return the result.

        Raises:
            DetailError: The name or the id is empty, or a file cannot be read.
        """
        if not name or not id:
            raise DetailError("a function response needs the name and the id of its call")
        files = self.files
        if len(files) > MAX_FILES:
            raise DetailError(f"a result may have {MAX_FILES} files")
        response = types.FunctionResponse(id=id, name=name, response=self.response)
        return [types.Part(function_response=response), *(_part(file) for file in files)]


def _check_detail(detail: object, path: str) -> None:
    if isinstance(detail, str):
        _refuse_encoded(detail, path)
    elif isinstance(detail, Mapping):
        _check_json(detail, path)
    elif isinstance(detail, types.Part) and detail.text is not None:
        _refuse_encoded(detail.text, path)
    else:
        try:
            file = as_file_source(detail)
        except DetailError as error:
            raise type(error)(f"{path}: {error}") from None
        if file is None:
            kind = type(detail).__name__
            raise DetailTypeError(f"{path} is a {kind}: neither a text, nor a mapping, nor a file")


def _check_json(value: Mapping[str, Any], path: str) -> None:
    if not all(isinstance(key, str) for key in value):
        raise DetailTypeError(f"{path} has a key that is not a string")
    for key, item in value.items():
        try:
            plain = to_jsonable_python(item, inf_nan_mode="null", bytes_mode="utf8")
        except (PydanticSerializationError, ValueError, RecursionError):
            raise DetailTypeError(
                f"{path}.{key} is not JSON; return files as types.Blob or Attachment"
            ) from None
        if _holds_bytes(item):
            raise DetailTypeError(
                f"{path}.{key} holds bytes; return them as types.Blob or Attachment"
            )
        for text in _texts(plain):
            _refuse_encoded(text, f"{path}.{key}")


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [text for item in value for text in _texts(item)] if isinstance(value, list) else []


def _holds_bytes(value: object, depth: int = 0) -> bool:
    if isinstance(value, bytes | bytearray | memoryview):
        return True
    if depth > 100:
        return False
    if isinstance(value, Mapping):
        return any(_holds_bytes(item, depth + 1) for item in value.values())
    if isinstance(value, list | tuple | set | frozenset):
        return any(_holds_bytes(item, depth + 1) for item in value)
    return False


def _refuse_encoded(text: str, path: str) -> None:
    """Refuse base64, which a model would read as text (S0-R15)."""
    if looks_encoded(text):
        raise DetailError(f"{path} holds a file in base64; return it as types.Blob or Attachment")


def _text_of(detail: object) -> str:
    if isinstance(detail, types.Part):
        return detail.text or ""
    return detail if isinstance(detail, str) else ""


def _part(file: FileSource) -> types.Part:
    match file:
        case StoredFile() | Link():
            return types.Part(
                file_data=types.FileData(file_uri=file.uri, mime_type=file.media_type)
            )
        case Attachment():
            data = file.data if file.data is not None else _read(file)
            if len(data) > MAX_FILE_BYTES:
                raise DetailError(f"a file may have {MAX_FILE_BYTES:,} bytes")
            media_type = file.media_type or check_media_type(data, None)
            # One of Google's two backends refuses a display name (S0-R13).
            return types.Part(inline_data=types.Blob(data=data, mime_type=media_type))


def _read(file: Attachment) -> bytes:
    try:
        data = Path(file.path or "").read_bytes()
    except (OSError, ValueError):
        raise DetailError("a file cannot be read") from None
    if not data:
        raise DetailError("a file is empty")
    return data
