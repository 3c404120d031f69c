"""How much the server reads from one request; decoration counts only against the body's size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sluicegate.errors import TooLarge

if TYPE_CHECKING:
    from pydantic import JsonValue


@dataclass(frozen=True)
class RequestLimits:
    """The largest that is still accepted of each."""

    user_text: int = 100_000
    """Characters of a user's message, over all its text parts."""
    reason: int = 2_000
    """Characters of the reason beside a decision."""
    files: int = 10
    """Files in a user's message."""
    file_bytes: int = 20 * 2**20
    """Decoded bytes of one file."""
    parts: int = 100
    """Parts of a user's message, and answers in one request."""
    nodes: int = 10_000
    """Values in one output of a client-side tool: arrays, objects and what they hold."""
    string: int = 2**20
    """Characters of one string, or key, in such an output."""
    page_tools: frozenset[str] = frozenset()
    """Names of the tools that a page may bring along."""
    page_tool_bytes: int = 16 * 1024
    """Bytes of the description and the JSON schema of one of them."""


DEFAULT_LIMITS: Final = RequestLimits()


def check_size(value: JsonValue, limits: RequestLimits) -> None:
    """Refuse a JSON value that has too many values or too long a string in it.

    For outputs of client-side tools, once it is known that a tool runs in the browser, and for
    arguments that a person has changed.

    Raises:
        TooLarge: with one plain sentence.
    """
    left = limits.nodes
    waiting = [value]
    while waiting:
        item = waiting.pop()
        left -= 1
        strings = [item] if isinstance(item, str) else list(item) if isinstance(item, dict) else []
        if any(len(string) > limits.string for string in strings):
            raise TooLarge(
                f"A text for or from a tool is longer than {limits.string} characters; "
                "send a shorter one."
            )
        if isinstance(item, dict | list):
            # Judged before they are taken in, so that a refusal costs no more than the limit.
            if len(item) > left - len(waiting):
                left = -1
            else:
                waiting.extend(item.values() if isinstance(item, dict) else item)
        if left < 0:
            raise TooLarge(
                f"What a tool gets or gives has more than {limits.nodes} values; send fewer."
            )
