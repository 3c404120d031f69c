"""Owners of open live chats: each has the lease of its chat until it is closed (A2)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluicegate.core.chat_and_turn_keys import ChatKey
    from sluicegate.core.plan import ChatLog, ContinueExchange, NewExchange
    from sluicegate.core.release.policies import ReleasePolicy
    from sluicegate.core.signals import Signal
    from sluicegate.engine.client_request_options import RequestingClient
    from sluicegate.engine.turn.reader import TurnReader
    from sluicegate.engine.turn.running_turn import End, RunningTurn


class ChatOwner(Protocol):
    """An open live chat: it has the chat's lease, and its run is the session's one writer."""

    @property
    def owner(self) -> str:
        """The owner of the lease and of claims."""

    async def start_exchange(
        self, plan: NewExchange, release: ReleasePolicy, client: RequestingClient
    ) -> TurnReader:
        """Start an exchange with a text that came to the owner itself.

        Raises:
            RequestError: nothing has changed.
        """

    async def continue_exchange(
        self,
        log: ChatLog,
        plan: ContinueExchange,
        release: ReleasePolicy,
        client: RequestingClient,
        *,
        own: bool,
    ) -> TurnReader | None:
        """Continue an exchange whose calls are all decided; None when nothing waits for that.

        ``own``: the decisions came to the owner itself, so it need not announce the turn.
        """

    async def stop(self) -> None:
        """Stop the running turn, or supersede the open approvals."""

    async def take_over(self) -> None:
        """Release the chat to a newer socket of its user, after claimed calls (A1)."""

    async def close(self) -> None:
        """Release the chat."""


class TurnCallbacks(Protocol):
    """The end of a turn that shares a live run with other turns."""

    async def close_open_calls(self, turn: RunningTurn, end: End) -> Sequence[Signal]:
        """Close in the session what the turn leaves open; returns signals for its buffer."""

    def turn_ended(self, turn: RunningTurn) -> None:
        """The turn has ended and its stream is closed."""


class ChatOwners:
    """The live chats that are open in this process."""

    def __init__(self) -> None:
        self._by_chat: dict[ChatKey, ChatOwner] = {}

    def of(self, chat: ChatKey) -> ChatOwner | None:
        """The owner of a chat."""
        return self._by_chat.get(chat)

    def chats(self) -> list[ChatKey]:
        """The chats that have an owner."""
        return list(self._by_chat)

    def add(self, chat: ChatKey, owner: ChatOwner) -> None:
        """Register the owner of a chat, which has the chat's lease."""
        self._by_chat[chat] = owner

    def remove(self, chat: ChatKey, owner: str) -> None:
        """Remove an owner, unless another one has taken its chat over."""
        registered = self._by_chat.get(chat)
        if registered is not None and registered.owner == owner:
            del self._by_chat[chat]

    def claim_owners(self) -> set[str]:
        """Owners of claims that may still come to an end."""
        return {owner.owner for owner in self._by_chat.values()}

    def count(self, user: str | None = None) -> int:
        """How many chats have an owner, or how many of one user."""
        return sum(user in (None, chat.user) for chat in self._by_chat)

    async def close(self) -> None:
        """Close every owner."""
        await asyncio.gather(*(owner.close() for owner in list(self._by_chat.values())))
