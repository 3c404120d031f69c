"""Who holds a chat for longer than a turn, and how turns are led meanwhile (A2)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluicegate.core.keys import ChatKey
    from sluicegate.core.plan import ChatLog, ContinueExchange, NewExchange
    from sluicegate.core.release.policy import ReleasePolicy
    from sluicegate.core.signals import Signal
    from sluicegate.engine.turn.reader import Client, TurnReader
    from sluicegate.engine.turn.runner import End, RunningTurn


class ChatOwner(Protocol):
    """An open live socket: it has the chat's lease, and its run is the session's one writer."""

    @property
    def owner(self) -> str:
        """Who holds the lease and claims calls."""

    async def say(self, plan: NewExchange, release: ReleasePolicy, client: Client) -> TurnReader:
        """Begin an exchange with a text that the holder itself was given.

        Raises:
            RequestError: nothing has changed.
        """

    async def go_on(
        self,
        log: ChatLog,
        plan: ContinueExchange,
        release: ReleasePolicy,
        client: Client,
        *,
        own: bool,
    ) -> TurnReader | None:
        """Let an exchange go on whose calls are all decided; None when nothing waits for that.

        ``own``: the answers came to the holder itself, so it need not be told of the turn.
        """

    async def stop(self) -> None:
        """Stop the running turn, or supersede what waits."""

    async def close(self) -> None:
        """Let go of the chat."""


class TurnCallbacks(Protocol):
    """How a turn ends that runs beside others of one run."""

    async def seal(self, turn: RunningTurn, end: End) -> Sequence[Signal]:
        """Close in the session what the turn leaves open; returns what its gate should know."""

    def left(self, turn: RunningTurn) -> None:
        """The turn has ended and its stream is closed."""


class ChatOwners:
    """The chats of this process that are held, and by whom."""

    def __init__(self) -> None:
        self._by_chat: dict[ChatKey, ChatOwner] = {}

    def of(self, chat: ChatKey) -> ChatOwner | None:
        """Who holds that chat."""
        return self._by_chat.get(chat)

    def chats(self) -> list[ChatKey]:
        """The chats that are held."""
        return list(self._by_chat)

    def add(self, chat: ChatKey, holder: ChatOwner) -> None:
        """Name the one who has the chat's lease from now on."""
        self._by_chat[chat] = holder

    def remove(self, chat: ChatKey) -> None:
        """Nobody holds that chat any more."""
        self._by_chat.pop(chat, None)

    def owners(self) -> set[str]:
        """Owners of claims that may still come to an end."""
        return {holder.owner for holder in self._by_chat.values()}

    def count(self, user: str | None = None) -> int:
        """How many chats are held, or how many of one user."""
        return sum(user in (None, chat.user) for chat in self._by_chat)

    async def close(self) -> None:
        """Have everybody let go."""
        await asyncio.gather(*(holder.close() for holder in list(self._by_chat.values())))
