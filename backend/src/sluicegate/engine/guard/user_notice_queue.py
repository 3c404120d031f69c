"""Notices of a turn to its user, beside the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class Notices:
    """Sentences for the user that belong to no call; each is shown once per turn."""

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._pending: list[str] = []

    def add(self, sentences: Iterable[str]) -> None:
        """Add sentences; they go out with the next event."""
        for sentence in sentences:
            if sentence not in self._seen:
                self._seen.add(sentence)
                self._pending.append(sentence)

    def take(self) -> list[str]:
        """Return the sentences that no event carries yet, and remove them."""
        pending, self._pending = self._pending, []
        return pending
