"""Chat requests: the stock bodies of the AI SDK's transports, their limits and the page's tools.

Only what the server uses is validated and limited; the rest counts against the size of the body.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from sluicegate.errors import Malformed, TooLarge
from sluicegate.wire.decisions import STAGED, StagedOptions
from sluicegate.wire.file_parts import FilePart, parse_file_part
from sluicegate.wire.ids import is_valid_id
from sluicegate.wire.limits import DEFAULT_LIMITS, RequestLimits, check_size
from sluicegate.wire.posted_assistant_message import PostedAssistantMessage, parse_assistant_message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import JsonValue

    from sluicegate.wire.ui_messages import Part

Trigger: TypeAlias = Literal["submit-message", "regenerate-message"]

_USED_FIELDS: Final = (
    "id",
    "trigger",
    "messageId",
    "edits",
    "remember",
    "payload",
    "digest",
    "response",
)
_ID_RULE: Final = "1 to 128 of the characters A-Z a-z 0-9 . _ : - and not . or .."


@dataclass(frozen=True)
class UserMessage:
    """A user's message under the client's id; ``texts`` are the text parts that are not empty."""

    id: str
    texts: tuple[str, ...]
    files: tuple[FilePart, ...]

    @property
    def text(self) -> str:
        """The text parts, joined by line breaks."""
        return "\n".join(self.texts)


@dataclass(frozen=True)
class PageTool:
    """A tool that the page declares and runs; ``schema`` is the JSON schema of its arguments."""

    name: str
    description: str
    schema: Mapping[str, Any]


@dataclass(frozen=True)
class ChatRequest:
    """One request; at most one of ``user_message`` and ``continued`` is set.

    ``posted_body`` is an equivalent body ``{id, message}`` that holds only the fields that are
    used, unchanged. ``tools`` are declared by the page for this turn.
    """

    chat_id: str
    trigger: Trigger
    message_id: str | None
    user_message: UserMessage | None
    continued: PostedAssistantMessage | None
    posted_body: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    tools: tuple[PageTool, ...] = ()


def parse_chat_request(
    body: JsonValue, limits: RequestLimits = DEFAULT_LIMITS, *, own_files: str | None = None
) -> ChatRequest:
    """Parse the stock body ``{id, messages, trigger, messageId?}`` or ``{id, message}``.

    The default trigger is ``submit-message``; a ``messageId`` of null counts as missing.

    Args:
        body: JSON that `strict_json.loads` has accepted.
        limits: The limits of the fields that are used, and the tools that the page may declare.
        own_files: The prefix of the URLs of the chat's own files, with ``{id}`` for the id of the
            chat; None if files have no URLs.

    Raises:
        Malformed: The request is not one of the two bodies, or a field that is used is not valid.
        TooLarge: A field exceeds its limit.
        UnsupportedMediaType: A file has a type in which browsers run scripts.
    """
    if not isinstance(body, dict):
        raise Malformed("The body is not a JSON object; send a chat request.")
    chat_id, message_id = body.get("id"), body.get("messageId")
    if not is_valid_id(chat_id):
        raise Malformed(f"The chat's id must be {_ID_RULE}; start a new chat.")
    if message_id is not None and not is_valid_id(message_id):
        raise Malformed(f"The messageId must be {_ID_RULE}; load the chat again.")
    trigger = _parse_trigger(body.get("trigger", "submit-message"))
    messages = _messages(body)
    last = messages[-1]
    tools = _parse_page_tools(body.get("tools"), limits)
    if last.get("role") == "user":
        own_prefix = None if own_files is None else own_files.replace("{id}", chat_id)
        user_message = _parse_user_message(last, limits, own_prefix)
        posted_body = _used_fields(body, last, tools)
        return ChatRequest(chat_id, trigger, message_id, user_message, None, posted_body, tools)
    if last.get("role") != "assistant":
        raise Malformed("The last message is neither the user's nor the assistant's; remove it.")
    message = next((item for item in messages if _is_assistant(item, message_id)), last)
    _id_and_parts(last)
    staged = StagedOptions(**{name: body.get(name) for name in STAGED})
    continued = parse_assistant_message(
        *_id_and_parts(message), limits, staged, message.get("metadata")
    )
    posted_body = _used_fields(body, message, tools)
    return ChatRequest(chat_id, trigger, message_id, None, continued, posted_body, tools)


def _parse_trigger(value: JsonValue) -> Trigger:
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


def _id_and_parts(message: dict[str, Any]) -> tuple[str, list[Part]]:
    message_id, parts = message.get("id"), message.get("parts")
    if not is_valid_id(message_id):
        raise Malformed(f"The id of the last message must be {_ID_RULE}; send it again.")
    if not isinstance(parts, list) or not all(
        isinstance(part, dict) and isinstance(part.get("type"), str) for part in parts
    ):
        raise Malformed("The last message needs parts, a list of objects with a type.")
    return message_id, parts


def _used_fields(
    body: dict[str, Any], message: dict[str, Any], tools: tuple[PageTool, ...]
) -> dict[str, Any]:
    used = {name: body[name] for name in _USED_FIELDS if body.get(name) is not None}
    if tools:
        used["tools"] = {tool.name: body["tools"][tool.name] for tool in tools}
    return {**used, "message": message}


def _parse_user_message(
    message: dict[str, Any], limits: RequestLimits, own_prefix: str | None
) -> UserMessage:
    message_id, parts = _id_and_parts(message)
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


def _parse_page_tools(value: JsonValue, limits: RequestLimits) -> tuple[PageTool, ...]:
    """Parse the tools that the page may declare, in the order of the body."""
    if not limits.page_tools or value is None:
        return ()
    if not isinstance(value, dict):
        raise Malformed("The tools of the page must be an object by their names; send it so.")
    return tuple(
        _parse_page_tool(name, entry, limits)
        for name, entry in value.items()
        if name in limits.page_tools
    )


def _parse_page_tool(name: str, entry: JsonValue, limits: RequestLimits) -> PageTool:
    declared = entry if isinstance(entry, dict) else {}
    description, schema = declared.get("description"), declared.get("parameters")
    if not isinstance(description, str) or not description.strip():
        raise Malformed(f"The tool {name} of the page has no description; send one.")
    if not isinstance(schema, dict) or schema.get("type") != "object":
        raise Malformed(
            f"The parameters of the tool {name} of the page must be a JSON schema of the type "
            "object; send one."
        )
    check_size(schema, limits)
    size = len(description.encode("utf-8", "replace"))
    size += len(json.dumps(schema, ensure_ascii=False).encode("utf-8", "replace"))
    if size > limits.page_tool_bytes:
        raise TooLarge(
            f"The tool {name} of the page has more than {limits.page_tool_bytes} bytes; say less."
        )
    return PageTool(name, description, schema)
