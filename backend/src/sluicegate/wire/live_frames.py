"""The frames that a live socket adds to those of requests; each has the ``requestId`` ``live``.

Stock clients ignore them, as they ignore all frames of unknown requests.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, TypeAlias, get_args

from sluicegate.errors import Malformed, TooLarge
from sluicegate.wire import strict_json
from sluicegate.wire.file_parts import decode_base64
from sluicegate.wire.frames import parse_extended_frame

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sluicegate.wire.frames import ClientFrame, Loads

LIVE_ID: Final = "live"
"""The ``requestId`` of every frame here; requests may not use it."""

SUBPROTOCOL: Final = "sluicegate.live.v1"
"""A client that selects it sends and receives audio as binary messages."""

INPUT_RATE: Final = 16_000
OUTPUT_RATE: Final = 24_000
"""Samples per second, of 16 bits, little-endian, one channel."""

BYTES_PER_SECOND: Final = 2 * INPUT_RATE

IMAGE_TYPES: Final = ("image/jpeg", "image/png", "image/webp")

FinalApprovalState: TypeAlias = Literal["approved", "denied", "expired", "superseded"]


@dataclass(frozen=True, slots=True)
class ActivityFrame:
    """The user starts (``begins``) or ends an utterance."""

    begins: bool


@dataclass(frozen=True, slots=True)
class InterruptFrame:
    """The user interrupts the model."""


@dataclass(frozen=True, slots=True)
class ImageFrame:
    """An image for the model."""

    media_type: str
    data: bytes


LiveClientFrame: TypeAlias = ActivityFrame | InterruptFrame | ImageFrame


@dataclass(frozen=True, slots=True)
class ReadyFrame:
    """The live model is connected; rates are samples per second."""

    type: ClassVar[str] = "ready"
    input_rate: int = INPUT_RATE
    output_rate: int = OUTPUT_RATE


@dataclass(frozen=True, slots=True)
class TranscriptFrame:
    """The transcript of a message so far; ``final``: this section will not change."""

    type: ClassVar[str] = "transcript"
    message_id: str
    role: Literal["user", "assistant"]
    text: str
    final: bool


@dataclass(frozen=True, slots=True)
class TurnFrame:
    """A turn without a request can be read."""

    type: ClassVar[str] = "turn"
    message_id: str
    user_message_id: str


@dataclass(frozen=True, slots=True)
class ApprovalFrame:
    """An approval reached a final state."""

    type: ClassVar[str] = "approval"
    approval_id: str
    state: FinalApprovalState
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class InterruptedFrame:
    """The model's speech was interrupted."""

    type: ClassVar[str] = "interrupted"


@dataclass(frozen=True, slots=True)
class TurnCompleteFrame:
    """The model has completed its turn."""

    type: ClassVar[str] = "turn-complete"


@dataclass(frozen=True, slots=True)
class GoAwayFrame:
    """The model's provider will soon close the connection."""

    type: ClassVar[str] = "go-away"


LiveServerFrame: TypeAlias = (
    ReadyFrame
    | TranscriptFrame
    | TurnFrame
    | ApprovalFrame
    | InterruptedFrame
    | TurnCompleteFrame
    | GoAwayFrame
)

_KEYS: Final = {
    "input_rate": "inputRate",
    "output_rate": "outputRate",
    "message_id": "messageId",
    "user_message_id": "userMessageId",
    "approval_id": "approvalId",
}

_SERVER_FRAMES: Final[dict[str, type[LiveServerFrame]]] = {
    kind.type: kind for kind in get_args(LiveServerFrame)
}


def encode_live_frame(frame: LiveServerFrame) -> str:
    """Return the text of a frame."""
    return json.dumps(live_frame_members(frame), separators=(",", ":"))


def live_frame_members(frame: LiveServerFrame) -> dict[str, Any]:
    """Return the members of a frame's JSON object; a field that is None is left out (T6)."""
    members: dict[str, Any] = {"type": frame.type, "requestId": LIVE_ID}
    for field in fields(frame):
        value = getattr(frame, field.name)
        if value is not None:
            members[_KEYS.get(field.name, field.name)] = value
    return members


def parse_live_server_frame(members: Mapping[str, Any]) -> LiveServerFrame | None:
    """Return the frame with these members; None if there is no such frame."""
    kind = _SERVER_FRAMES.get(str(members.get("type")))
    if kind is None:
        return None
    keys = {field.name: _KEYS.get(field.name, field.name) for field in fields(kind)}
    values = {name: members[key] for name, key in keys.items() if key in members}
    try:
        return kind(**values)
    except TypeError:
        return None


def live_client_frame_members(frame: LiveClientFrame) -> dict[str, Any]:
    """Return the members of the JSON object that a client has sent."""
    members: dict[str, Any] = {"requestId": LIVE_ID}
    match frame:
        case ActivityFrame(begins=begins):
            members["type"] = "activity-start" if begins else "activity-end"
        case InterruptFrame():
            members["type"] = "interrupt"
        case ImageFrame(media_type=media_type, data=data):
            members |= {"type": "image", "mediaType": media_type}
            members["data"] = base64.b64encode(data).decode()
    return members


def parse_live_frame(
    data: bytes, *, max_image: int, loads: Loads = strict_json.loads
) -> ClientFrame | LiveClientFrame:
    """Parse one text message of a live socket; ``max_image`` is in bytes."""

    def parse_live(frame: dict[str, Any], request_id: str) -> LiveClientFrame | None:
        return _parse(frame, max_image) if request_id == LIVE_ID else None

    return parse_extended_frame(data, parse_live, loads)


def _parse(frame: dict[str, Any], max_image: int) -> LiveClientFrame:
    match frame.get("type"):
        case "activity-start":
            return ActivityFrame(begins=True)
        case "activity-end":
            return ActivityFrame(begins=False)
        case "interrupt":
            return InterruptFrame()
        case "image":
            return _parse_image(frame, max_image)
    raise Malformed(
        "With the requestId live, the type of a frame must be interrupt, activity-start, "
        "activity-end or image."
    )


def _parse_image(frame: dict[str, Any], max_image: int) -> ImageFrame:
    media_type, data = frame.get("mediaType"), frame.get("data")
    if media_type not in IMAGE_TYPES:
        raise Malformed(f"The mediaType of an image must be one of {', '.join(IMAGE_TYPES)}.")
    if not isinstance(data, str) or not data:
        raise Malformed("The data of an image must be base64.")
    if len(data) * 3 // 4 > max_image + 2:
        raise TooLarge(f"An image may have {max_image:,} bytes; send a smaller one.")
    try:
        decoded = decode_base64(data)
    except ValueError:
        raise Malformed("The data of an image must be base64.") from None
    if len(decoded) > max_image:
        raise TooLarge(f"An image may have {max_image:,} bytes; send a smaller one.")
    return ImageFrame(media_type, decoded)
