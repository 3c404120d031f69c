"""What changes for a user: the events of the user, and of each role that the user has (A4)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, Self, TypeAlias

from sluicegate.errors import RequestError, StoreError
from sluicegate.stores.streams.user_events import StoredEvent
from sluicegate.wire.user_events import RESET, encode_user_event

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluicegate.stores.streams.user_events import UserEvents

RolesNow: TypeAlias = Callable[[], Awaitable[frozenset[str]]]
"""Returns the roles of a user; raises StoreError or RequestError if they cannot be read."""

_RESET: Final = encode_user_event(RESET)
_NO_POSITION: Final = ""
"""An id of no event, after which everything is to be loaded again."""


async def no_roles() -> frozenset[str]:
    """Return no role: no approval is decided by other people."""
    return frozenset()


class EntitledEvents:
    """The events of one user from a position on (implements `UserEventReader`).

    An event for the holders of a role is returned only if the user has the role at that moment.
    """

    def __init__(
        self, events: UserEvents, user: str, roles: frozenset[str], roles_now: RolesNow
    ) -> None:
        self._events = events
        self._user = user
        self._roles = roles
        self._roles_now = roles_now
        self._taken: Sequence[StoredEvent] = ()

    @classmethod
    async def open(
        cls, events: UserEvents, user: str, after: str | None, *, roles_now: RolesNow = no_roles
    ) -> Self:
        """Begin after the event with the id ``after``, by default with future ones.

        Raises:
            StoreError: The roles of the user cannot be read.
            RequestError: As well.
        """
        reader = cls(events, user, await roles_now(), roles_now)
        reader._start(after)
        return reader

    async def read(self) -> Sequence[StoredEvent]:
        """Wait for events and return those available."""
        # What was taken stays for the next call if this one is cancelled.
        self._taken = self._taken or await self._reader.read()
        if any(event.is_of_role for event in self._taken):
            try:
                await self.check_roles()
            except (StoreError, RequestError):
                # Who may read them is not known, but a reset says nothing.
                self._taken = [StoredEvent(self._taken[-1].cursor, _RESET)]
        if not self._taken:
            return await self._reader.read()
        taken, self._taken = self._taken, ()
        return _without_repetitions(taken)

    async def check_roles(self) -> None:
        """Read the events of the roles that the user has now; after a change begin with ``reset``.

        Raises:
            StoreError: The roles cannot be read.
            RequestError: As well.
        """
        roles = await self._roles_now()
        if roles != self._roles:
            self._roles = roles
            self._taken = ()
            self._reader.close()
            self._start(_NO_POSITION)

    def close(self) -> None:
        """Stop reading. Idempotent."""
        self._reader.close()

    def _start(self, after: str | None) -> None:
        self._reader = self._events.read(self._user, after, self._roles)


def _without_repetitions(events: Sequence[StoredEvent]) -> list[StoredEvent]:
    """Leave out what the next event repeats: a rule may name a user and roles of the same user."""
    following = (*(event.data for event in events[1:]), None)
    return [event for event, data in zip(events, following, strict=True) if event.data != data]
