"""The operation that streams what changes for a user."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluicegate.server.operation_types import Operation, Parameter, Success
from sluicegate.server.schemas import UserEventMessage
from sluicegate.transports.user_events import MAX_CURSOR

if TYPE_CHECKING:
    from sluicegate.transports.user_events import UserEventsTransport


def user_event_operations(events: UserEventsTransport) -> list[Operation]:
    """Return the operation that streams the events of a user."""
    cursor = {"type": "string", "maxLength": MAX_CURSOR}
    return [
        Operation(
            "GET",
            "/events",
            "Stream what changes for the user; each event has an id, by which it is resumed.",
            (Success(200, "One JSON object per event.", "text/event-stream", UserEventMessage),),
            endpoint=events.stream,
            parameters=(
                Parameter(
                    "last-event-id", "header", cursor, "The id of the last event that was received."
                ),
                Parameter("after", "query", cursor, "The same, where no header can be set."),
            ),
        ),
    ]
