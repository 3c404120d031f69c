"""How far the client of a played recording has come."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sluicegate.wire.chunks import decode_chunk
from sluicegate.wire.reducer import reduce_chunks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluicegate.wire.ui_messages import UIMessage


@dataclass(slots=True)
class PlaybackState:
    """The position of one chat in the recording, and the messages that its client has.

    ``played`` is the number of the last turn. A live chat has received ``audio_received`` bytes of
    audio and ``frames_received`` other frames.
    """

    played: int = 0
    messages: list[UIMessage] = field(default_factory=list)
    audio_received: int = 0
    frames_received: int = 0
    next_cue: int = 0
    user_message_ids: dict[str, str] = field(default_factory=dict)
    """Ids of user messages by the ids of their answers."""
    transcripts: dict[str, str] = field(default_factory=dict)
    """Transcripts of spoken user messages by their ids."""

    @property
    def waiting(self) -> int:
        """How many approvals of the last message are open."""
        parts = self.messages[-1]["parts"] if self.messages else []
        return sum(part.get("state") == "approval-requested" for part in parts)

    def append_response(self, posted: UIMessage, chunks: Sequence[str]) -> None:
        """Add a posted message and the chunks of its response."""
        decoded = [decode_chunk(text) for text in chunks]
        if posted["role"] == "user":
            self.messages += [posted, reduce_chunks(decoded)]
        else:
            self.messages[-1:] = [reduce_chunks(decoded, posted)]

    def append_resumed(self, chunks: Sequence[str]) -> None:
        """Add or replace a resumed message, after its user message if that was spoken."""
        message = reduce_chunks([decode_chunk(text) for text in chunks])
        for index, each in enumerate(self.messages):
            if each["id"] == message["id"]:
                self.messages[index] = message
                return
        user_message_id = self.user_message_ids.get(message["id"], "")
        if words := self.transcripts.get(user_message_id):
            parts = [{"type": "text", "text": words}]
            self.messages.append({"id": user_message_id, "role": "user", "parts": parts})
        self.messages.append(message)
