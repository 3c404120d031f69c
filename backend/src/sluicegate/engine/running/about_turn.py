"""What a process tells the others of a turn that it runs, so that they can show it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from sluicegate.core.history import for_reader, resumable
from sluicegate.wire.chunks import StartChunk, decode
from sluicegate.wire.encoding import encode

if TYPE_CHECKING:
    from sluicegate.engine.running.running_turn import RunningTurn
    from sluicegate.wire.chunks import BaseChunk, Major


@dataclass(frozen=True, slots=True)
class AboutTurn:
    """One running turn.

    ``prefix`` are the JSON texts of what the message holds besides this turn's chunks; ``for_6``
    and ``all_for_6`` say whether a client of AI SDK 6 can take the turn, and the whole message.
    """

    message: str
    user_message: str
    for_6: bool
    all_for_6: bool
    prefix: tuple[str, ...] = ()

    @classmethod
    def of(cls, turn: RunningTurn) -> AboutTurn:
        """Look at a turn that begins."""
        before = turn.before
        return cls(
            turn.stamp.message,
            turn.stamp.user_message,
            not turn.is_previewed,
            not turn.is_previewed and (before is None or resumable(before, major=6)),
            tuple(encode(chunk) for chunk in turn.prefix),
        )

    @classmethod
    def read(cls, text: str) -> AboutTurn | None:
        """Read what `text` wrote; None where another version has written something else."""
        try:
            told = json.loads(text)
            return cls(**{**told, "prefix": tuple(told["prefix"])})
        except (KeyError, TypeError, ValueError):
            return None

    def text(self) -> str:
        """Write it down."""
        return json.dumps(asdict(self), ensure_ascii=False, separators=(",", ":"))

    def head(self, major: Major) -> list[BaseChunk]:
        """The message before this turn, for a reader who holds nothing of it."""
        chunks = [decode(text) for text in self.prefix]
        return [StartChunk(message_id=self.message), *for_reader(chunks, major=major)]
