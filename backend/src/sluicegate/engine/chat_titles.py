"""Titles of chats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from google.genai import types


_MAX_TITLE: Final = 80


def title_of(content: types.Content) -> str | None:
    """The title of a chat that begins with this message."""
    text = next((part.text for part in content.parts or [] if part.text), None)
    return " ".join(text.split())[:_MAX_TITLE] if text else None
