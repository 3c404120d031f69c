"""Chunks as JSON text, encoded once for every reader, and as server-sent events."""

from __future__ import annotations

import re
from functools import cache
from json import JSONEncoder
from json.encoder import encode_basestring as _quote
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from sluicegate.wire.chunks import chunk_for_major

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sluicegate.wire.chunks import BaseChunk, Major

_JSON: Final = JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_PROTOTYPE_KEY: Final = re.compile(r'"(?:__proto__|constructor)":')

_Null: TypeAlias = Literal["never", "when passed", "always"]
"""When a field that is None is encoded as null."""


def to_json(chunk: BaseChunk) -> str:
    """Return the chunk as compact JSON: ``type`` first, then the fields that are set, in camelCase.

    The text is always valid UTF-8 and the client's parser always accepts it: a lone surrogate
    becomes U+FFFD, and keys that the parser rejects as prototype pollution (``__proto__``, a
    ``constructor`` that holds ``prototype``) are left out.

    Raises:
        ValueError: A number is not finite (T6), or a value contains itself.
        TypeError: A value is not JSON.
    """
    text, fields = _layout(type(chunk))
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
            text += key + _json(value)
    text += "}"
    return text if text.isascii() else _replace_lone_surrogates(text)


@cache
def _layout(cls: type[BaseChunk]) -> tuple[str, tuple[tuple[str, str, _Null], ...]]:
    """Return how the text of a class begins, and the name and the key of each further field."""
    fields = dict(cls.model_fields)
    kind = fields.pop("type", None)
    if kind is None:
        raise TypeError(f"{cls.__name__} has no type and cannot be sent")
    head = '{"type":'
    layout: list[tuple[str, str, _Null]] = []
    if kind.is_required():
        layout.append(("type", "", "never"))
    else:
        head += _quote(str(kind.default))
    for name, field in fields.items():
        null: _Null = "never"
        if field.is_required():
            null = "always"
        elif name in cls.nullable:
            null = "when passed"
        layout.append((name, f',"{field.alias}":', null))
    return head, tuple(layout)


def _json(value: Any) -> str:
    text = _JSON.encode(value)
    return text if _PROTOTYPE_KEY.search(text) is None else _JSON.encode(_without_prototypes(value))


def _without_prototypes(value: Any) -> Any:
    """Copy a value without the keys at which the client ends the response."""
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


def _replace_lone_surrogates(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        # UTF-16 joins two surrogates that are adjacent and form a pair; the others are replaced.
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


class EncodedChunk(NamedTuple):
    """The JSON text of a chunk.

    ``kind`` is its ``type``. ``text`` is for AI SDK 7 and ``text_for_6`` for AI SDK 6: the same
    object for almost every chunk, None for one that is not sent to clients of AI SDK 6.
    """

    kind: str
    text: str
    text_for_6: str | None

    @property
    def size(self) -> int:
        """The length of the text in UTF-8, in bytes."""
        return len(self.text) if self.text.isascii() else len(self.text.encode())

    def text_for(self, major: Major) -> str | None:
        """Return the text for clients of this AI SDK major; None if it is not sent to them."""
        return self.text if major == 7 else self.text_for_6


def encode_chunk(chunk: BaseChunk) -> EncodedChunk:
    """Encode a chunk for clients of both majors.

    Raises:
        ValueError: A number is not finite (T6), or a value contains itself.
        TypeError: A value is not JSON.
    """
    text = to_json(chunk)
    kind: str = chunk.type  # type: ignore[attr-defined]  # `to_json` checks it
    chunk_for_6 = chunk_for_major(chunk, 6)
    if chunk_for_6 is chunk:
        return EncodedChunk(kind, text, text)
    return EncodedChunk(kind, text, None if chunk_for_6 is None else to_json(chunk_for_6))


HEADERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "content-type": "text/event-stream",
        "cache-control": "no-cache",
        "x-accel-buffering": "no",
        "x-vercel-ai-ui-message-stream": "v1",
    }
)
"""The headers of the SSE response of a turn; proxies must not buffer it."""

DONE: Final = b"data: [DONE]\n\n"
"""The terminator, sent once as the last event (T3)."""


def encode_events(texts: Sequence[str]) -> bytes:
    """Return one event per encoded chunk, ready to be sent in one write."""
    return ("data: " + "\n\ndata: ".join(texts) + "\n\n").encode()
