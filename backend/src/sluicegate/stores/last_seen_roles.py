"""The roles with which users were last seen, by whichever process saw them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import select

from sluicegate.stores.sql.schema import USER_ROLES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy import Connection

    from sluicegate.stores.sql.database import Database

_C: Final = USER_ROLES.c


class LastSeenRoles:
    """The last seen roles of each user.

    Every method raises StoreError when the database fails.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def store(self, user: str, roles: Iterable[str]) -> None:
        """Store the roles with which a user is seen now."""
        values: dict[str, Any] = {
            "roles": json.dumps(sorted(roles)),
            "seen_at": self._database.now(),
        }
        statement = (
            self._database.insert(USER_ROLES)
            .values(user=user, **values)
            .on_conflict_do_update(index_elements=[_C.user], set_=values)
        )
        await self._database.write(lambda connection: connection.execute(statement).rowcount)

    async def read(self, user: str, *, max_age: float) -> frozenset[str]:
        """Return the roles with which a user was seen in the last ``max_age`` seconds."""
        statement = select(_C.roles).where(
            _C.user == user, _C.seen_at > self._database.now() - max_age
        )

        def read(connection: Connection) -> str | None:
            stored: str | None = connection.scalar(statement)
            return stored

        stored = await self._database.read(read)
        return frozenset(() if stored is None else json.loads(stored))
