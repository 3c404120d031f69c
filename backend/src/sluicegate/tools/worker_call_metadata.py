"""The metadata of a call that a server sends to a worker.

A call carries an object with the fields of `WorkerCall` in MCP's ``_meta`` under `CALL_KEY`, and
beside it the trace context as W3C defines it (``traceparent``).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from typing import Any, Final

CALL_KEY: Final = "sluicegate/call"
TITLE_KEY: Final = "sluicegate/title"
ERROR_KEY: Final = "sluicegate/error"


@dataclass(frozen=True, slots=True)
class WorkerCall:
    """A call of a remote tool, as the server describes it to the worker.

    ``key`` is the idempotency key: 64 hexadecimal digits, the same each time this call runs.
    ``seconds`` is how long the server waits for the result. ``decided_by`` is the user who approved
    the call, None if it did not require approval. ``is_repeated``: it may have taken effect before.
    """

    id: str
    user: str
    app: str
    chat: str
    key: str
    seconds: float
    decided_by: str | None = None
    is_repeated: bool = False

    def as_meta(self) -> dict[str, Any]:
        """Return the entry for ``_meta``."""
        return {CALL_KEY: asdict(self)}


CURRENT_CALL: ContextVar[WorkerCall | None] = ContextVar("sluicegate_worker_call", default=None)


def worker_call() -> WorkerCall | None:
    """Return the call that a worker's function runs for; None outside of a call."""
    return CURRENT_CALL.get()


def call_from_meta(meta: Mapping[str, Any]) -> WorkerCall | None:
    """Read the call from ``_meta``; None if the entry is missing or not valid."""
    entry = meta.get(CALL_KEY)
    if not isinstance(entry, Mapping):
        return None
    texts = {name: entry.get(name) for name in ("id", "user", "app", "chat", "key")}
    seconds, decided_by = entry.get("seconds"), entry.get("decided_by")
    if not all(isinstance(text, str) for text in texts.values()):
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds <= 0:
        return None
    return WorkerCall(
        **{name: str(text) for name, text in texts.items()},
        seconds=float(seconds),
        decided_by=decided_by if isinstance(decided_by, str) else None,
        is_repeated=entry.get("is_repeated") is True,
    )
