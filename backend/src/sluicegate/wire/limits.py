"""How much the server reads from one request; ignored parts count only against the body size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sluicegate.errors import TooLarge

if TYPE_CHECKING:
    from pydantic import JsonValue

GRANT_TTL: Final = 86400.0
"""Seconds for which a grant approves calls, unless the settings say otherwise (A8)."""


@dataclass(frozen=True)
class RequestLimits:
    """The limits of a request; a value equal to its limit is accepted."""

    user_text: int = 100_000
    """Characters of a user's message, over all its text parts."""
    reason: int = 2_000
    """Characters of the reason of a decision."""
    grant_ttl: float = GRANT_TTL
    """Seconds for which a decision may approve later calls too."""
    files: int = 10
    """Files in a user's message."""
    file_bytes: int = 20 * 2**20
    """Decoded bytes of one file."""
    parts: int = 100
    """Parts of a user's message, and decisions in one request."""
    nodes: int = 10_000
    """Values in one output of a client-side tool: arrays, objects and their items."""
    string: int = 2**20
    """Characters of one string, or key, in such an output."""
    depth: int = 32
    """Nested arrays and objects in such an output; past messages may be deeper."""
    page_tools: frozenset[str] = frozenset()
    """Names of the tools that a page may declare."""
    page_tool_bytes: int = 16 * 1024
    """Bytes of the description and the JSON schema of one of them."""


DEFAULT_LIMITS: Final = RequestLimits()


def check_size(value: JsonValue, limits: RequestLimits) -> None:
    """Refuse a JSON value that is nested too deeply, or too large in values or in a string.

    It is applied to outputs of client-side tools, to the edits, the payload and the answer of an
    approver, and to the schemas of page tools.

    Raises:
        TooLarge: With one plain sentence.
    """
    remaining = limits.nodes
    pending = [(value, 0)]
    while pending:
        item, depth = pending.pop()
        remaining -= 1
        strings = [item] if isinstance(item, str) else list(item) if isinstance(item, dict) else []
        if any(len(string) > limits.string for string in strings):
            raise TooLarge(
                f"A text for or from a tool is longer than {limits.string} characters; "
                "send a shorter one."
            )
        if isinstance(item, dict | list):
            if depth == limits.depth:
                raise TooLarge(
                    f"What a tool gets or gives is nested more than {limits.depth} levels deep; "
                    "send flatter JSON."
                )
            # The check precedes the copy, so that a refusal costs no more than the limit.
            if len(item) > remaining - len(pending):
                remaining = -1
            else:
                values = item.values() if isinstance(item, dict) else item
                pending.extend((value, depth + 1) for value in values)
        if remaining < 0:
            raise TooLarge(
                f"What a tool gets or gives has more than {limits.nodes} values; send fewer."
            )
