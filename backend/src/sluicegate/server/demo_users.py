"""The people of the demo, whom a cookie names; no authentication."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sluicegate.server.authentication import User, local_user

if TYPE_CHECKING:
    from starlette.requests import HTTPConnection

DEMO_COOKIE: Final = "sluicegate-demo-user"
"""Names the person of the demo, as the page sets it."""


class DemoUsers:
    """The people of the demo, who have no passwords: a cookie says who calls.

    As without authentication, the peer must be a loopback address. The first one is the default.
    """

    def __init__(self, *users: User) -> None:
        self.users = users

    async def __call__(self, connection: HTTPConnection) -> User | None:
        """Return the person of a request."""
        if await local_user(connection) is None:
            return None
        name = connection.cookies.get(DEMO_COOKIE)
        return next((user for user in self.users if user.id == name), self.users[0])

    def roles_of(self, user: str) -> frozenset[str]:
        """Return the roles of a person who may be absent."""
        return next((each.roles for each in self.users if each.id == user), frozenset())
