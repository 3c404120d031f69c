"""How several servers know the same registered workers: who is where, from a shared store."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sluicegate.errors import Malformed, StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluicegate.stores.workers import RegisteredWorker, SharedWorkers

logger = logging.getLogger("sluicegate")


@dataclass(slots=True)
class WorkerSharing:
    """A store, and the file with the credentials that every server must have.

    A worker's credential opens its tools without asking anybody, so it is not put into a database;
    a worker that registers with one server is called by all of them, each with the credential that
    its own file names.
    """

    store: SharedWorkers
    token: Callable[[str], str | None]
    _is_away: bool = False

    def check(self, name: str, token: str) -> None:
        """Refuse a worker that the other servers could not call.

        Raises:
            Malformed: The file with the credentials lacks this one.
        """
        if self.token(name) != token:
            raise Malformed(
                "The worker was not registered. Several servers may share this database, so its "
                f"credential must stand behind the name {name} in the file of worker_tokens, on "
                "each of them."
            )

    async def listed(self) -> list[RegisteredWorker] | None:
        """The workers whose lease runs; None where the store is away, which is logged once."""
        try:
            found = await self.store.all()
        except StoreError as error:
            if not self._is_away:
                logger.warning("the registered workers of other servers are not known: %s", error)
            self._is_away = True
            return None
        self._is_away = False
        return found
