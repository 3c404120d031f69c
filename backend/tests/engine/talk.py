"""A client of the engine that also reaches into it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluicegate.core.chat_and_turn_keys import ChatKey
from sluicegate.core.grammar import Grammar
from sluicegate.testing import ChatClient, Turn, decide

if TYPE_CHECKING:
    from sluicegate.engine.turn.running_turn import RunningTurn
    from sluicegate.wire.chunks import BaseChunk

__all__ = ["Talk", "Turn", "check", "decide"]


class Talk(ChatClient):
    """One chat of one user, with its key and its running turn."""

    @property
    def key(self) -> ChatKey:
        """The chat's key in the stores."""
        return ChatKey(self.engine.resources.app, self.user, self.chat_id)

    @property
    def running(self) -> RunningTurn:
        """The turn that runs."""
        turn = self.engine.resources.turns.running(self.key)
        assert turn is not None
        return turn


def check(chunks: list[BaseChunk], grammar: Grammar | None = None) -> None:
    """Every chunk may follow the one before it."""
    checked = grammar or Grammar()
    for chunk in chunks:
        checked.feed(chunk)
    checked.close()
