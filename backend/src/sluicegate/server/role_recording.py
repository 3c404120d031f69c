"""Stores the roles of users who may be absent when an approval asks for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sluicegate.server.authentication import Authenticate, User, is_user_id

if TYPE_CHECKING:
    from starlette.requests import HTTPConnection

    from sluicegate.server.engine_holder import EngineHolder

_ROLES: Final = "sluicegate.roles"
"""The key of the roles in its scope that a connection has stated."""


class RecordRoles:
    """Authenticates a connection, and records the roles of its user for when the user is absent.

    A connection that is authenticated again has the headers with which it began. What these say was
    recorded then, and a newer request may have said otherwise.
    """

    def __init__(self, authenticate: Authenticate, engine: EngineHolder) -> None:
        self._authenticate = authenticate
        self._engine = engine
        self._has_roles = False

    async def __call__(self, connection: HTTPConnection) -> str | User | None:
        """Return the user; raises StoreError if the roles cannot be stored."""
        user = await self._authenticate(connection)
        roles = user.roles if isinstance(user, User) else frozenset()
        self._has_roles = self._has_roles or bool(roles)
        name = user.id if isinstance(user, User) else user
        is_repeated = connection.scope.get(_ROLES) == roles
        if self._has_roles and name is not None and is_user_id(name) and not is_repeated:
            await (await self._engine.get()).record_roles(name, roles)
            connection.scope[_ROLES] = roles
        return user
