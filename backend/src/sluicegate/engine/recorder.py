"""The port of recordings: what the engine and live chats record of a chat.

A recorder never raises and never waits: a turn is the same with one and without.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from google.adk.events.event import Event

    from sluicegate.core.approvals import ApprovalRow
    from sluicegate.core.chat_and_turn_keys import ChatKey


class Recorder(Protocol):
    """Records what happens in chats, in order.

    ``turn`` is the number of a request within its chat, as `request` returned it.
    """

    def request(self, chat: ChatKey, body: Mapping[str, Any]) -> int:
        """Record a request of a client; returns the number of this turn, from 1."""

    def chunk(self, chat: ChatKey, turn: int, text: str) -> None:
        """Record the JSON of a chunk that is sent to a client in a turn."""

    def frame(
        self,
        chat: ChatKey,
        body: Mapping[str, Any] | bytes,
        *,
        sender: Literal["client", "server"],
    ) -> None:
        """Record a frame that is neither a request nor a chunk: a refusal, a live frame, audio.

        Audio is PCM16 as it goes over the socket.
        """

    def approvals(self, chat: ChatKey, rows: Sequence[ApprovalRow]) -> None:
        """Record the ledger's rows of a chat; unchanged rows are not recorded again."""

    def event(self, chat: ChatKey, event: Event) -> None:
        """Record an event of ADK: a partial one when it comes, any other when it is stored."""

    def flush(self, chat: ChatKey) -> None:
        """A turn has ended: write what is recorded to the disk now."""
