"""The operations of the API as values, from which routes and the OpenAPI document are made."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from starlette.requests import Request
from starlette.responses import Response

if TYPE_CHECKING:
    from sluicegate.engine.interface import Engine
    from sluicegate.errors import RequestError

Endpoint: TypeAlias = Callable[[Request, "Engine", str], Awaitable[Response]]
"""Answers a request of an authenticated user."""

OpenEndpoint: TypeAlias = Callable[[Request], Awaitable[Response]]
"""Answers a request without authentication."""

Method: TypeAlias = Literal["GET", "POST", "PATCH", "DELETE"]

BINARY: Final[dict[str, Any]] = {"type": "string", "format": "binary"}
"""The schema of a body of bytes."""


@dataclass(frozen=True)
class Parameter:
    """A query parameter or a header; ``schema`` is JSON Schema or a type."""

    name: str
    place: Literal["query", "header"]
    schema: Any
    description: str
    required: bool = False


@dataclass(frozen=True)
class Success:
    """A response that is no refusal; without a media type it has no body.

    ``schema`` is JSON Schema or a type of `sluicegate.server.schemas`.
    """

    status: int
    description: str
    media_type: str | None = None
    schema: Any = field(default_factory=dict)


@dataclass(frozen=True)
class Operation:
    """One method of one path.

    ``path`` is below the prefix, unless ``outside``. ``endpoint`` needs an authenticated user,
    ``open_endpoint`` does not; exactly one of them is set. The upgrade to a socket has a route of
    its own; its endpoint answers requests without one. ``refusals`` are errors beyond those of
    every operation.
    """

    method: Method
    path: str
    summary: str
    answers: tuple[Success, ...]
    endpoint: Endpoint | None = None
    open_endpoint: OpenEndpoint | None = None
    body: Any = None
    body_type: str = "application/json"
    parameters: tuple[Parameter, ...] = ()
    refusals: tuple[type[RequestError], ...] = ()
    outside: bool = False
    is_upgrade: bool = False
