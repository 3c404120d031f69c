"""Files and words as LiteLLM hands them to a provider: blocks of a message (S4)."""

from __future__ import annotations

import binascii
import json
from typing import TYPE_CHECKING, Any, Final

from sluicegate.media.selection import is_status_shape

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SOUND: Final = {"mpeg": "mp3", "x-wav": "wav", "wave": "wav", "vnd.wave": "wav"}
_PIECE: Final = 3 * 64 * 1024
TOKEN_KEY: Final = "sluicegate"
"""The only key of a function response that stands for blocks."""


def data_url(data: bytes, media_type: str) -> str:
    """A file as a URL that holds it; made in pieces, so that memory holds it once more, not thrice.

    A piece is a multiple of three bytes, which base64 writes without padding.
    """
    url = bytearray(f"data:{media_type};base64,".encode("ascii", "replace"))
    for start in range(0, len(data), _PIECE):
        url += binascii.b2a_base64(data[start : start + _PIECE], newline=False)
    return url.decode("ascii")


def file_block(media_type: str, url: str, title: str | None) -> dict[str, Any]:
    """One file as a block of a message."""
    kind, _, subtype = media_type.partition("/")
    if kind == "image":
        return {"type": "image_url", "image_url": {"url": url}}
    if kind == "audio":
        sound = {"data": url.partition(",")[2], "format": _SOUND.get(subtype, subtype)}
        return {"type": "input_audio", "input_audio": sound}
    if kind == "video":
        return {"type": "video_url", "video_url": {"url": url}}
    name = title or f"document.{subtype.rpartition('.')[2]}"
    return {"type": "file", "file": {"filename": name, "file_data": url}}


def result_text(response: Mapping[str, Any], statuses: Sequence[str]) -> str:
    """A result as the text of a tool's message: its words as they are, its data as JSON."""
    rest = dict(response)
    own = {key: value for key, value in rest.items() if not key.startswith("attachments")}
    if not is_status_shape(own, statuses):
        return json.dumps(rest, ensure_ascii=False)
    lines = [rest.pop("text_result", "")]
    status = rest.pop("status")
    if status != "success":
        lines.insert(0, f"Status: {status}")
    if "structured_result" in rest:
        lines.append(json.dumps(rest.pop("structured_result"), ensure_ascii=False))
    lines.extend(rest.pop(key) for key in ("attachments_note", "note") if key in rest)
    if rest:
        lines.append(json.dumps(rest, ensure_ascii=False))
    return "\n".join(line for line in lines if line) or "Done."


def decode_text(data: bytes) -> str:
    """The characters of a text file, whatever alphabet it is in."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def insert_blocks(
    messages: Sequence[Any], blocks: Mapping[str, Sequence[Mapping[str, Any]]]
) -> list[Any]:
    """Messages with blocks in the place of tokens; what is handed in is not changed (S4-R14)."""
    return [_with_blocks(message, blocks) for message in messages]


def _with_blocks(message: Any, blocks: Mapping[str, Sequence[Mapping[str, Any]]]) -> Any:
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, str):
        token = _token_in(content)
        if token in blocks:
            own = [dict(block) for block in blocks[token]]
            # A lone text stays a string, which every provider takes.
            only = own[0]["text"] if len(own) == 1 and own[0]["type"] == "text" else own
            return {**message, "content": only}
        return message
    if isinstance(content, list):
        fresh: list[Any] = []
        for block in content:
            text = block.get("text") if isinstance(block, dict) else None
            fresh.extend(blocks[text] if isinstance(text, str) and text in blocks else [block])
        return {**message, "content": fresh}
    return message


def _token_in(content: str) -> str:
    """The token that a message consists of, be it bare or the JSON of a function response."""
    if not content.startswith("{") or len(content) > 200:
        return content
    try:
        found = json.loads(content)
    except ValueError:
        return content
    return (
        str(found[TOKEN_KEY]) if isinstance(found, dict) and set(found) == {TOKEN_KEY} else content
    )
