"""The frames of the AI SDK's ``WebSocketChatTransport``: one JSON object per text message.

A client sends ``send``, ``resume`` and ``abort``; the server sends ``start``, ``chunk``, ``end``,
``error`` and ``no-active`` under the ``requestId`` that the client chose. The heartbeat has its own
``requestId``: clients ignore frames of unknown requests.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias, TypeVar

from sluicegate.errors import Malformed, RequestError, TooLarge, Unknown
from sluicegate.wire import strict_json
from sluicegate.wire.encoding import to_json
from sluicegate.wire.ids import is_valid_id

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pydantic import JsonValue

    from sluicegate.wire.chunks import BaseChunk

MAX_REQUEST_ID: Final = 128
"""Characters of a ``requestId``."""

HEARTBEAT_ID: Final = "-"
"""The ``requestId`` of the heartbeat; requests may not use it."""

CLOSE_INVALID_PAYLOAD: Final = 1007
CLOSE_POLICY_VIOLATION: Final = 1008
CLOSE_TOO_LARGE: Final = 1009
"""Close codes of RFC 6455."""

_SHORT: Final = 64 * 1024
_BEGINNING: Final = 4 * 1024
_REQUEST_ID: Final = re.compile(rb'"requestId"\s*:\s*"((?:[^"\\]|\\.){1,1000})"')

_BODY_FIELDS: Final = ("id", "trigger", "messageId", "messages")
"""Fields of a ``send`` frame that belong to the body of ``POST /chat``."""


@dataclass(frozen=True, slots=True)
class SendFrame:
    """A chat request; ``body`` is the equivalent body of ``POST /chat``, not yet validated.

    ``size`` is that of the whole message in bytes.
    """

    request_id: str
    headers: Mapping[str, str]
    body: dict[str, JsonValue]
    size: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class ResumeFrame:
    """Requests the running message of a chat, from its first chunk.

    ``message_id``, from the body, names a message that may have ended; only live sockets use it.
    """

    request_id: str
    headers: Mapping[str, str]
    chat_id: str
    message_id: str | None = None


@dataclass(frozen=True, slots=True)
class AbortFrame:
    """The client has stopped reading the response to a request."""

    request_id: str


@dataclass(frozen=True, slots=True)
class InvalidFrame:
    """An invalid message; without a ``request_id`` to reply to, the socket is closed."""

    request_id: str | None
    error: RequestError
    close_code: int


ClientFrame: TypeAlias = SendFrame | ResumeFrame | AbortFrame | InvalidFrame


@dataclass(frozen=True, slots=True)
class StartFrame:
    """A resume was accepted; its chunks follow."""

    type: ClassVar[str] = "start"
    request_id: str


@dataclass(frozen=True, slots=True)
class ChunkFrame:
    """The next chunk of a response; ``sequence`` starts at 0 and has no gaps."""

    type: ClassVar[str] = "chunk"
    request_id: str
    sequence: int
    chunk: BaseChunk


@dataclass(frozen=True, slots=True)
class EndFrame:
    """The response is complete."""

    type: ClassVar[str] = "end"
    request_id: str


@dataclass(frozen=True, slots=True)
class ErrorFrame:
    """The request was refused, or its response failed: one public sentence and the error code."""

    type: ClassVar[str] = "error"
    request_id: str
    error_text: str
    code: str


@dataclass(frozen=True, slots=True)
class NoActiveFrame:
    """The chat has no running message to resume."""

    type: ClassVar[str] = "no-active"
    request_id: str


@dataclass(frozen=True, slots=True)
class HeartbeatFrame:
    """A heartbeat for scripts, which cannot see the pings of the WebSocket protocol."""

    type: ClassVar[str] = "heartbeat"
    request_id: str = HEARTBEAT_ID


ServerFrame: TypeAlias = (
    StartFrame | ChunkFrame | EndFrame | ErrorFrame | NoActiveFrame | HeartbeatFrame
)

Extension = TypeVar("Extension")

Loads: TypeAlias = "Callable[[bytes], JsonValue]"
"""Parses JSON as strictly as `strict_json.loads`; it may refuse what is too large."""

_KEYS: Final = {"request_id": "requestId", "error_text": "errorText", "code": "code"}


def encode_frame(frame: ServerFrame) -> str:
    """Return the text of a frame.

    Raises:
        ValueError: A number in the chunk is not finite (T6), or a value contains itself.
        TypeError: A value in the chunk is not JSON.
    """
    if isinstance(frame, ChunkFrame):
        return ChunkFrameEncoder(frame.request_id, frame.sequence).encode(to_json(frame.chunk))
    members = {_KEYS[each.name]: getattr(frame, each.name) for each in fields(frame)}
    # ASCII keeps a requestId with a lone surrogate unchanged.
    return json.dumps({"type": frame.type, **members}, separators=(",", ":"))


class ChunkFrameEncoder:
    """Encodes the ``chunk`` frames of one response, in order, from chunks that are encoded already.

    ``sequence`` is that of the first frame.
    """

    def __init__(self, request_id: str, sequence: int = 0) -> None:
        self._head = f'{{"type":"chunk","requestId":{json.dumps(request_id)},"sequence":'
        self._sequence = sequence

    def encode(self, chunk: str) -> str:
        """Return the text of the next frame."""
        text = f'{self._head}{self._sequence},"chunk":{chunk}}}'
        self._sequence += 1
        return text


def parse_frame(data: bytes, loads: Loads = strict_json.loads) -> ClientFrame:
    """Parse one message of a client.

    The chat request in a ``send`` is not validated here. The names in ``headers`` become lower
    case.
    """
    return parse_extended_frame(data, lambda _, __: None, loads)


def parse_extended_frame(
    data: bytes,
    parse_extension: Callable[[dict[str, Any], str], Extension | None],
    loads: Loads = strict_json.loads,
) -> ClientFrame | Extension:
    """Parse one message of a protocol that adds frames of its own to those of the AI SDK.

    ``parse_extension`` receives the JSON object and its ``requestId``. It returns None for a frame
    of the AI SDK, and raises RequestError for an invalid frame of its own.
    """
    try:
        value = loads(data)
    except TooLarge as error:
        return InvalidFrame(find_request_id(data), error, CLOSE_TOO_LARGE)
    except Malformed as error:
        return InvalidFrame(_id_of_invalid(data, error), error, CLOSE_INVALID_PAYLOAD)
    request_id = _request_id(value)
    if not isinstance(value, dict) or request_id is None:
        sentence = f"A frame needs a requestId, a string of 1 to {MAX_REQUEST_ID} characters."
        return InvalidFrame(None, Malformed(sentence), CLOSE_POLICY_VIOLATION)
    try:
        return parse_extension(value, request_id) or _parse(value, request_id, len(data))
    except RequestError as error:
        return InvalidFrame(request_id, error, CLOSE_POLICY_VIOLATION)


def find_request_id(data: bytes) -> str | None:
    """Return the ``requestId`` near the beginning of a message that is cut off or not valid.

    The stock transport writes it after the type.
    """
    match = _REQUEST_ID.search(data[:_BEGINNING])
    if match is None:
        return None
    try:
        found = json.loads(b'"%b"' % match[1])
    except ValueError:
        return None
    return found if len(found) <= MAX_REQUEST_ID else None


def _parse(frame: dict[str, Any], request_id: str, size: int) -> ClientFrame:
    match frame.get("type"):
        case "abort":
            return AbortFrame(request_id)
        case "resume" | "send" if request_id == HEARTBEAT_ID:
            raise Malformed("The requestId - is the heartbeat's; choose another one.")
        case "resume":
            _check_last_sequence(frame)
            message_id = _object(frame, "body").get("messageId")
            return ResumeFrame(
                request_id,
                _headers(frame),
                _chat_id(frame),
                message_id if is_valid_id(message_id) else None,
            )
        case "send":
            body = dict(_object(frame, "body"))
            body.update({name: frame[name] for name in _BODY_FIELDS if name in frame})
            return SendFrame(request_id, _headers(frame), body, size)
    raise Malformed("The type of a frame must be send, resume or abort.")


def _request_id(value: object) -> str | None:
    request_id = value.get("requestId") if isinstance(value, dict) else None
    if isinstance(request_id, str) and 0 < len(request_id) <= MAX_REQUEST_ID:
        return request_id
    return None


def _id_of_invalid(data: bytes, error: Malformed) -> str | None:
    if isinstance(error, strict_json.NotUtf8):
        # RFC 6455 wants the socket closed.
        return None
    return _request_id(_parse_leniently(data)) if len(data) <= _SHORT else find_request_id(data)


def _parse_leniently(data: bytes) -> object:
    """Parse JSON that `strict_json` refuses, to learn its ``requestId`` for the reply."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _object(frame: dict[str, Any], name: str) -> dict[str, Any]:
    value = frame.get(name, {})
    if not isinstance(value, dict):
        raise Malformed(f"The {name} of a frame must be an object.")
    return value


def _headers(frame: dict[str, Any]) -> dict[str, str]:
    headers = _object(frame, "headers")
    if not all(isinstance(value, str) for value in headers.values()):
        raise Malformed("The headers of a frame must be strings.")
    return {name.lower(): value for name, value in headers.items()}


def _chat_id(frame: dict[str, Any]) -> str:
    chat_id = frame.get("id")
    if not isinstance(chat_id, str):
        raise Malformed("A resume needs the id of the chat.")
    if not is_valid_id(chat_id):
        raise Unknown
    return chat_id


def _check_last_sequence(frame: dict[str, Any]) -> None:
    """Refuse an invalid ``lastSequence``; a valid one is ignored, since a resume starts at 0."""
    if "lastSequence" not in frame:
        return
    last = frame["lastSequence"]
    if type(last) is not int or not 0 <= last < strict_json.MAX_INTEGER:
        raise Malformed("The lastSequence of a resume must be a whole number from 0; leave it out.")
