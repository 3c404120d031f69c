"""The history of approvals that a person may see, and the verification of the trail (A10)."""

from __future__ import annotations

import asyncio
import re
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from sluicegate.core.approvers import AUDITOR
from sluicegate.errors import ConfigurationError, Unavailable, Unknown
from sluicegate.stores.approvals.audit_verification import verify_audit
from sluicegate.wire.iso_times import iso_time

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from sluicegate.engine.entitlement import Entitlement
    from sluicegate.stores.approvals.audit_reading import AuditEntry, AuditTrail, HistoryFilter

VERIFICATION_SECONDS: Final = 60.0
"""Seconds for which a result is reused, since a verification reads the whole trail."""

_CURSOR: Final = re.compile(r"[1-9][0-9]{0,17}")


class ApprovalHistory:
    """The audit trail of an app, as far as a person may see it.

    That is what concerns the chats of the person, and what the person did to calls of others; an
    auditor sees that of all users.

    Args:
        app: The name of the app.
        trail: Its entries.
        entitlement: The roles of users.
        database: The URL of the database, which a verification reads over a connection of its own.
        clock: Seconds of a monotonic clock.
    """

    def __init__(
        self,
        app: str,
        trail: AuditTrail,
        entitlement: Entitlement,
        database: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._app = app
        self._trail = trail
        self._entitlement = entitlement
        self._database = database
        self._clock = clock
        self._verifying: asyncio.Task[dict[str, Any]] | None = None
        self._verified_at = 0.0

    async def page(
        self, *, user: str, selection: HistoryFilter, limit: int, after: str | None
    ) -> dict[str, Any]:
        """``{entries: [...], next}``, newest first.

        Raises:
            Unknown: the cursor ``after`` is none of ours.
        """
        if after is not None and not _CURSOR.fullmatch(after):
            raise Unknown("This page cannot be found; load the list again from its start.")
        before = None if after is None else int(after)
        seen = await self._seen_by(user)
        found = await self._trail.page(self._app, seen, selection, limit=limit + 1, before=before)
        page = found[:limit]
        following = str(page[-1].id) if len(found) > limit else None
        return {"entries": [shown_entry(entry) for entry in page], "next": following}

    async def entries(self, *, user: str, selection: HistoryFilter) -> AsyncIterator[AuditEntry]:
        """Read all entries, newest first."""
        async for entry in self._trail.entries(self._app, await self._seen_by(user), selection):
            yield entry

    async def verify(self) -> dict[str, Any]:
        """``{state, checkedAt, detail?}``: whether every line of the trail is as it was written.

        A result is shown again for `VERIFICATION_SECONDS`.

        Raises:
            Unavailable: the trail cannot be read now.
        """
        is_old = self._clock() - self._verified_at >= VERIFICATION_SECONDS
        if self._verifying is None or (self._verifying.done() and is_old):
            self._verifying = asyncio.create_task(self._verify())
        task = self._verifying
        try:
            return await asyncio.shield(task)
        except ConfigurationError as error:
            if self._verifying is task:
                self._verifying = None
            raise Unavailable("The audit trail cannot be verified now; try again later.") from error

    async def _seen_by(self, user: str) -> str | None:
        """The user whose entries a person sees; None for those of all users."""
        return None if AUDITOR in await self._entitlement.roles(user) else user

    async def _verify(self) -> dict[str, Any]:
        # In a thread: it computes a digest of every line, and turns must go on.
        found = await asyncio.to_thread(lambda: asyncio.run(verify_audit(self._database)))
        self._verified_at = self._clock()
        checked = datetime.now(UTC).isoformat(timespec="milliseconds")
        if found.broken is None:
            return {"state": "intact", "checkedAt": checked}
        return {"state": "broken", "checkedAt": checked, "detail": found.broken}


def shown_entry(entry: AuditEntry) -> dict[str, Any]:
    """Return an entry as the API shows it."""
    shown: dict[str, Any] = {
        "id": entry.id,
        "at": iso_time(entry.at),
        "requester": entry.user,
        "chatId": entry.chat,
        "tool": entry.tool,
        "action": entry.action,
    }
    optional = {
        "approvalId": entry.approval_id or None,
        "by": entry.by,
        "via": entry.via,
        "reason": entry.reason,
        "argumentsHash": entry.args_hash,
    }
    return shown | {name: value for name, value in optional.items() if value is not None}
