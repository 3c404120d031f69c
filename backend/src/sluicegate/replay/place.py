"""How far the client of a played recording has come."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sluicegate.wire.chunks import decode
from sluicegate.wire.reducer import reduce_chunks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluicegate.wire.messages import UIMessage


@dataclass(slots=True)
class Place:
    """How far one chat has come, and the messages its client holds.

    Of a live chat: ``heard`` bytes of audio and ``frames`` others have come, ``cue`` is next.
    """

    played: int = 0
    messages: list[UIMessage] = field(default_factory=list)
    heard: int = 0
    frames: int = 0
    cue: int = 0
    questions: dict[str, str] = field(default_factory=dict)
    spoken: dict[str, str] = field(default_factory=dict)
    """User messages by the answer's id, and what was said in them by their own."""

    @property
    def waiting(self) -> int:
        """How many approvals of the last message wait."""
        parts = self.messages[-1]["parts"] if self.messages else []
        return sum(part.get("state") == "approval-requested" for part in parts)

    def take(self, posted: UIMessage, texts: Sequence[str]) -> None:
        """Note a message that was posted, and the response to it."""
        chunks = [decode(text) for text in texts]
        if posted["role"] == "user":
            self.messages += [posted, reduce_chunks(chunks)]
        else:
            self.messages[-1:] = [reduce_chunks(chunks, posted)]

    def show(self, texts: Sequence[str]) -> None:
        """Note a message that was resumed, with its question if it was a spoken one."""
        message = reduce_chunks([decode(text) for text in texts])
        known = [index for index, each in enumerate(self.messages) if each["id"] == message["id"]]
        question = self.questions.get(message["id"], "")
        if known:
            self.messages[known[0]] = message
            return
        if words := self.spoken.get(question):
            parts = [{"type": "text", "text": words}]
            self.messages.append({"id": question, "role": "user", "parts": parts})
        self.messages.append(message)
