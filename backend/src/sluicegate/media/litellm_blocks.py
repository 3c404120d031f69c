"""Files and results as LiteLLM sends them to a provider: the blocks of a message (S4)."""

from __future__ import annotations

import binascii
import json
from typing import TYPE_CHECKING, Any, Final

from sluicegate.media.file_selection import is_status_shape

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_AUDIO_FORMATS: Final = {"mpeg": "mp3", "x-wav": "wav", "wave": "wav", "vnd.wave": "wav"}
_SLICE: Final = 3 * 64 * 1024
TOKEN_KEY: Final = "sluicegate"
"""The only key of a function response whose value is a token for blocks."""


def data_url(data: bytes, media_type: str) -> str:
    """Encode a file as a data URL, in slices, so that only one copy of it is in memory.

    A slice is a multiple of three bytes, which base64 encodes without padding.
    """
    url = bytearray(f"data:{media_type};base64,".encode("ascii", "replace"))
    for start in range(0, len(data), _SLICE):
        url += binascii.b2a_base64(data[start : start + _SLICE], newline=False)
    return url.decode("ascii")


def file_block(media_type: str, url: str, title: str | None) -> dict[str, Any]:
    """Return the block of a file."""
    kind, _, subtype = media_type.partition("/")
    if kind == "image":
        return {"type": "image_url", "image_url": {"url": url}}
    if kind == "audio":
        audio = {"data": url.partition(",")[2], "format": _AUDIO_FORMATS.get(subtype, subtype)}
        return {"type": "input_audio", "input_audio": audio}
    if kind == "video":
        return {"type": "video_url", "video_url": {"url": url}}
    name = title or f"document.{subtype.rpartition('.')[2]}"
    return {"type": "file", "file": {"filename": name, "file_data": url}}


def uploaded_block(media_type: str, reference: str, *, litellm: bool) -> dict[str, Any]:
    """Return the block of a file that was uploaded: LiteLLM's, or Anthropic's own."""
    if litellm:
        return {"type": "file", "file": {"file_id": reference, "format": media_type}}
    kind = "image" if media_type.startswith("image/") else "document"
    return {"type": kind, "source": {"type": "file", "file_id": reference}}


def result_text(response: Mapping[str, Any], statuses: Sequence[str]) -> str:
    """Return a result as the text of a tool's message: its text unchanged, its data as JSON."""
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
    """Decode a text file: UTF-16 or UTF-8, or else Latin-1."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def insert_blocks(
    messages: Sequence[Any], blocks: Mapping[str, Sequence[Mapping[str, Any]]]
) -> list[Any]:
    """Replace tokens in copies of messages by their blocks (S4-R14)."""
    return [_insert_blocks(message, blocks) for message in messages]


def _insert_blocks(message: Any, blocks: Mapping[str, Sequence[Mapping[str, Any]]]) -> Any:
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, str):
        token = _token_in(content)
        if token in blocks:
            copies = [dict(block) for block in blocks[token]]
            # A single text stays a string, which every provider accepts.
            is_text = len(copies) == 1 and copies[0]["type"] == "text"
            return {**message, "content": copies[0]["text"] if is_text else copies}
        return message
    if isinstance(content, list):
        fresh: list[Any] = []
        for block in content:
            text = block.get("text") if isinstance(block, dict) else None
            fresh.extend(blocks[text] if isinstance(text, str) and text in blocks else [block])
        return {**message, "content": fresh}
    return message


def _token_in(content: str) -> str:
    """Return the token that a message consists of, bare or in the JSON of a function response."""
    if not content.startswith("{") or len(content) > 200:
        return content
    try:
        value = json.loads(content)
    except ValueError:
        return content
    is_token = isinstance(value, dict) and set(value) == {TOKEN_KEY}
    return str(value[TOKEN_KEY]) if is_token else content
