"""The OpenAPI document of the API's operations."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from sluicegate.errors import (
    Forbidden,
    Malformed,
    RequestError,
    TooLarge,
    TooManyRequests,
    Unauthenticated,
    Unavailable,
    Unknown,
)
from sluicegate.server.responses import INTERNAL, METHOD_NOT_ALLOWED
from sluicegate.server.schemas import schema_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sluicegate.server.operation_types import Operation, Parameter, Success

_EVERYWHERE: Final = (Malformed, Forbidden, TooLarge)
_AUTHENTICATED: Final = (Unauthenticated, TooManyRequests, Unavailable)
_RETRY: Final = (429, 503)
_OTHER_CODES: Final = {405: [METHOD_NOT_ALLOWED], 500: [INTERNAL]}
_DESCRIPTION: Final = (
    "A Google ADK agent for AI SDK clients. No text in a JSON body may contain the character "
    "U+0000, and no whole number may be beyond 2^53. The paths under `x-websockets` are the "
    "handshakes of WebSockets; the protocol describes their frames."
)
_PARAMETER: Final = re.compile(r"\{(\w+)(?::\w+)?\}")


def describe_api(operations: Iterable[Operation], *, prefix: str, version: str) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document as plain JSON.

    OpenAPI has no word for a socket: the handshakes are below ``x-websockets``, by path, and not
    among the operations of ``paths``.
    """
    paths: dict[str, Any] = {}
    sockets: dict[str, Any] = {}
    components: dict[str, Any] = {}
    for operation in operations:
        path = operation.path if operation.outside else prefix + operation.path
        described = _operation(operation, components)
        if operation.is_upgrade:
            sockets[path] = described
        else:
            methods = paths.setdefault(_PARAMETER.sub(r"{\1}", path), {})
            methods[operation.method.lower()] = described
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "sluicegate",
            "version": version,
            "description": _DESCRIPTION,
        },
        "paths": paths,
        "x-websockets": sockets,
        "components": {"schemas": dict(sorted(components.items()))},
    }


def _operation(operation: Operation, components: dict[str, Any]) -> dict[str, Any]:
    described: dict[str, Any] = {
        "summary": operation.summary,
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
            for name in _PARAMETER.findall(operation.path)
        ]
        + [_parameter(parameter, components) for parameter in operation.parameters],
        "responses": {
            str(answer.status): _success(answer, components) for answer in operation.answers
        }
        | _refusals(operation),
    }
    if operation.body is not None:
        content = {operation.body_type: {"schema": _schema(operation.body, components)}}
        described["requestBody"] = {"required": True, "content": content}
    return described


def _schema(schema: Any, components: dict[str, Any]) -> dict[str, Any]:
    if isinstance(schema, dict):
        return schema
    described, referenced = schema_of(schema)
    components.update(referenced)
    return described


def _parameter(parameter: Parameter, components: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "in": parameter.place,
        "required": parameter.required,
        "schema": _schema(parameter.schema, components),
        "description": parameter.description,
    }


def _success(answer: Success, components: dict[str, Any]) -> dict[str, Any]:
    described: dict[str, Any] = {"description": answer.description}
    if answer.media_type is not None:
        schema = _schema(answer.schema, components)
        described["content"] = {answer.media_type: {"schema": schema}}
    return described


def _refusals(operation: Operation) -> dict[str, Any]:
    kinds: list[type[RequestError]] = [*_EVERYWHERE, *operation.refusals]
    if _PARAMETER.search(operation.path):
        kinds.append(Unknown)
    if operation.endpoint is not None or operation.is_upgrade:
        kinds += _AUTHENTICATED
    codes: dict[int, list[str]] = {status: list(codes) for status, codes in _OTHER_CODES.items()}
    for kind in kinds:
        of_status = codes.setdefault(kind.status, [])
        of_status.extend(code for code in codes_of(kind) if code not in of_status)
    return {str(status): _refusal(status, codes[status]) for status in sorted(codes)}


def codes_of(kind: type[RequestError]) -> tuple[str, ...]:
    """Return the values of ``x-error-code`` of an error."""
    return ("origin", "host") if kind is Forbidden else (kind.code,)


def _refusal(status: int, codes: list[str]) -> dict[str, Any]:
    headers: dict[str, Any] = {
        "x-error-code": {"required": True, "schema": {"type": "string", "enum": codes}}
    }
    if status in _RETRY:
        headers["retry-after"] = {
            "required": True,
            "description": "Seconds to wait.",
            "schema": {"type": "integer"},
        }
    return {
        "description": "Refused; the body is one plain sentence.",
        "headers": headers,
        "content": {"text/plain": {"schema": {"type": "string"}}},
    }
