"""Leases in the memory of the only process of a database."""

from __future__ import annotations

from sluicegate.stores.leases.process_leases import ProcessLeases
from tests.stores.builders import CHAT, open_database, owner_of

TTL = 15.0


def no_time_passes() -> float:
    return 0.0


async def test_fences_continue_above_those_of_earlier_processes(sqlite_url: str) -> None:
    fences: list[int] = []
    for _ in range(3):
        database = await open_database(sqlite_url)
        leases = await ProcessLeases.open(database, no_time_passes)
        assert await owner_of(leases, CHAT) is None
        for _ in range(3):
            fence = await leases.acquire(CHAT, owner="me", ttl=TTL)
            assert fence is not None
            fences.append(fence)
            await leases.release(CHAT, owner="me", fence=fence)
        await leases.acquire(CHAT, owner="dies with the process", ttl=TTL)
        await database.close()
    assert fences == sorted(set(fences))
    # Stream servers need numbers of 53 bits, also after a million starts.
    assert fences[-1] / 3 * 1_000_000 < 2**53


async def test_the_fences_of_a_chat_never_fall_with_many_chats() -> None:
    leases = ProcessLeases(no_time_passes, max_ended=2)
    chats = [CHAT._replace(chat=f"chat-{number}") for number in range(6)]
    last = dict.fromkeys(chats, 0)
    for chat in [*chats, *reversed(chats), *chats[::2]] * 3:
        before = await leases.state(chat)
        fence = await leases.acquire(chat, owner="me", ttl=TTL)
        assert fence == before.fence + 1 > last[chat]
        last[chat] = fence
        await leases.release(chat, owner="me", fence=fence)
