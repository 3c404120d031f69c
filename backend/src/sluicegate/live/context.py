"""What the parts of one open live chat share."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    from sluicegate.core.keys import ChatKey
    from sluicegate.engine.resources import EngineResources
    from sluicegate.engine.turn.reader import Client
    from sluicegate.live.outbox import Outbox
    from sluicegate.live.run import LiveRun


@dataclass(slots=True)
class LiveContext:
    """The chat, its lease and its run; ``client`` is who spoke last."""

    parts: EngineResources
    chat: ChatKey
    owner: str
    fence: int
    client: Client
    out: Outbox
    alone: Callable[[], asyncio.Lock]
    """The lock under which requests of the chat are decided; it is taken before `lock`."""
    run: LiveRun | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Whoever decides what is told next has it."""
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def approval_ttl(self, tool: str) -> float:
        """Seconds an approval of that tool waits, where the model waits too."""
        parts = self.parts
        return min(parts.approval_ttl(tool), parts.options.live_approval_ttl)

    def note(self, said: dict[str, Any] | bytes) -> None:
        """Have a frame of the client recorded, or its audio."""
        if self.parts.tape is not None:
            self.parts.tape.frame(self.chat, said, sender="client")

    def soon(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        """Do something beside what is done now."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def idle(self) -> None:
        """Wait until nothing is done beside."""
        mine = asyncio.current_task()
        while others := [task for task in self._tasks if task is not mine]:
            await asyncio.wait(others)
