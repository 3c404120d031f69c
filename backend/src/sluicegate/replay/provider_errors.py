"""The errors of a provider: the scripted ones as exceptions, and their HTTP status."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from google.genai import errors

if TYPE_CHECKING:
    from sluicegate.replay.scenario import ScriptedError

_STATUS: Final = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "ABORTED",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
_CODE: Final = {status: code for code, status in _STATUS.items()}


def provider_error(error: ScriptedError) -> errors.APIError:
    """Return the exception that the provider's library raises."""
    kind = errors.ClientError if error.code < 500 else errors.ServerError
    status = _STATUS.get(error.code, "UNKNOWN")
    detail = {"code": error.code, "message": error.message, "status": status}
    return kind(error.code, {"error": detail})


def http_status_of(status: str) -> int:
    """Return the HTTP status of an ``Event.error_code``, 500 for an unknown one."""
    return _CODE.get(status, 500)
