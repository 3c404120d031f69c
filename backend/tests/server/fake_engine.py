"""An in-memory engine that plays scripted chunks and records its calls."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias, cast

from starlette.applications import Starlette

from sluicegate.engine.client_request_options import RequestingClient
from sluicegate.engine.interface import Engine
from sluicegate.errors import RequestError, Unknown
from sluicegate.server.app import Application, build
from sluicegate.server.authentication import Authenticate
from sluicegate.server.settings import Settings
from sluicegate.stores.approvals.audit_reading import AuditEntry
from sluicegate.stores.cookie_sessions import MemoryCookieSessions
from sluicegate.stores.streams.valkey_shared_rate_limits import SharedLimit
from sluicegate.wire.chunks import (
    BaseChunk,
    FinishChunk,
    StartChunk,
    TextDeltaChunk,
    TextEndChunk,
    TextStartChunk,
)
from sluicegate.wire.encoding import to_json
from sluicegate.wire.requests import ChatRequest

Step: TypeAlias = BaseChunk | Exception | asyncio.Event
"""A step of a reader: yield a chunk, raise, or wait for the event."""

MESSAGE = "msg-1"

PAGE = Path(__file__).parent / "page"
"""A fake build of the page."""


def answer(*texts: str) -> list[Step]:
    """The chunks of a message with one text block."""
    return [
        StartChunk(message_id=MESSAGE),
        TextStartChunk(id="t"),
        *(TextDeltaChunk(id="t", delta=text) for text in texts),
        TextEndChunk(id="t"),
        FinishChunk(finish_reason="stop", message_metadata={}),
    ]


class FakeReader:
    """Plays steps and counts how often it was closed."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps = steps
        self.behind = 0
        self.closed = asyncio.Event()
        self.times_closed = 0
        self.aborted = False

    async def texts(self) -> AsyncIterator[list[str]]:
        for step in self._steps:
            if isinstance(step, Exception):
                raise step
            if isinstance(step, asyncio.Event):
                await step.wait()
            else:
                yield [to_json(step)]

    async def aclose(self, *, aborted: bool = False) -> None:
        await asyncio.sleep(0)
        self.aborted = aborted
        self.times_closed += 1
        self.closed.set()


class FakeHistory:
    """The history of a fake engine; ``lines`` are those of an export."""

    def __init__(self, engine: FakeEngine) -> None:
        self._engine = engine

    async def page(
        self, *, user: str, selection: Any, limit: int, after: str | None
    ) -> dict[str, Any]:
        self._engine._note("history", user, selection, limit, after)
        return {"entries": [], "next": None}

    async def entries(self, *, user: str, selection: Any) -> AsyncIterator[AuditEntry]:
        self._engine._note("export", user, selection)
        for entry in self._engine.lines:
            yield entry

    async def verify(self) -> dict[str, Any]:
        self._engine._note("verify")
        return {"state": "intact", "checkedAt": "2026-01-01T00:00:00.000+00:00"}


class FakeEngine:
    """Has the interface of the engine; ``calls`` are the recorded calls in order."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.steps: Sequence[Step] = answer("Hello")
        self.readers: list[FakeReader] = []
        self.refusal: Exception | None = None
        self.runs = True
        self.pause: asyncio.Event | None = None
        """The preparation of a turn waits for this event."""
        self.chats: dict[tuple[str, str], dict[str, Any]] = {}
        self.files: dict[tuple[str, str, str], tuple[bytes, str]] = {}
        self.not_ready: RequestError | None = None
        self.notes: list[str] = []
        self.lines: list[AuditEntry] = []
        self.opened = 0
        self.closed = 0
        self._one_more = asyncio.Event()
        self.cookie_sessions = MemoryCookieSessions()

    async def open(self) -> Engine:
        self.opened += 1
        if isinstance(self.refusal, Exception) and not isinstance(self.refusal, RequestError):
            raise self.refusal
        return cast("Engine", self)

    def share_rate(self, limit: SharedLimit) -> None:
        """No effect: there is one process."""

    async def close(self) -> None:
        self.closed += 1

    async def start(
        self, request: ChatRequest, *, user: str, client: RequestingClient
    ) -> FakeReader:
        self._note("start", request, user, client)
        if self.pause is not None:
            await self.pause.wait()
        return self._reader()

    async def resume(
        self, chat_id: str, *, user: str, client: RequestingClient
    ) -> FakeReader | None:
        self._note("resume", chat_id, user, client)
        return self._reader() if self.runs else None

    async def stop(self, chat_id: str, *, user: str) -> None:
        self._note("stop", chat_id, user)

    async def has_readers(self, count: int) -> None:
        """Wait until ``count`` requests have a reader."""
        while len(self.readers) < count:
            self._one_more.clear()
            await self._one_more.wait()

    @property
    def history(self) -> FakeHistory:
        return FakeHistory(self)

    async def list_chats(
        self, *, user: str, limit: int, after: str | None, query: str | None
    ) -> dict[str, Any]:
        self._note("list_chats", user, limit, after, query)
        return {"chats": [], "next": None}

    async def get_chat(self, chat_id: str, *, user: str) -> dict[str, Any]:
        self._note("get_chat", chat_id, user)
        if (user, chat_id) not in self.chats:
            raise Unknown
        return self.chats[user, chat_id]

    async def get_version(
        self, chat_id: str, message_id: str, version: int, *, user: str
    ) -> dict[str, Any]:
        self._note("get_version", chat_id, message_id, version, user)
        return {"version": version, "messages": []}

    async def rename_chat(self, chat_id: str, title: str, *, user: str) -> None:
        self._note("rename_chat", chat_id, title, user)

    async def delete_chat(self, chat_id: str, *, user: str) -> None:
        self._note("delete_chat", chat_id, user)

    async def save_file(
        self, chat_id: str, data: bytes, media_type: str, *, title: str | None, user: str
    ) -> dict[str, Any]:
        self._note("save_file", chat_id, data, media_type, title, user)
        url = f"/api/chats/{chat_id}/files/a.png"
        return {"url": url, "mediaType": media_type, "name": "a.png"}

    async def get_file(self, chat_id: str, name: str, *, user: str) -> tuple[bytes, str]:
        self._note("get_file", chat_id, name, user)
        if (user, chat_id, name) not in self.files:
            raise Unknown
        return self.files[user, chat_id, name]

    @property
    def approvals(self) -> FakeEngine:
        return self

    async def grants(self, chat_id: str, *, user: str) -> dict[str, Any]:
        self._note("grants", chat_id, user)
        return {"grants": []}

    async def revoke(self, chat_id: str, tool: str, *, user: str, via: str) -> None:
        self._note("revoke", chat_id, tool, user, via)

    async def waiting(
        self, *, user: str, limit: int, after: str | None, selection: Any
    ) -> dict[str, Any]:
        self._note("waiting", user, limit, after, selection)
        return {"approvals": [], "next": None}

    async def unknown_outcomes(
        self, *, user: str, limit: int, after: str | None, selection: Any
    ) -> dict[str, Any]:
        self._note("unknown", user, limit, after, selection)
        return {"approvals": [], "next": None}

    async def resolve(self, approval_id: str, said: Any, *, user: str, via: str) -> dict[str, Any]:
        self._note("resolve", approval_id, said, user, via)
        return {"approvalId": approval_id}

    async def get(self, approval_id: str, *, user: str) -> dict[str, Any]:
        self._note("get", approval_id, user)
        return {"approvalId": approval_id}

    async def decide(self, approval_id: str, said: Any, *, user: str, via: str) -> dict[str, Any]:
        self._note("decide", approval_id, said, user, via)
        return {"approvalId": approval_id}

    def ask_roles(self, roles_of: Any) -> None:
        self.roles_of = roles_of

    async def record_roles(self, user: str, roles: frozenset[str]) -> None:
        self.calls.append(("record_roles", user, roles))

    async def ready(self) -> list[str]:
        if self.not_ready is not None:
            raise self.not_ready
        return self.notes

    def _note(self, *call: Any) -> None:
        self.calls.append(call)
        if self.refusal is not None:
            raise self.refusal

    def _reader(self) -> FakeReader:
        self.readers.append(FakeReader(self.steps))
        self._one_more.set()
        return self.readers[-1]


def application(
    engine: FakeEngine,
    *,
    authenticate: Authenticate | None = None,
    clock: Callable[[], float] = time.monotonic,
    **settings: Any,
) -> Application:
    """The real application with the fake engine; the environment is not read."""
    return build(
        engine.open, Settings(**settings), authenticate=authenticate, page_folder=PAGE, clock=clock
    )


def fake_app(
    engine: FakeEngine, *, authenticate: Authenticate | None = None, **settings: Any
) -> Starlette:
    """Only the Starlette application."""
    return application(engine, authenticate=authenticate, **settings).app
