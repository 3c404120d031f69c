"""What a worker's function may know of the call it runs for, and how server and worker say it.

A call carries in MCP's ``_meta`` under `CALL_KEY` an object with the fields of `WorkerCall`, and
beside it the trace as W3C has it (``traceparent``).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from typing import Any, Final

from sluicegate.errors import ConfigurationError

CALL_KEY: Final = "sluicegate/call"
TITLE_KEY: Final = "sluicegate/title"
ERROR_KEY: Final = "sluicegate/error"


@dataclass(frozen=True, slots=True)
class WorkerCall:
    """A call of a remote tool, as the server tells the worker.

    ``key`` is the idempotency key: 64 hexadecimal digits, the same each time this call runs.
    ``seconds`` is how long the server waits for the end. ``decided_by`` is who approved the call,
    None where nobody was asked. ``is_repeated``: it may have taken effect before.
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
        """The call as it stands in ``_meta``."""
        return {CALL_KEY: asdict(self)}


CURRENT_CALL: ContextVar[WorkerCall | None] = ContextVar("sluicegate_worker_call", default=None)


def worker_call() -> WorkerCall | None:
    """Return the call that a worker's function runs for; None outside of one."""
    return CURRENT_CALL.get()


def call_in(meta: Mapping[str, Any]) -> WorkerCall | None:
    """Read what a server says of a call; None from one that says nothing, or nonsense."""
    said = meta.get(CALL_KEY)
    if not isinstance(said, Mapping):
        return None
    texts = {name: said.get(name) for name in ("id", "user", "app", "chat", "key")}
    seconds, decided_by = said.get("seconds"), said.get("decided_by")
    if not all(isinstance(text, str) for text in texts.values()):
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds <= 0:
        return None
    return WorkerCall(
        **{name: str(text) for name, text in texts.items()},
        seconds=float(seconds),
        decided_by=decided_by if isinstance(decided_by, str) else None,
        is_repeated=said.get("is_repeated") is True,
    )


def require_mcp() -> None:
    """Refuse to go on without the package that speaks the protocol.

    Raises:
        ConfigurationError: It is not installed.
    """
    if find_spec("mcp") is None:
        raise ConfigurationError(
            "Remote tool workers need the package mcp; install sluicegate[workers]."
        )
