"""From a chunk to its JSON text, fast enough to do for every delta."""

from __future__ import annotations

import re
from functools import cache
from json import JSONEncoder
from json.encoder import encode_basestring as _quote
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from sluicegate.wire.chunks import chunk_for_major

if TYPE_CHECKING:
    from sluicegate.wire.chunks import BaseChunk, Major

_JSON: Final = JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_SUSPECT: Final = re.compile(r'"(?:__proto__|constructor)":')

_Null: TypeAlias = Literal["never", "when passed", "always"]
"""When a field that is None stands on the wire as null."""


def to_json(chunk: BaseChunk) -> str:
    """Return the chunk as compact JSON: ``type`` first, then what is there, in camelCase.

    The text can always be written as UTF-8 and the client's parser always accepts it: half of a
    surrogate pair becomes U+FFFD, and keys that the parser takes for an attack on prototypes
    (``__proto__``, a ``constructor`` that holds ``prototype``) are left out.

    Raises:
        ValueError: a number is not finite (T6), or a value contains itself.
        TypeError: a value is not JSON.
    """
    text, fields = _plan(type(chunk))
    values = chunk.__dict__
    for name, key, null in fields:
        value = values[name]
        if type(value) is str:
            text += key + _quote(value)
        elif value is None:
            if null == "always" or (null == "when passed" and name in chunk.model_fields_set):
                text += key + "null"
        elif value is True:
            text += key + "true"
        elif value is False:
            text += key + "false"
        else:
            text += key + _open(value)
    text += "}"
    return text if text.isascii() else _whole_characters(text)


@cache
def _plan(cls: type[BaseChunk]) -> tuple[str, tuple[tuple[str, str, _Null], ...]]:
    """Return how the text of a class begins and, for each further field, its name and key."""
    fields = dict(cls.model_fields)
    kind = fields.pop("type", None)
    if kind is None:
        raise TypeError(f"{cls.__name__} has no type and cannot be sent")
    head = '{"type":'
    plan: list[tuple[str, str, _Null]] = []
    if kind.is_required():
        plan.append(("type", "", "never"))
    else:
        head += _quote(str(kind.default))
    for name, field in fields.items():
        null: _Null = "never"
        if field.is_required():
            null = "always"
        elif name in cls.nullable:
            null = "when passed"
        plan.append((name, f',"{field.alias}":', null))
    return head, tuple(plan)


def _open(value: Any) -> str:
    text = _JSON.encode(value)
    return text if _SUSPECT.search(text) is None else _JSON.encode(_without_prototypes(value))


def _without_prototypes(value: Any) -> Any:
    """Copy a value without the keys for which the client ends the whole response."""
    if isinstance(value, dict):
        return {
            key: _without_prototypes(item)
            for key, item in value.items()
            if key != "__proto__"
            and not (key == "constructor" and isinstance(item, dict) and "prototype" in item)
        }
    if isinstance(value, list | tuple):
        return [_without_prototypes(item) for item in value]
    return value


def _whole_characters(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        # UTF-16 joins two halves of a pair that stand side by side; what stays alone is lost.
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


class EncodedChunk(NamedTuple):
    """The JSON text of a chunk.

    ``kind`` is its ``type``. ``text`` is for AI SDK 7, ``text_for_6`` for AI SDK 6: the same
    object for almost every chunk, None for one that a 6 client may not get.
    """

    kind: str
    text: str
    text_for_6: str | None

    @property
    def size(self) -> int:
        """Bytes of the text in UTF-8."""
        return len(self.text) if self.text.isascii() else len(self.text.encode())

    def text_for(self, major: Major) -> str | None:
        """Return the text for a client of this AI SDK major, None for one that may not get it."""
        return self.text if major == 7 else self.text_for_6


def encode_chunk(chunk: BaseChunk) -> EncodedChunk:
    """Encode a chunk for every client.

    Raises:
        ValueError: a number is not finite (T6), or a value contains itself.
        TypeError: a value is not JSON.
    """
    text = to_json(chunk)
    kind: str = chunk.type  # type: ignore[attr-defined]  # `encode` has looked
    fit = chunk_for_major(chunk, 6)
    if fit is chunk:
        return EncodedChunk(kind, text, text)
    return EncodedChunk(kind, text, None if fit is None else to_json(fit))
