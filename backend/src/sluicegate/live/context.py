"""The state that the objects of one open live chat share, and the chat's lease (A2)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sluicegate.errors import HeldElsewhere, StoreError
from sluicegate.live.outbox import LEASE_LOST, ChatEnded

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine
    from typing import Any

    from google.adk.agents.run_config import RunConfig

    from sluicegate.core.chat_keys import ChatKey
    from sluicegate.engine.resources import EngineResources
    from sluicegate.engine.turn.reader import Client
    from sluicegate.live.outbox import Outbox


@dataclass(frozen=True, slots=True)
class LiveTimings:
    """Limits and intervals of a live chat, in seconds."""

    approval_poll: float = 1.0
    """Between two reads of the ledger while calls wait: another replica may have recorded a
    decision, or a deadline may have passed (A2)."""
    speech_grace: float = 10.0
    """For which a decision about an earlier exchange waits until the model has finished."""
    stop_grace: float = 2.0
    """In which a turn that was stopped has to get its last event from the run."""
    close_grace: float = 1.0
    """In which a run has to end after its connection to the model was closed."""
    words_grace: float = 3.0
    """In which a model begins to answer words, unless it keeps them waiting for a result."""
    phrase_pause: float = 1.5
    """In which an utterance that is a phrase goes on, unless it is over (`SpokenApprovals`)."""
    silent_answer: float = 5.0
    """After which a model that says nothing is taken to have answered."""
    first_audio: float = 0.1
    """For which the work that a spoken exchange begins with waits for the first audio."""


@dataclass(frozen=True, slots=True)
class LiveOptions:
    """How a chat is opened live.

    ``with_audio``: the client plays the model's audio. ``marked_by_client``: the client marks where
    the user's speech begins and ends; otherwise the model detects it. ``run_config`` configures the
    runs.
    """

    with_audio: bool
    marked_by_client: bool
    run_config: RunConfig
    timings: LiveTimings = field(default_factory=LiveTimings)


@dataclass(slots=True)
class LiveContext:
    """A chat whose lease is held; ``client`` sent the latest request."""

    resources: EngineResources
    chat: ChatKey
    owner: str
    fence: int
    client: Client
    outbox: Outbox
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


class LiveLease:
    """The lease of an open live chat: renewed, released to a turn of another kind, taken again."""

    def __init__(self, context: LiveContext) -> None:
        self._context = context
        self._is_held = asyncio.Event()
        self._is_held.set()
        self._renewal = asyncio.create_task(self._renew())

    @property
    def is_held(self) -> bool:
        """Whether this chat may write to the session."""
        return self._is_held.is_set()

    async def release(self) -> None:
        """Release the lease; renewal pauses until it is taken again."""
        self._is_held.clear()
        context = self._context
        await context.resources.leases.release(context.chat, context.owner, context.fence)

    async def take_again(self) -> bool:
        """Reacquire the released lease; False if another owner has it, which ends the chat."""
        context = self._context
        try:
            context.fence = await context.resources.leases.acquire(context.chat, context.owner)
        except (HeldElsewhere, StoreError):
            self._report_loss()
            return False
        self._is_held.set()
        return True

    async def close(self) -> None:
        """Stop renewing the lease and release it."""
        self._renewal.cancel()
        if self.is_held:
            await self.release()

    async def _renew(self) -> None:
        context = self._context
        while True:
            fence = context.fence
            await context.resources.leases.keep_renewed(context.chat, context.owner, fence)
            if not self.is_held:
                await self._is_held.wait()
            elif context.fence == fence:
                self._report_loss()
                return

    def _report_loss(self) -> None:
        self._context.outbox.send(ChatEnded(HeldElsewhere(), LEASE_LOST))
