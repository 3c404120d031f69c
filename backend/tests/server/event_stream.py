"""Reads ``GET /events`` of a server, as a page does."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx

LIMIT = 30.0
"""Seconds for an event; only a defect takes so long."""


class EventStream:
    """One connection; ``events`` are the events that were read, and ``position`` the last id."""

    def __init__(self, response: httpx.Response) -> None:
        self.response = response
        self.events: list[dict[str, Any]] = []
        self.fields: list[str] = []
        """The fields and comments that are no events."""
        self.position = ""
        self._lines = response.aiter_lines()

    async def next(self) -> dict[str, Any]:
        """Read the next event; StopAsyncIteration at the end of the response."""
        async with asyncio.timeout(LIMIT):
            while not (await self._line()).startswith("data: "):
                pass
        return self.events[-1]

    async def comment(self) -> str:
        """Read up to the next comment."""
        async with asyncio.timeout(LIMIT):
            while not (line := await self._line()).startswith(":"):
                pass
        return line

    async def until(self, **values: Any) -> list[dict[str, Any]]:
        """Read up to the first event with these values; returns the events that were read."""
        start = len(self.events)
        while not values.items() <= (await self.next()).items():
            pass
        return self.events[start:]

    async def to_the_end(self) -> list[str]:
        """Read to the end; returns the fields and comments that are no events."""
        with contextlib.suppress(StopAsyncIteration):
            while True:
                await self.next()
        return self.fields

    async def _line(self) -> str:
        line = await anext(self._lines)
        if line.startswith("id: "):
            self.position = line[4:]
        elif line.startswith("data: "):
            self.events.append(json.loads(line[6:]))
        elif line:
            self.fields.append(line)
        return line


@contextlib.asynccontextmanager
async def events_of(
    http: httpx.AsyncClient, *, after: str | None = None, **headers: str
) -> AsyncIterator[EventStream]:
    """Connect; the first event is ``ready`` or ``reset``."""
    if after is not None:
        headers["last-event-id"] = after
    timeout = httpx.Timeout(LIMIT)
    async with http.stream("GET", "/api/events", headers=headers, timeout=timeout) as response:
        assert response.status_code == 200, await response.aread()
        yield EventStream(response)
