"""What an endpoint promises: one value from which both its route and its description are made."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from starlette.requests import Request
from starlette.responses import Response

if TYPE_CHECKING:
    from sluicegate.engine.engine import Engine
    from sluicegate.errors import RequestError

Endpoint: TypeAlias = Callable[[Request, "Engine", str], Awaitable[Response]]
"""Answers a request of an authenticated user."""

OpenEndpoint: TypeAlias = Callable[[Request], Awaitable[Response]]
"""Answers a request of anybody."""

Method: TypeAlias = Literal["GET", "POST", "PATCH", "DELETE"]


@dataclass(frozen=True)
class Parameter:
    """A query parameter or a header."""

    name: str
    place: Literal["query", "header"]
    schema: dict[str, Any]
    description: str
    required: bool = False


@dataclass(frozen=True)
class Success:
    """An answer that is no refusal; without a media type it has no body."""

    status: int
    description: str
    media_type: str | None = None
    schema: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Operation:
    """One method of one path.

    ``path`` stands below the prefix, unless ``outside``. ``endpoint`` is for authenticated users,
    ``open_endpoint`` for everybody; exactly one of them is set, but for the upgrade to a socket,
    which has a route of its own. ``refusals`` are the errors beyond those that every operation may
    answer.
    """

    method: Method
    path: str
    summary: str
    answers: tuple[Success, ...]
    endpoint: Endpoint | None = None
    open_endpoint: OpenEndpoint | None = None
    body: dict[str, Any] | None = None
    body_type: str = "application/json"
    parameters: tuple[Parameter, ...] = ()
    refusals: tuple[type[RequestError], ...] = ()
    outside: bool = False
    is_upgrade: bool = False
