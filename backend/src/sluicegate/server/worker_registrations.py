"""The operations by which remote tool workers register and unregister (S1-R23, S1-R35)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from starlette.responses import Response

from sluicegate.errors import (
    HeldByAnotherOwner,
    Malformed,
    RequestTimeout,
    TooManyRequests,
    Unauthenticated,
    Unavailable,
    Unknown,
    UnsupportedMediaType,
)
from sluicegate.server.authentication import BearerFile, bearer_token
from sluicegate.server.failed_authentications import limit_failures
from sluicegate.server.operation_types import Operation, Success
from sluicegate.server.responses import json_response
from sluicegate.server.schemas import Lease, Registration
from sluicegate.transports.http_requests import BodyLimits, read_json
from sluicegate.transports.large_request_queue import LargeRequests

if TYPE_CHECKING:
    from starlette.requests import Request

    from sluicegate.server.authentication import Authenticate
    from sluicegate.server.engine_holder import EngineHolder
    from sluicegate.server.failed_authentications import FailureLimits
    from sluicegate.server.settings import Settings
    from sluicegate.tools.worker_registry import WorkerRegistry

_MAX_BODY: Final = 4 * 1024
_MAX_URL: Final = 2_000
_OF_PROXIES: Final = frozenset({"forwarded", "via", "x-forwarded-for", "x-real-ip"})


class Registrations:
    """The endpoints for workers, which have credentials of their own; users have no access."""

    def __init__(self, settings: Settings, engine: EngineHolder, failures: FailureLimits) -> None:
        """Read the file; raises ConfigurationError if it cannot be used."""
        self._authenticate: Authenticate | None = None
        if settings.worker_registrations is not None:
            tokens = BearerFile(Path(settings.worker_registrations))
            self._authenticate = limit_failures(tokens, tokens, failures, settings)
        self._engine = engine
        large = LargeRequests(at_once=1, max_values=_MAX_BODY)
        self._limits = BodyLimits(_MAX_BODY, settings.body_timeout, large)

    async def register(self, request: Request) -> Response:
        """Register a worker or renew its lease."""
        own, token = await self._caller(request)
        body = await read_json(request, self._limits, user=own)
        if not isinstance(body, dict) or set(body) != {"name", "url"}:
            raise Malformed("A registration has a name and a url; send these two.")
        name, url = body["name"], body["url"]
        if not isinstance(name, str) or not isinstance(url, str) or len(url) > _MAX_URL:
            raise Malformed("The name and the url of a worker are texts; send them as such.")
        if name != own:
            raise Unauthenticated("This credential is another worker's; register under its name.")
        registry = await self._registry()
        tools = await registry.register(name, url, token, peer=_peer(request))
        return json_response({"name": name, "tools": tools, "lease": registry.lease})

    async def unregister(self, request: Request) -> Response:
        """Unregister the worker that calls."""
        own, _ = await self._caller(request)
        if request.path_params["name"] != own or not await (await self._registry()).remove(own):
            raise Unknown("No such worker is registered.")
        return Response(status_code=204)

    async def _caller(self, request: Request) -> tuple[str, str]:
        if self._authenticate is None:
            raise Unauthenticated(
                "This server takes no registrations; start it with --worker-registrations FILE."
            )
        own = await self._authenticate(request)
        token = bearer_token(request.headers.getlist("authorization"))
        if not isinstance(own, str) or token is None:
            raise Unauthenticated("The worker's credential is not known here; add it to the file.")
        return own, token

    async def _registry(self) -> WorkerRegistry:
        engine = await self._engine.get()
        return await engine.worker_registry()


def _peer(request: Request) -> str | None:
    """Return the address of the worker; behind a proxy the peer is the proxy."""
    if request.client is None or not _OF_PROXIES.isdisjoint(request.headers.keys()):
        return None
    return request.client.host


def registration_operations(
    settings: Settings, engine: EngineHolder, failures: FailureLimits
) -> list[Operation]:
    """Return the operations of workers.

    Raises:
        ConfigurationError: The file of credentials cannot be used.
    """
    registrations = Registrations(settings, engine, failures)
    return [
        Operation(
            "POST",
            "/workers",
            "Register as a remote tool worker, or renew the lease.",
            (Success(200, "The lease.", "application/json", Lease),),
            open_endpoint=registrations.register,
            body=Registration,
            refusals=(
                Unauthenticated,
                RequestTimeout,
                UnsupportedMediaType,
                HeldByAnotherOwner,
                TooManyRequests,
                Unavailable,
            ),
        ),
        Operation(
            "DELETE",
            "/workers/{name}",
            "Leave as a remote tool worker.",
            (Success(204, "Gone."),),
            open_endpoint=registrations.unregister,
            refusals=(Unauthenticated, Unknown, TooManyRequests, Unavailable),
        ),
    ]
