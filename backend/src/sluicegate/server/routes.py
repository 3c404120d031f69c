"""The routes of all operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.routing import Route

from sluicegate.server.authentication import identify

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from starlette.requests import Request
    from starlette.responses import Response

    from sluicegate.server.authentication import Authenticate
    from sluicegate.server.engine_holder import EngineHolder
    from sluicegate.server.operation_types import OpenEndpoint, Operation
    from sluicegate.server.user_request_limits import UserLimits


def routes(
    operations: Iterable[Operation],
    *,
    prefix: str,
    authenticate: Authenticate,
    engine: EngineHolder,
    limits: UserLimits,
) -> list[Route]:
    """Return one route per path; other methods are answered with 405 and the header ``allow``."""
    endpoints: dict[str, dict[str, OpenEndpoint]] = {}
    for operation in operations:
        path = operation.path if operation.outside else prefix + operation.path
        methods = endpoints.setdefault(path, {})
        methods[operation.method] = _open_endpoint(operation, authenticate, engine, limits)
    return [_route(path, methods) for path, methods in endpoints.items()]


def _open_endpoint(
    operation: Operation, authenticate: Authenticate, engine: EngineHolder, limits: UserLimits
) -> OpenEndpoint:
    endpoint = operation.endpoint
    if endpoint is None:
        if operation.open_endpoint is None:
            raise ValueError(f"{operation.method} {operation.path} has no endpoint")
        return operation.open_endpoint

    async def authenticated(request: Request) -> Response:
        user = await identify(authenticate, request)
        limits.count_request(user)
        limits.hold_connection(request, user)
        return await endpoint(request, await engine.get(), user)

    return authenticated


def _route(path: str, methods: dict[str, OpenEndpoint]) -> Route:
    async def dispatch(request: Request) -> Response:
        return await methods[request.method](request)

    endpoint: Callable[[Request], Awaitable[Response]] = dispatch
    route = Route(path, endpoint, methods=list(methods))
    # A HEAD request would start the work of a GET and discard it.
    route.methods = set(methods)
    return route
