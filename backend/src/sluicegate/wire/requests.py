"""What the server reads from a chat request; everything else in it is decoration.

The history that a client posts is never believed. Read are the last message if it is the user's,
or, of the one assistant message that the request continues, the answers to approvals and the
outputs of tools; who may answer what is decided elsewhere.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeGuard

from sluicegate.errors import Malformed, TooLarge
from sluicegate.wire.answers import (
    Answer,
    ClientOutput,
    PostedAssistant,
    PostedPart,
    Staged,
    parse_assistant,
)
from sluicegate.wire.files import FilePart, parse_file_part
from sluicegate.wire.limits import DEFAULT_LIMITS, RequestLimits, check_size
from sluicegate.wire.page_tools import PageTool, parse_page_tools

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import JsonValue

    from sluicegate.wire.messages import Part

__all__ = [
    "Answer",
    "ChatRequest",
    "ClientOutput",
    "FilePart",
    "PageTool",
    "PostedAssistant",
    "PostedPart",
    "RequestLimits",
    "Trigger",
    "UserMessage",
    "check_size",
    "is_id",
    "parse_chat_request",
]

Trigger: TypeAlias = Literal["submit-message", "regenerate-message"]

_READ: Final = ("id", "trigger", "messageId", "edits", "remember")
_ID: Final = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_ID_RULE: Final = "1 to 128 of the characters A-Z a-z 0-9 . _ : - and not . or .."


@dataclass(frozen=True)
class UserMessage:
    """A user's message under the client's id; ``texts`` holds the text parts that are not empty."""

    id: str
    texts: tuple[str, ...]
    files: tuple[FilePart, ...]

    @property
    def text(self) -> str:
        """The text parts, one below the other."""
        return "\n".join(self.texts)


@dataclass(frozen=True)
class ChatRequest:
    """One request; at most one of ``user_message`` and ``continued`` is there."""

    chat_id: str
    trigger: Trigger
    message_id: str | None
    user_message: UserMessage | None
    continued: PostedAssistant | None
    posted: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """The body ``{id, message}`` that says the same: what of it is read, as it came."""
    tools: tuple[PageTool, ...] = ()
    """What the page brings along for the turn."""


def is_id(value: object) -> TypeGuard[str]:
    """Whether this can be the id of a chat or a message: as every store and every path keeps it."""
    return isinstance(value, str) and bool(_ID.fullmatch(value)) and value not in (".", "..")


def parse_chat_request(
    body: JsonValue, limits: RequestLimits = DEFAULT_LIMITS, *, own_files: str | None = None
) -> ChatRequest:
    """Read the stock body ``{id, messages, trigger, messageId?}`` or ``{id, message}``.

    A missing trigger is ``submit-message``; a ``messageId`` of null is none.

    Args:
        body: JSON that `strict_json.loads` has accepted.
        limits: What is still accepted of the parts that are read, and which tools a page brings.
        own_files: What the URLs of the chat's own files begin with, ``{id}`` standing for the
            chat's id; None where files have no URLs.

    Raises:
        Malformed: the request is not one of the two bodies, or what is read of it is not clear.
        TooLarge: what is read of it is over a limit.
        UnsupportedMediaType: a file has a type in which browsers run scripts.
    """
    if not isinstance(body, dict):
        raise Malformed("The body is not a JSON object; send a chat request.")
    chat_id, message_id = body.get("id"), body.get("messageId")
    if not is_id(chat_id):
        raise Malformed(f"The chat's id must be {_ID_RULE}; start a new chat.")
    if message_id is not None and not is_id(message_id):
        raise Malformed(f"The messageId must be {_ID_RULE}; load the chat again.")
    trigger = _trigger(body.get("trigger", "submit-message"))
    messages = _messages(body)
    last = messages[-1]
    tools = parse_page_tools(body.get("tools"), limits)
    if last.get("role") == "user":
        own_prefix = None if own_files is None else own_files.replace("{id}", chat_id)
        user_message = _user_message(last, limits, own_prefix)
        posted = _posted(body, last, tools)
        return ChatRequest(chat_id, trigger, message_id, user_message, None, posted, tools)
    if last.get("role") != "assistant":
        raise Malformed("The last message is neither the user's nor the assistant's; remove it.")
    continued = next((item for item in messages if _is_assistant(item, message_id)), last)
    _read_message(last)
    staged = Staged(body.get("edits"), body.get("remember"))
    answered = parse_assistant(*_read_message(continued), limits, staged)
    posted = _posted(body, continued, tools)
    return ChatRequest(chat_id, trigger, message_id, None, answered, posted, tools)


def _posted(
    body: dict[str, Any], message: dict[str, Any], tools: tuple[PageTool, ...]
) -> dict[str, Any]:
    kept = {name: body[name] for name in _READ if body.get(name) is not None}
    if tools:
        kept["tools"] = {tool.name: body["tools"][tool.name] for tool in tools}
    return {**kept, "message": message}


def _trigger(value: JsonValue) -> Trigger:
    match value:
        case "submit-message" | "regenerate-message":
            return value
    raise Malformed("The trigger must be submit-message or regenerate-message; send one of them.")


def _messages(body: dict[str, Any]) -> list[dict[str, Any]]:
    messages = body["messages"] if "messages" in body else [body.get("message")]
    if (
        not isinstance(messages, list)
        or not messages
        or not all(isinstance(message, dict) for message in messages)
    ):
        raise Malformed("A chat request needs messages, a list of messages, or one message.")
    return messages


def _is_assistant(message: dict[str, Any], message_id: str | None) -> bool:
    return (
        message_id is not None
        and message.get("id") == message_id
        and message.get("role") == "assistant"
    )


def _read_message(message: dict[str, Any]) -> tuple[str, list[Part]]:
    """Return the id and the parts of a message that the server reads."""
    message_id, parts = message.get("id"), message.get("parts")
    if not is_id(message_id):
        raise Malformed(f"The id of the last message must be {_ID_RULE}; send it again.")
    if not isinstance(parts, list) or not all(
        isinstance(part, dict) and isinstance(part.get("type"), str) for part in parts
    ):
        raise Malformed("The last message needs parts, a list of objects with a type.")
    return message_id, parts


def _user_message(
    message: dict[str, Any], limits: RequestLimits, own_prefix: str | None
) -> UserMessage:
    message_id, parts = _read_message(message)
    if len(parts) > limits.parts:
        raise TooLarge(f"A message may have {limits.parts} parts; send it in several messages.")
    texts = [_text(part) for part in parts if part["type"] == "text"]
    files = [part for part in parts if part["type"] == "file"]
    if sum(map(len, texts)) > limits.user_text:
        raise TooLarge(f"A message may have {limits.user_text} characters; send a shorter one.")
    if len(files) > limits.files:
        raise TooLarge(f"A message may have {limits.files} files; send the others separately.")
    if not files and not any(text.strip() for text in texts):
        raise Malformed("The message is empty; write something or attach a file.")
    return UserMessage(
        message_id,
        tuple(text for text in texts if text),
        tuple(
            parse_file_part(part, max_bytes=limits.file_bytes, own_prefix=own_prefix)
            for part in files
        ),
    )


def _text(part: Part) -> str:
    text = part.get("text")
    if not isinstance(text, str):
        raise Malformed("A text part of the message has no text; write it again.")
    return text
