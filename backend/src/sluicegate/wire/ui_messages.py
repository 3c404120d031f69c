"""UI messages: returned by ``GET /chats/{id}``, and built by a client from chunks."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

Part: TypeAlias = dict[str, Any]
"""One part of a message as the client's JSON; a missing key is undefined."""


class UIMessage(TypedDict):
    """The AI SDK's ``UIMessage`` as JSON."""

    id: str
    role: Literal["system", "user", "assistant"]
    metadata: NotRequired[dict[str, Any]]
    parts: list[Part]


def is_tool_part(part: Part) -> bool:
    """Whether the part is a tool call, static (``tool-NAME``) or dynamic (``dynamic-tool``)."""
    kind: str = part["type"]
    return kind == "dynamic-tool" or kind.startswith("tool-")


def tool_name(part: Part) -> str:
    """Return the name of a tool part's tool."""
    if part["type"] == "dynamic-tool":
        return str(part["toolName"])
    return str(part["type"]).removeprefix("tool-")


def current_step(parts: list[Part]) -> list[Part]:
    """Return the parts after the last ``step-start``; all parts if there is none."""
    for index in range(len(parts) - 1, -1, -1):
        if parts[index]["type"] == "step-start":
            return parts[index + 1 :]
    return parts[:]
