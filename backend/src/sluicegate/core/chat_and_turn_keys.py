"""Keys of a chat and of a turn of it."""

from __future__ import annotations

from typing import NamedTuple


class ChatKey(NamedTuple):
    """One conversation: the chat id of the wire is the session id of ADK."""

    app: str
    user: str
    chat: str


class TurnKey(NamedTuple):
    """One turn of a chat; ``fence`` is the fencing token of its lease (A2)."""

    chat: ChatKey
    turn: str
    fence: int
