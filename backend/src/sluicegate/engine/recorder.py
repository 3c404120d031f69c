"""The port of recordings: what the engine tells whoever records a chat.

A tape never raises and never waits: a turn is the same with one and without. The live room reaches
the engine's tape through its parts, as everything else does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol

from sluicegate.core.keys import ChatKey
from sluicegate.stores.sessions import ChatSessions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from google.adk.events.event import Event
    from google.adk.sessions.session import Session

    from sluicegate.core.approvals import ApprovalRow
    from sluicegate.stores.sql.database import Database


class Recorder(Protocol):
    """Takes what happens in chats, in the order it happens.

    ``turn`` is the number of a request within its chat, as `request` gave it.
    """

    def request(self, chat: ChatKey, asked: Mapping[str, Any]) -> int:
        """Note what a client asks; returns the number of this turn, from 1."""

    def chunk(self, chat: ChatKey, turn: int, text: str) -> None:
        """Note the JSON of a chunk that a client is sent in a turn."""

    def frame(
        self,
        chat: ChatKey,
        body: Mapping[str, Any] | bytes,
        *,
        sender: Literal["client", "server"],
    ) -> None:
        """Note a frame that is neither a request nor a chunk: a refusal, a live frame, audio.

        Audio is PCM16 as it goes over the socket.
        """

    def approvals(self, chat: ChatKey, rows: Sequence[ApprovalRow]) -> None:
        """Note the ledger's rows of a chat; those that are as they were are not told again."""

    def event(self, chat: ChatKey, event: Event) -> None:
        """Note an event of ADK: a partial one when it comes, any other when it is stored."""

    def rest(self, chat: ChatKey) -> None:
        """A turn has ended: what is noted should be safe now."""


class RecordedSessions(ChatSessions):
    """Sessions whose stored events are told to a tape, whoever appends them."""

    def __init__(self, tape: Recorder, database: Database, *, max_bytes: int) -> None:
        """Take a tape, and what sessions are made with."""
        super().__init__(database, max_bytes=max_bytes)
        self._tape = tape

    async def append_event(self, session: Session, event: Event) -> Event:
        """Store an event, then tell it."""
        stored = await super().append_event(session=session, event=event)
        if not event.partial:
            self._tape.event(ChatKey(session.app_name, session.user_id, session.id), stored)
        return stored
