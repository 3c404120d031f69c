"""Authentication of users: the port, and bearer tokens, a trusted header or none."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import logging
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from starlette.requests import HTTPConnection

from sluicegate.errors import ConfigurationError, Unauthenticated, Unavailable
from sluicegate.server.network_addresses import Address, address_of
from sluicegate.tools.approvers import is_role

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Sequence

    from sluicegate.server.settings import Settings


@dataclass(frozen=True, slots=True)
class User:
    """An authenticated user with the roles that decide what other people's calls it may approve.

    ``id`` is 1 to 128 of letters, digits and ``._:@+=|-``.
    """

    id: str
    roles: frozenset[str] = frozenset()

    def __init__(self, id: str, roles: Iterable[str] = ()) -> None:
        object.__setattr__(self, "id", id)
        object.__setattr__(self, "roles", frozenset(roles))


Authenticate: TypeAlias = Callable[[HTTPConnection], Awaitable[str | User | None]]
"""Returns the user or the user's id, None if the request is not authenticated.

A method ``roles_of(user) -> roles``, also async, is asked for the roles of people who are absent;
without it the roles with which they were last seen count.
"""


LOCAL_USER: Final = "local"
"""The user of every request from this machine, without authentication."""

USER: Final = "sluicegate.user"
"""The key of the user of a request in its scope, once it is known."""


_USER_ID: Final = re.compile(r"[A-Za-z0-9._:@+=|-]{1,128}")
_LINE: Final = re.compile(r"sha256:([0-9a-fA-F]{64})\s+(\S+)(?:\s+(\S+))?")

_BEARER: Final = re.compile(r"(?i:bearer) +([A-Za-z0-9._~+/=-]+) *")
_log: Final = logging.getLogger("sluicegate")


def is_user_id(text: str) -> bool:
    """Whether a text is a valid user id: 1 to 128 of letters, digits and ``._:@+=|-``."""
    return _USER_ID.fullmatch(text) is not None and text not in (".", "..")


def authenticator(settings: Settings) -> Authenticate:
    """Return the authentication that the setting ``auth`` names.

    Raises:
        ConfigurationError: The file of bearer tokens cannot be used.
    """
    scheme, _, argument = settings.auth.partition(":")
    if scheme == "bearer":
        return BearerFile(Path(argument))
    if scheme == "header":
        return TrustedHeader(argument, settings.trusted_proxies, settings.role_header)
    return local_user


async def identify(authenticate: Authenticate, connection: HTTPConnection) -> str:
    """Return the user of a request.

    Raises:
        Unauthenticated: There is no user, or one whose id is not valid.
    """
    found = await authenticate(connection)
    user = found.id if isinstance(found, User) else found
    if user is None:
        if authenticate is local_user:
            raise Unauthenticated(
                "Without authentication only this machine may call; start the server with --auth."
            )
        raise Unauthenticated
    if not is_user_id(user):
        _log.warning("request refused: authentication returned an invalid user id")
        raise Unauthenticated("Your user name cannot be used here; ask for another one.")
    connection.scope[USER] = user
    return user


async def local_user(connection: HTTPConnection) -> str | None:
    """``none``: the peer must be a loopback address, or have none, as in the same process."""
    peer = _peer(connection)
    if peer is not None and not peer.is_loopback:
        return None
    return LOCAL_USER


class BearerFile:
    """``bearer:FILE``: a line ``sha256:HEX user-id`` for each token; ``#`` begins a comment.

    A third column names the roles of the user, separated by commas; a user with several lines has
    all of their roles.

    The file is read again when it has changed. While it cannot be read, requests are refused.

    Raises:
        ConfigurationError: The file cannot be used.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._version: tuple[int, int, int] | None = None
        self._users: list[tuple[bytes, str]] = []
        self._roles: dict[str, frozenset[str]] = {}
        try:
            self._reread(path.stat())
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise ConfigurationError(f"The token file {path} cannot be read: {reason}.") from None

    async def __call__(self, connection: HTTPConnection) -> str | User | None:
        """Return the user of the token in the one Authorization header."""
        self._check()
        token = bearer_token(connection.headers.getlist("authorization"))
        if token is None:
            return None
        digest = hashlib.sha256(token.encode()).digest()
        match: str | None = None
        for stored, user in self._users:
            # All are compared, so that the time does not reveal the position of the match.
            if hmac.compare_digest(stored, digest):
                match = user
        roles = None if match is None else self._roles.get(match)
        return match if match is None or roles is None else User(match, roles)

    def roles_of(self, user: str) -> frozenset[str]:
        """Return the roles that a user has in the file now."""
        self._check()
        return self._roles.get(user, frozenset())

    def _check(self) -> None:
        """Read the file if it has changed; raises Unavailable."""
        try:
            self._reread(self._path.stat())
        except (OSError, UnicodeDecodeError, ConfigurationError):
            _log.error("the token file cannot be read; every request is refused")
            raise Unavailable from None

    def _reread(self, status: os.stat_result) -> None:
        version = (status.st_mtime_ns, status.st_size, status.st_ino)
        if version == self._version:
            return
        users: list[tuple[bytes, str]] = []
        roles: dict[str, frozenset[str]] = {}
        for number, line in enumerate(self._path.read_text("utf-8").splitlines(), start=1):
            text = line.partition("#")[0].strip()
            if not text:
                continue
            match = _LINE.fullmatch(text)
            named = [] if match is None or match[3] is None else match[3].split(",")
            if match is None or not is_user_id(match[2]) or not all(map(is_role, named)):
                raise ConfigurationError(
                    f"Line {number} of the token file {self._path} is not 'sha256:HEX user-id' "
                    "or 'sha256:HEX user-id role,role'."
                )
            users.append((bytes.fromhex(match[1]), match[2]))
            if named:
                roles[match[2]] = roles.get(match[2], frozenset()).union(named)
        self._users, self._roles, self._version = users, roles, version


class TrustedHeader:
    """``header:NAME``: a proxy in a trusted network (CIDR) names the user.

    ``role_header`` is the name of the header in which it names the roles of the user.
    """

    def __init__(
        self, name: str, networks: tuple[str, ...], role_header: str | None = None
    ) -> None:
        self._name = name
        self._role_header = role_header
        self._networks = [ipaddress.ip_network(network) for network in networks]

    async def __call__(self, connection: HTTPConnection) -> str | User | None:
        """Return the value of the header if it is sent once, by a trusted peer."""
        if not self._is_trusted(connection):
            return None
        fields = connection.headers.getlist(self._name)
        user = fields[0] if len(fields) == 1 and fields[0] else None
        if user is None or self._role_header is None:
            return user
        named = ",".join(connection.headers.getlist(self._role_header)).split(",")
        return User(user, filter(is_role, (role.strip() for role in named)))

    def untrusted_names(self, connection: HTTPConnection) -> list[str]:
        """Return the values of the header if the peer is not trusted."""
        return [] if self._is_trusted(connection) else connection.headers.getlist(self._name)

    def _is_trusted(self, connection: HTTPConnection) -> bool:
        peer = _peer(connection)
        return peer is not None and any(peer in network for network in self._networks)


def bearer_token(fields: Sequence[str]) -> str | None:
    """Return the token of the Authorization header, None unless there is exactly one."""
    match = _BEARER.fullmatch(fields[0]) if len(fields) == 1 else None
    return None if match is None else match[1]


def _peer(connection: HTTPConnection) -> Address | None:
    return None if connection.client is None else address_of(connection.client.host)
