"""What names a chat, and a gated call within it."""

from __future__ import annotations

from typing import NamedTuple


class ChatKey(NamedTuple):
    """One conversation: the chat id of the wire is the session id of ADK."""

    app: str
    user: str
    chat: str


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
