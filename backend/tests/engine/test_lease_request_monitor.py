"""What a process does for others that share its database."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import TYPE_CHECKING

from sluicegate.core.chat_and_turn_keys import ChatKey
from sluicegate.engine.turn.lease_request_monitor import LeaseMonitor
from sluicegate.stores.leases.base import LeaseState
from sluicegate.stores.leases.process_leases import ProcessLeases
from tests.engine.loop_time import EVENT_TIMEOUT
from tests.engine.stage import says, scripted

if TYPE_CHECKING:
    from tests.engine.stage import Open

CHAT = ChatKey("app", "ann", "chat-1")


class HeldLeases(ProcessLeases):
    """Leases whose states are held between the read and its return."""

    def __init__(self) -> None:
        super().__init__(lambda: 0.0)
        self.returns = asyncio.Event()
        self.is_read = asyncio.Event()

    async def states(self, chats: Collection[ChatKey]) -> dict[ChatKey, LeaseState]:
        found = await super().states(chats)
        self.is_read.set()
        await self.returns.wait()
        return found


class OpenChat:
    """A live chat that counts its stops, the first of which takes a while."""

    owner = "process:live-1"

    def __init__(self) -> None:
        self.stops = 0
        self.may_end = asyncio.Event()

    async def stop(self) -> None:
        self.stops += 1
        await self.may_end.wait()


async def tasks_have_run() -> None:
    """Let every task that can run continue to its next wait."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_stop_that_ended_while_the_leases_were_read_is_not_repeated(
    open_stage: Open,
) -> None:
    resources = (await open_stage(scripted([says("Hello.")]))).resources
    leases, live = HeldLeases(), OpenChat()
    monitor = LeaseMonitor(resources.turns, resources.replicas, leases, resources.streams)
    resources.turns.chat_owners.add(CHAT, live)  # type: ignore[arg-type]
    fence = await leases.acquire(CHAT, owner=live.owner, ttl=60.0)
    assert fence is not None
    await leases.request_stop(CHAT, fence=fence)
    leases.returns.set()
    await monitor.poll()
    leases.returns.clear()
    leases.is_read.clear()
    polling = asyncio.create_task(monitor.poll())
    async with asyncio.timeout(EVENT_TIMEOUT):
        await leases.is_read.wait()
        live.may_end.set()
        await tasks_have_run()
        assert not (await leases.state(CHAT)).stop_requested
        leases.returns.set()
        await polling
        await tasks_have_run()
        await monitor.aclose()
    resources.turns.chat_owners.remove(CHAT, live.owner)
    assert live.stops == 1
