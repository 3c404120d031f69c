"""The endpoints at which remote tool workers announce themselves and leave (S1-R23, S1-R35)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from starlette.responses import Response

from sluicegate.errors import (
    HeldElsewhere,
    Malformed,
    RequestTimeout,
    Unauthenticated,
    Unavailable,
    Unknown,
    UnsupportedMediaType,
)
from sluicegate.server.authentication import BearerFile, bearer_token
from sluicegate.server.operations import Operation, Success
from sluicegate.server.responses import json_response
from sluicegate.transports.http_requests import BodyLimits, read_json

if TYPE_CHECKING:
    from starlette.requests import Request

    from sluicegate.server.app import EngineHolder
    from sluicegate.server.settings import Settings
    from sluicegate.tools.worker_registry import WorkerRegistry

_MAX_BODY: Final = 4 * 1024
_MAX_URL: Final = 2_000
_TEXT: Final[dict[str, Any]] = {"type": "string"}
_WORKER: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"name": _TEXT, "url": {"type": "string", "format": "uri"}},
    "required": ["name", "url"],
    "additionalProperties": False,
}
_LEASE: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "name": _TEXT,
        "tools": {"type": "array", "items": _TEXT},
        "lease": {"type": "number", "description": "Seconds in which to register again."},
    },
    "required": ["name", "tools", "lease"],
}


class Registrations:
    """Takes workers whose credential stands in a file of their own; users are strangers here."""

    def __init__(self, settings: Settings, engine: EngineHolder) -> None:
        """Read the file; raises ConfigurationError if it cannot be used."""
        file = settings.worker_registrations
        self._known = None if file is None else BearerFile(Path(file))
        self._engine = engine
        self._limits = BodyLimits(_MAX_BODY, settings.body_timeout)

    async def register(self, request: Request) -> Response:
        """Register a worker or renew its lease."""
        own, token = await self._caller(request)
        body = await read_json(request, self._limits)
        if not isinstance(body, dict) or set(body) != {"name", "url"}:
            raise Malformed("A registration has a name and a url; send these two.")
        name, url = body["name"], body["url"]
        if not isinstance(name, str) or not isinstance(url, str) or len(url) > _MAX_URL:
            raise Malformed("The name and the url of a worker are texts; send them as such.")
        if name != own:
            raise Unauthenticated("This credential is another worker's; register under its name.")
        registry = await self._registry()
        tools = await registry.register(name, url, token)
        return json_response({"name": name, "tools": tools, "lease": registry.lease})

    async def leave(self, request: Request) -> Response:
        """Take the worker away that calls."""
        own, _ = await self._caller(request)
        if request.path_params["name"] != own or not await (await self._registry()).remove(own):
            raise Unknown("No such worker is registered.")
        return Response(status_code=204)

    async def _caller(self, request: Request) -> tuple[str, str]:
        if self._known is None:
            raise Unauthenticated(
                "This server takes no registrations; start it with --worker-registrations FILE."
            )
        own = await self._known(request)
        token = bearer_token(request.headers.getlist("authorization"))
        if own is None or token is None:
            raise Unauthenticated("The worker's credential is not known here; add it to the file.")
        return own, token

    async def _registry(self) -> WorkerRegistry:
        engine = await self._engine.get()
        return await engine.worker_registry()


def worker_operations(registrations: Registrations) -> list[Operation]:
    """Return the operations of workers; none of them is for users."""
    return [
        Operation(
            "POST",
            "/workers",
            "Register as a remote tool worker, or renew the lease.",
            (Success(200, "The lease.", "application/json", _LEASE),),
            open_endpoint=registrations.register,
            body=_WORKER,
            refusals=(
                Unauthenticated,
                RequestTimeout,
                UnsupportedMediaType,
                HeldElsewhere,
                Unavailable,
            ),
        ),
        Operation(
            "DELETE",
            "/workers/{name}",
            "Leave as a remote tool worker.",
            (Success(204, "Gone."),),
            open_endpoint=registrations.leave,
            refusals=(Unauthenticated, Unknown, Unavailable),
        ),
    ]
