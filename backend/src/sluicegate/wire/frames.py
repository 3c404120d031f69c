"""The frames of the AI SDK's ``WebSocketChatTransport``: one JSON object per message, as text.

In come ``send``, ``resume`` and ``abort``; out go ``start``, ``chunk``, ``end``, ``error`` and
``no-active``, each under the ``requestId`` that the client chose. The heartbeat has a ``requestId``
of its own: clients ignore frames of requests they do not know.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias, TypeVar

from sluicegate.errors import Malformed, RequestError, Unknown
from sluicegate.wire import strict_json
from sluicegate.wire.encoding import to_json
from sluicegate.wire.requests import is_valid_id

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pydantic import JsonValue

    from sluicegate.wire.chunks import BaseChunk

Other = TypeVar("Other")

MAX_REQUEST_ID: Final = 128
"""Characters of a ``requestId``."""

HEARTBEAT_ID: Final = "-"
"""The ``requestId`` of the heartbeat; no request may have it."""

CLOSE_INVALID_PAYLOAD: Final = 1007
CLOSE_POLICY_VIOLATION: Final = 1008

_OF_THE_FRAME: Final = ("id", "trigger", "messageId", "messages")


@dataclass(frozen=True, slots=True)
class SendFrame:
    """A chat request; ``body`` is what ``POST /chat`` would have been sent."""

    request_id: str
    headers: Mapping[str, str]
    body: dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class ResumeFrame:
    """Asks for the running message of a chat, from its beginning.

    ``message_id``, from the body, asks for that one, which may have ended; only live sockets know.
    """

    request_id: str
    headers: Mapping[str, str]
    chat_id: str
    message_id: str | None = None


@dataclass(frozen=True, slots=True)
class AbortFrame:
    """The client does not read a request any more."""

    request_id: str


@dataclass(frozen=True, slots=True)
class InvalidFrame:
    """What is no frame. Without a ``request_id`` nobody can be told: the socket is closed."""

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
    """The next chunk of a request; ``sequence`` begins with 0 and has no gaps."""

    type: ClassVar[str] = "chunk"
    request_id: str
    sequence: int
    chunk: BaseChunk


@dataclass(frozen=True, slots=True)
class EndFrame:
    """The request has got all its chunks."""

    type: ClassVar[str] = "end"
    request_id: str


@dataclass(frozen=True, slots=True)
class ErrorFrame:
    """The request is refused or broken: one public sentence, and the code of the refusal."""

    type: ClassVar[str] = "error"
    request_id: str
    error_text: str
    code: str


@dataclass(frozen=True, slots=True)
class NoActiveFrame:
    """There is nothing to resume."""

    type: ClassVar[str] = "no-active"
    request_id: str


@dataclass(frozen=True, slots=True)
class HeartbeatFrame:
    """A sign of life for scripts, which cannot see the protocol's pings."""

    type: ClassVar[str] = "heartbeat"
    request_id: str = HEARTBEAT_ID


ServerFrame: TypeAlias = (
    StartFrame | ChunkFrame | EndFrame | ErrorFrame | NoActiveFrame | HeartbeatFrame
)

_KEYS: Final = {"request_id": "requestId", "error_text": "errorText", "code": "code"}


def encode_frame(frame: ServerFrame) -> str:
    """Return the message that carries a frame; a chunk is encoded once and stands in it as it is.

    Raises:
        ValueError: a number in the chunk is not finite (T6), or a value contains itself.
        TypeError: a value in the chunk is not JSON.
    """
    if isinstance(frame, ChunkFrame):
        return ChunkFrameEncoder(frame.request_id, frame.sequence).encode(to_json(frame.chunk))
    members = {_KEYS[field.name]: getattr(frame, field.name) for field in fields(frame)}
    # In ASCII, a requestId with half of a character comes back as it was.
    return json.dumps({"type": frame.type, **members}, separators=(",", ":"))


class ChunkFrameEncoder:
    """The ``chunk`` frames of one request, in order, around chunks that are encoded already."""

    def __init__(self, request_id: str, sequence: int = 0) -> None:
        """Take the sequence of the first frame."""
        self._head = f'{{"type":"chunk","requestId":{json.dumps(request_id)},"sequence":'
        self._sequence = sequence

    def encode(self, chunk: str) -> str:
        """Return the message that carries the next chunk."""
        text = f'{self._head}{self._sequence},"chunk":{chunk}}}'
        self._sequence += 1
        return text


def parse_frame(data: bytes) -> ClientFrame:
    """Read one message.

    The chat request in a ``send`` is not judged here, only that it is there to be judged; what a
    client says of itself in ``headers`` has lower-case names.
    """
    return parse_extended_frame(data, lambda _, __: None)


def parse_extended_frame(
    data: bytes, other: Callable[[dict[str, Any], str], Other | None]
) -> ClientFrame | Other:
    """Read one message that may be another frame: ``other`` is given it and its requestId.

    It returns None for what is no frame of its own, and raises RequestError for a bad one.
    """
    try:
        value = strict_json.loads(data)
    except Malformed as error:
        return InvalidFrame(_request_id(_as_javascript(data)), error, CLOSE_INVALID_PAYLOAD)
    request_id = _request_id(value)
    if not isinstance(value, dict) or request_id is None:
        sentence = f"A frame needs a requestId, a string of 1 to {MAX_REQUEST_ID} characters."
        return InvalidFrame(None, Malformed(sentence), CLOSE_POLICY_VIOLATION)
    try:
        return other(value, request_id) or _frame(value, request_id)
    except RequestError as error:
        return InvalidFrame(request_id, error, CLOSE_POLICY_VIOLATION)


def _frame(frame: dict[str, Any], request_id: str) -> ClientFrame:
    match frame.get("type"):
        case "abort":
            return AbortFrame(request_id)
        case "resume" | "send" if request_id == HEARTBEAT_ID:
            raise Malformed("The requestId - is the heartbeat's; choose another one.")
        case "resume":
            _check_sequence(frame)
            named = _object(frame, "body").get("messageId")
            message_id = named if is_valid_id(named) else None
            return ResumeFrame(request_id, _headers(frame), _chat_id(frame), message_id)
        case "send":
            body = dict(_object(frame, "body"))
            body.update({name: frame[name] for name in _OF_THE_FRAME if name in frame})
            return SendFrame(request_id, _headers(frame), body)
    raise Malformed("The type of a frame must be send, resume or abort.")


def _request_id(value: object) -> str | None:
    found = value.get("requestId") if isinstance(value, dict) else None
    if isinstance(found, str) and 0 < len(found) <= MAX_REQUEST_ID:
        return found
    return None


def _as_javascript(data: bytes) -> object:
    """Read JSON that is refused as other parsers do, to learn who is to be told."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _object(frame: dict[str, Any], name: str) -> dict[str, Any]:
    found = frame.get(name, {})
    if not isinstance(found, dict):
        raise Malformed(f"The {name} of a frame must be an object.")
    return found


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


def _check_sequence(frame: dict[str, Any]) -> None:
    """Refuse what is no sequence; one that is changes nothing, a resume begins at the beginning."""
    if "lastSequence" not in frame:
        return
    last = frame["lastSequence"]
    if type(last) is not int or not 0 <= last < strict_json.MAX_INTEGER:
        raise Malformed("The lastSequence of a resume must be a whole number from 0; leave it out.")
