"""Sentences for the user that belong to no call."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class Notices:
    """What the user is to be told in this turn, each sentence once."""

    def __init__(self) -> None:
        self._said: set[str] = set()
        self._waiting: list[str] = []

    def tell(self, sentences: Sequence[str]) -> None:
        """Tell the user, with the next event."""
        for sentence in sentences:
            if sentence not in self._said:
                self._said.add(sentence)
                self._waiting.append(sentence)

    def take(self) -> list[str]:
        """What has not been told yet."""
        waiting, self._waiting = self._waiting, []
        return waiting
