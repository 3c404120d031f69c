"""The state that the objects of one open live chat share."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine
    from typing import Any

    from sluicegate.core.chat_and_turn_keys import ChatKey
    from sluicegate.engine.client_request_options import RequestingClient
    from sluicegate.engine.open_resources import EngineResources
    from sluicegate.live.options import LiveOptions, LiveTimings
    from sluicegate.live.outgoing_frame_queue import LiveFrameQueue


@dataclass(slots=True)
class LiveContext:
    """A chat whose lease is held; ``client`` sent the latest request."""

    resources: EngineResources
    chat: ChatKey
    owner: str
    fence: int
    client: RequestingClient
    outbox: LiveFrameQueue
    request_lock: Callable[[], asyncio.Lock]
    """Returns the lock under which requests of the chat are planned; acquired before `lock`."""
    approve: Callable[[str], Awaitable[object]]
    """Approves a call, by the id of its request, as the user has said; raises RequestError."""
    options: LiveOptions
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held to choose the next turn that is published."""
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def timings(self) -> LiveTimings:
        """The limits and intervals of the chat."""
        return self.options.timings

    def approval_ttl(self, agent: str, tool: str) -> float:
        """Return how many seconds an approval of an agent's tool waits: the model waits too.

        Other people are not present, and have the time that is declared.
        """
        declared = self.resources.builder.approval_ttl(agent, tool)
        if self.resources.survey.of_chat(self.chat).terms(agent, tool).approvers is not None:
            return declared
        return min(declared, self.resources.options.live_approval_ttl)

    def record(self, frame: dict[str, Any] | bytes) -> None:
        """Record a frame or audio of the client."""
        if self.resources.recorder is not None:
            self.resources.recorder.frame(self.chat, frame, sender="client")

    def spawn(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        """Run a coroutine as a task of this chat."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def wait_for_tasks(self) -> None:
        """Wait until all other tasks of this chat have ended."""
        current = asyncio.current_task()
        while others := [task for task in self._tasks if task is not current]:
            await asyncio.wait(others)
