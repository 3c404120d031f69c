"""Operations on the history of approvals: search it, export it, verify it (A10)."""

from __future__ import annotations

import io
import json
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from starlette.responses import StreamingResponse

from sluicegate.core.json_values import storable_text
from sluicegate.engine.approval_history import shown_entry
from sluicegate.errors import Malformed, Unavailable, Unknown
from sluicegate.server.approval_schemas import AuditVerification, HistoryExport, HistoryPage
from sluicegate.server.audit_csv import csv_writer
from sluicegate.server.operation_types import Operation, Parameter, Success
from sluicegate.server.query_parameters import LIMIT_SCHEMA, TEXT_SCHEMA, limit_of, text_of
from sluicegate.server.responses import json_response
from sluicegate.stores.approvals.audit_reading import HistoryFilter

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.requests import Request
    from starlette.responses import Response

    from sluicegate.engine.interface import Engine
    from sluicegate.stores.approvals.audit_reading import AuditEntry

_MAX_TIME: Final = 40
_TIME_SCHEMA: Final[dict[str, Any]] = {"type": "string", "format": "date-time"}
_MAX_TEXT: Final = 256
_ANY_TEXT: Final[dict[str, Any]] = {"type": "string", "maxLength": _MAX_TEXT}
_ROWS: Final = 500
"""Rows of an export that are sent at once."""

_FILTERS: Final = (
    Parameter(
        "q",
        "query",
        _ANY_TEXT,
        "Text in the tool, reason, approver, chat, approval; an auditor: user.",
    ),
    Parameter("tool", "query", _ANY_TEXT, "The name of the tool."),
    Parameter("action", "query", _ANY_TEXT, "The state that a call has got, such as `denied`."),
    Parameter("since", "query", _TIME_SCHEMA, "The first moment."),
    Parameter("until", "query", _TIME_SCHEMA, "The moment after the last one."),
)


def history_operations() -> list[Operation]:
    """Return the operations on the history."""
    return [
        Operation(
            "GET",
            "/history",
            "Search the user's history of approvals, an auditor that of all users, newest first.",
            (Success(200, "One page of the list.", "application/json", HistoryPage),),
            endpoint=_page,
            parameters=(
                *_FILTERS,
                Parameter("limit", "query", LIMIT_SCHEMA, "Entries on the page."),
                Parameter("after", "query", TEXT_SCHEMA, "The `next` of the page before."),
            ),
            refusals=(Unknown,),
        ),
        Operation(
            "GET",
            "/history/export.csv",
            "Download the history as CSV, in which no value is a formula.",
            (Success(200, "The file.", "text/csv", str),),
            endpoint=_export_csv,
            parameters=_FILTERS,
            refusals=(Unknown,),
        ),
        Operation(
            "GET",
            "/history/export.json",
            "Download the history as JSON, with the verification of the trail.",
            (Success(200, "The file.", "application/json", HistoryExport),),
            endpoint=_export_json,
            parameters=_FILTERS,
            refusals=(Unknown, Unavailable),
        ),
        Operation(
            "GET",
            "/history/verification",
            "Verify that every line of the audit trail is as it was written.",
            (Success(200, "What was found.", "application/json", AuditVerification),),
            endpoint=_verification,
            refusals=(Unknown, Unavailable),
        ),
    ]


async def _page(request: Request, engine: Engine, user: str) -> Response:
    page = await engine.history.page(
        user=user,
        selection=_selection(request),
        limit=limit_of(request),
        after=text_of(request, "after"),
    )
    return json_response(page)


async def _verification(_request: Request, engine: Engine, _user: str) -> Response:
    return json_response(await engine.history.verify())


async def _export_csv(request: Request, engine: Engine, user: str) -> Response:
    entries = engine.history.entries(user=user, selection=_selection(request))
    return _download(_csv(entries), "csv", "text/csv; charset=utf-8")


async def _export_json(request: Request, engine: Engine, user: str) -> Response:
    selection = _selection(request)
    verification = await engine.history.verify()
    entries = engine.history.entries(user=user, selection=selection)
    return _download(_json(entries, verification), "json", "application/json")


def _download(content: AsyncIterator[str], extension: str, media_type: str) -> Response:
    return StreamingResponse(
        content,
        media_type=media_type,
        headers={
            "cache-control": "no-store",
            "x-content-type-options": "nosniff",
            "content-disposition": f'attachment; filename="approvals.{extension}"',
        },
    )


async def _csv(entries: AsyncIterator[AuditEntry]) -> AsyncIterator[str]:
    out = io.StringIO()
    write = csv_writer(out)
    waiting = 0
    async for entry in entries:
        write(entry)
        waiting += 1
        if waiting == _ROWS:
            yield _taken(out)
            waiting = 0
    yield _taken(out)


def _taken(out: io.StringIO) -> str:
    text = out.getvalue()
    out.seek(0)
    out.truncate()
    return text.encode("utf-8", "replace").decode()


async def _json(
    entries: AsyncIterator[AuditEntry], verification: dict[str, Any]
) -> AsyncIterator[str]:
    yield f'{{"verification":{json.dumps(verification)},"entries":['
    separator = ""
    async for entry in entries:
        yield f"{separator}{json.dumps(shown_entry(entry))}"
        separator = ",\n"
    yield "]}"


def _selection(request: Request) -> HistoryFilter:
    return HistoryFilter(
        text=_searched(request, "q"),
        tool=_searched(request, "tool"),
        action=_searched(request, "action"),
        since=_time_of(request, "since"),
        until=_time_of(request, "until"),
    )


def _searched(request: Request, name: str) -> str | None:
    """Return a text to search for, None if it is absent or empty; raises Malformed."""
    text = request.query_params.get(name, "")
    if len(text) > _MAX_TEXT:
        raise Malformed(f"The parameter {name} may have {_MAX_TEXT} characters.")
    # No line has a character that the stores refuse.
    return storable_text(text) or None


def _time_of(request: Request, name: str) -> float | None:
    text = request.query_params.get(name)
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text.upper())
        if moment.tzinfo is not None and len(text) <= _MAX_TIME:
            return moment.timestamp()
    except (OverflowError, ValueError):
        pass
    raise Malformed(f"The parameter {name} must be a time such as 2026-01-31T12:00:00Z.")
