"""The engine of an application: opened by the lifespan or the first request, closed once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from sluicegate.engine.interface import Engine

OpenEngine: TypeAlias = Callable[[], Awaitable["Engine"]]
"""Opens the engine of an application."""


class EngineHolder:
    """The engine of an application, opened by the lifespan or by the first request.

    A mounted application gets no lifespan events. There an asynchronous generator holds the
    engine, and every event loop closes its generators before it ends.
    """

    def __init__(self, open_engine: OpenEngine) -> None:
        self._open_engine = open_engine
        self._holding: AsyncGenerator[Engine] | None = None
        self._opening: asyncio.Task[Engine] | None = None

    async def get(self) -> Engine:
        """Return the engine; the first call opens it, concurrent calls wait for that.

        Raises:
            ConfigurationError: The engine refuses the agent or a setting.
        """
        opening = self._opening
        # A test client starts an event loop per request; an engine lives in one.
        if opening is None or opening.get_loop() is not asyncio.get_running_loop():
            opening = self._opening = asyncio.create_task(self._open())
        try:
            return await asyncio.shield(opening)
        except BaseException:
            if opening.done() and opening is self._opening:
                self._opening = None
            raise

    @property
    def opened(self) -> Engine | None:
        """The engine, if it is open."""
        opening = self._opening
        if opening is None or not opening.done() or opening.cancelled():
            return None
        return None if opening.exception() is not None else opening.result()

    async def close(self) -> None:
        """Close the engine if it is open."""
        holding, self._holding, self._opening = self._holding, None, None
        if holding is not None:
            await holding.aclose()

    async def _open(self) -> Engine:
        self._holding = self._hold()
        return await anext(self._holding)

    async def _hold(self) -> AsyncGenerator[Engine]:
        engine = await self._open_engine()
        try:
            yield engine
        finally:
            self._opening = None
            await engine.close()
