"""The end of the session by which a connection was authenticated, for what sends over it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import Scope

SESSION: Final = "sluicegate.session"
"""The key of a scope under which its `ConnectionSession` is."""


class ConnectionSession:
    """The session of one connection; ``digest`` identifies it."""

    def __init__(self, digest: str) -> None:
        self.digest = digest
        self._has_ended = False
        self._on_end: Callable[[], None] | None = None

    def call_at_end(self, on_end: Callable[[], None]) -> None:
        """Call a function when the session ends, at once if it has."""
        self._on_end = on_end
        if self._has_ended:
            on_end()

    def end(self) -> None:
        """Call the function that was given. Idempotent."""
        if not self._has_ended:
            self._has_ended = True
            if self._on_end is not None:
                self._on_end()


def end_with_session(scope: Scope, end: Callable[[], None]) -> None:
    """Call ``end`` when the session ends that authenticated a connection, if one did."""
    session: ConnectionSession | None = scope.get(SESSION)
    if session is not None:
        session.call_at_end(end)
