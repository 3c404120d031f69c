"""The behaviour of every implementation of leases."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from sluicegate.core.chat_and_turn_keys import ChatKey
from sluicegate.stores.leases.base import LeaseState
from tests.stores.builders import CHAT, LIMIT, TTL, owner_of

if TYPE_CHECKING:
    from sluicegate.stores.leases.base import Leases
    from tests.stores.builders import Clock


async def test_a_held_lease_cannot_be_acquired(leases: Leases) -> None:
    assert await leases.acquire(CHAT, owner="me", ttl=TTL) == 1
    assert await leases.acquire(CHAT, owner="you", ttl=TTL) is None
    assert await leases.acquire(CHAT, owner="me", ttl=TTL) is None
    assert await owner_of(leases, CHAT) == "me"


async def test_one_of_twenty_contenders_wins(leases: Leases, clock: Clock) -> None:
    for fence in (1, 2, 3):
        attempts = (leases.acquire(CHAT, owner=f"o{n}", ttl=TTL) for n in range(20))
        fences = await asyncio.gather(*attempts)
        assert [found for found in fences if found is not None] == [fence]
        assert await owner_of(leases, CHAT) == f"o{fences.index(fence)}"
        clock.ahead += TTL + 1


async def test_every_chat_has_a_lease_of_its_own(leases: Leases) -> None:
    keys = [CHAT, ChatKey("app", "bob", "chat-1"), ChatKey("other", "ann", "chat-1")]
    assert [await leases.acquire(key, owner="me", ttl=TTL) for key in keys] == [1, 1, 1]
    await leases.release(CHAT, owner="me", fence=1)
    assert [await owner_of(leases, key) for key in keys] == [None, "me", "me"]


async def test_an_expired_lease_is_taken_over_with_a_higher_fence(
    leases: Leases, clock: Clock
) -> None:
    first = await leases.acquire(CHAT, owner="me", ttl=TTL)
    clock.ahead = TTL + 1
    assert await owner_of(leases, CHAT) is None
    second = await leases.acquire(CHAT, owner="you", ttl=TTL)
    assert (first, second) == (1, 2)
    assert not await leases.renew(CHAT, owner="me", fence=1, ttl=TTL)
    await leases.release(CHAT, owner="me", fence=1)
    assert await owner_of(leases, CHAT) == "you"


async def test_an_expired_lease_cannot_be_renewed(leases: Leases, clock: Clock) -> None:
    await leases.acquire(CHAT, owner="me", ttl=TTL)
    clock.ahead = TTL + 1
    assert not await leases.renew(CHAT, owner="me", fence=1, ttl=TTL)
    assert await owner_of(leases, CHAT) is None


async def test_a_lease_is_extended_from_the_time_of_the_renewal(
    leases: Leases, clock: Clock
) -> None:
    await leases.acquire(CHAT, owner="me", ttl=TTL)
    clock.ahead = TTL - LIMIT
    assert await leases.renew(CHAT, owner="me", fence=1, ttl=TTL)
    clock.ahead = 2 * TTL - 2 * LIMIT
    assert await owner_of(leases, CHAT) == "me"
    assert await leases.acquire(CHAT, owner="you", ttl=TTL) is None
    clock.ahead = 2 * TTL
    assert await owner_of(leases, CHAT) is None


@pytest.mark.parametrize(("owner", "fence"), [("you", 1), ("me", 2), ("me", 0)])
async def test_a_renewal_needs_both_owner_and_fence(leases: Leases, owner: str, fence: int) -> None:
    await leases.acquire(CHAT, owner="me", ttl=TTL)
    assert not await leases.renew(CHAT, owner=owner, fence=fence, ttl=TTL)
    await leases.release(CHAT, owner=owner, fence=fence)
    assert await owner_of(leases, CHAT) == "me"


async def test_a_released_lease_is_free_and_its_fence_continues(leases: Leases) -> None:
    await leases.acquire(CHAT, owner="me", ttl=TTL)
    await leases.release(CHAT, owner="me", fence=1)
    await leases.release(CHAT, owner="me", fence=1)
    assert await owner_of(leases, CHAT) is None
    assert not await leases.renew(CHAT, owner="me", fence=1, ttl=TTL)
    assert await leases.acquire(CHAT, owner="me", ttl=TTL) == 2


async def test_a_chat_without_a_lease_has_no_owner(leases: Leases) -> None:
    assert await owner_of(leases, CHAT) is None
    assert not await leases.renew(CHAT, owner="me", fence=1, ttl=TTL)
    await leases.release(CHAT, owner="me", fence=1)


async def test_the_state_of_a_free_lease_has_its_fence(leases: Leases) -> None:
    assert await leases.state(CHAT) == LeaseState()
    await leases.acquire(CHAT, owner="me", ttl=TTL)
    assert await leases.state(CHAT) == LeaseState(1, "me")
    await leases.release(CHAT, owner="me", fence=1)
    assert await leases.state(CHAT) == LeaseState(1)


async def test_states_have_an_entry_for_every_chat(leases: Leases) -> None:
    keys = [CHAT, ChatKey("app", "bob", "chat-1"), ChatKey("other", "ann", "chat-1")]
    for chat in keys[:2]:
        await leases.acquire(chat, owner=chat.user, ttl=TTL)
    assert await leases.states(keys) == {
        keys[0]: LeaseState(1, "ann"),
        keys[1]: LeaseState(1, "bob"),
        keys[2]: LeaseState(),
    }
    assert await leases.states([]) == {}


async def test_a_stop_is_requested_and_acknowledged(leases: Leases, clock: Clock) -> None:
    await leases.request_stop(CHAT, fence=1)
    assert await leases.state(CHAT) == LeaseState()
    await leases.acquire(CHAT, owner="me", ttl=TTL)
    await leases.request_stop(CHAT, fence=2)
    assert not (await leases.state(CHAT)).stop_requested
    await leases.request_stop(CHAT, fence=1)
    assert await leases.state(CHAT) == LeaseState(1, "me", stop_requested=True)
    await leases.renew(CHAT, owner="me", fence=1, ttl=TTL)
    assert (await leases.state(CHAT)).stop_requested
    await leases.clear_stop_request(CHAT, fence=1)
    assert await leases.state(CHAT) == LeaseState(1, "me")
    await leases.request_stop(CHAT, fence=1)
    clock.ahead = TTL + 1
    assert await leases.state(CHAT) == LeaseState(1)
    await leases.acquire(CHAT, owner="you", ttl=TTL)
    assert await leases.state(CHAT) == LeaseState(2, "you")


async def test_an_owner_learns_that_a_replica_reads(leases: Leases, clock: Clock) -> None:
    await leases.acquire(CHAT, owner="me", ttl=2 * TTL)
    await leases.record_reader(CHAT, fence=2, ttl=TTL)
    assert not (await leases.state(CHAT)).has_remote_readers
    await leases.record_reader(CHAT, fence=1, ttl=TTL)
    assert await leases.state(CHAT) == LeaseState(1, "me", has_remote_readers=True)
    clock.ahead = TTL + 1
    assert await leases.state(CHAT) == LeaseState(1, "me")
    await leases.record_reader(CHAT, fence=1, ttl=TTL)
    await leases.release(CHAT, owner="me", fence=1)
    await leases.acquire(CHAT, owner="you", ttl=TTL)
    assert await leases.state(CHAT) == LeaseState(2, "you")


async def test_an_owner_is_asked_to_release_its_chat(leases: Leases) -> None:
    await leases.acquire(CHAT, owner="me", ttl=TTL)
    await leases.request_release(CHAT, fence=2)
    assert await leases.state(CHAT) == LeaseState(1, "me")
    await leases.request_release(CHAT, fence=1)
    assert await leases.state(CHAT) == LeaseState(1, "me", release_requested=True)
    await leases.renew(CHAT, owner="me", fence=1, ttl=TTL)
    assert (await leases.state(CHAT)).release_requested
    await leases.release(CHAT, owner="me", fence=1)
    await leases.acquire(CHAT, owner="you", ttl=TTL)
    assert await leases.state(CHAT) == LeaseState(2, "you")
