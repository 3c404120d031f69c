"""The operations that send, resume and stop a turn over SSE."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sluicegate.errors import (
    AlreadyDecided,
    Changed,
    HeldByAnotherOwner,
    NoPreview,
    NotEntitled,
    NotRewindable,
    RequestTimeout,
    Superseded,
    TooManyRequests,
    TurnRunning,
    Unknown,
    UnsupportedMediaType,
    WouldForgetEffect,
)
from sluicegate.server.operation_types import Operation, Parameter, Success
from sluicegate.server.schemas import ChatRequest, ServerSentEvent

if TYPE_CHECKING:
    from sluicegate.transports.sse import SseTransport

_STREAM: Final = Success(
    200,
    "A UI message stream (version 1), ended by `data: [DONE]`.",
    "text/event-stream",
    ServerSentEvent,
)
_CLIENT: Final = (
    Parameter(
        "x-ai-sdk",
        "header",
        {"enum": ["6", "7"], "type": "string", "default": "6"},
        "The major version of the client's AI SDK; chunks are valid under its schema.",
    ),
    Parameter(
        "x-release",
        "header",
        {"type": "string", "enum": ["deferred", "preview", "progressive"]},
        "When text and results are released while approvals are open.",
    ),
)
_START_REFUSALS: Final = (
    RequestTimeout,
    UnsupportedMediaType,
    Unknown,
    TurnRunning,
    AlreadyDecided,
    Changed,
    NoPreview,
    NotEntitled,
    Superseded,
    WouldForgetEffect,
    NotRewindable,
    HeldByAnotherOwner,
    TooManyRequests,
)


def turn_operations(sse: SseTransport) -> list[Operation]:
    """Return the operations that send, resume and stop a turn."""
    return [
        Operation(
            "POST",
            "/chat",
            "Send a message or answers, and stream the turn.",
            (_STREAM,),
            endpoint=sse.send,
            body=ChatRequest,
            parameters=_CLIENT,
            refusals=_START_REFUSALS,
        ),
        Operation(
            "GET",
            "/chat/{id}/stream",
            "Resume: stream the running message from its beginning.",
            (_STREAM, Success(204, "Nothing runs.")),
            endpoint=sse.resume,
            parameters=_CLIENT,
            refusals=(Unknown,),
        ),
        Operation(
            "POST",
            "/chat/{id}/stop",
            "Stop the running turn.",
            (Success(204, "Stopped, or nothing ran."),),
            endpoint=sse.stop,
            refusals=(Unknown,),
        ),
    ]
