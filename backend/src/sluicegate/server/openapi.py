"""The description of the API in OpenAPI 3.1, made from the table of operations."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from sluicegate.errors import (
    Forbidden,
    Malformed,
    RequestError,
    TooLarge,
    Unauthenticated,
    Unavailable,
)
from sluicegate.server.responses import INTERNAL, METHOD_NOT_ALLOWED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sluicegate.server.operations import Operation, Parameter, Success

_EVERYWHERE: Final = (Malformed, Forbidden, TooLarge)
_SIGNED_IN: Final = (Unauthenticated, Unavailable)
_RETRY: Final = (429, 503)
_OTHER_CODES: Final = {405: [METHOD_NOT_ALLOWED], 500: [INTERNAL]}


def description(operations: Iterable[Operation], *, prefix: str, version: str) -> dict[str, Any]:
    """Return the document as plain JSON."""
    paths: dict[str, Any] = {}
    for operation in operations:
        path = operation.path if operation.outside else prefix + operation.path
        paths.setdefault(path, {})[operation.method.lower()] = _operation(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "sluicegate",
            "version": version,
            "description": "A Google ADK agent for AI SDK clients.",
        },
        "paths": paths,
    }


def _operation(operation: Operation) -> dict[str, Any]:
    names = re.findall(r"\{(\w+)\}", operation.path)
    described: dict[str, Any] = {
        "summary": operation.summary,
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
            for name in names
        ]
        + [_parameter(parameter) for parameter in operation.parameters],
        "responses": {str(answer.status): _success(answer) for answer in operation.answers}
        | _refusals(operation),
    }
    if operation.body is not None:
        content = {operation.body_type: {"schema": operation.body}}
        described["requestBody"] = {"required": True, "content": content}
    return described


def _parameter(parameter: Parameter) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "in": parameter.place,
        "required": parameter.required,
        "schema": parameter.schema,
        "description": parameter.description,
    }


def _success(answer: Success) -> dict[str, Any]:
    described: dict[str, Any] = {"description": answer.description}
    if answer.media_type is not None:
        described["content"] = {answer.media_type: {"schema": answer.schema}}
    return described


def _refusals(operation: Operation) -> dict[str, Any]:
    kinds: list[type[RequestError]] = [*_EVERYWHERE, *operation.refusals]
    if operation.endpoint is not None or operation.is_upgrade:
        kinds += _SIGNED_IN
    codes: dict[int, list[str]] = {status: list(codes) for status, codes in _OTHER_CODES.items()}
    for kind in kinds:
        known = codes.setdefault(kind.status, [])
        known.extend(code for code in codes_of(kind) if code not in known)
    return {str(status): _refusal(status, codes[status]) for status in sorted(codes)}


def codes_of(kind: type[RequestError]) -> tuple[str, ...]:
    """Return the values of ``x-error-code`` that an error has."""
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
