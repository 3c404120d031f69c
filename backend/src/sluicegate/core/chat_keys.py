"""Keys of a chat, a turn of it, and a gated call in it."""

from __future__ import annotations

from hashlib import sha256
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


class CallKey(NamedTuple):
    """One gated call (A1): ``call`` is the function call id, or the interrupt id of a node."""

    app: str
    user: str
    chat: str
    invocation: str
    call: str

    @property
    def chat_key(self) -> ChatKey:
        """The conversation this call belongs to."""
        return ChatKey(self.app, self.user, self.chat)


def idempotency_key(key: CallKey) -> str:
    """The call's idempotency key for other systems: 64 opaque hexadecimal digits (A9)."""
    # Lengths separate the parts, which may contain any character.
    text = "".join(f"{len(part)}:{part}" for part in key)
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
