"""When a client that takes nothing is given up; time is handed in."""

from __future__ import annotations

import asyncio

import pytest

from sluicegate.transports.backpressure import Backlog, Patience
from tests.transports.clock import ClockedLoop

PATIENCE = Patience(backlog=1_000, seconds=5.0)


class Client:
    """What is watched; ``behind`` is how much it has not taken."""

    def __init__(self) -> None:
        self.behind = 0
        self.given_up = 0
        self.backlog = Backlog(PATIENCE, behind=lambda: self.behind, give_up=self._give_up)

    def _give_up(self) -> None:
        self.given_up += 1


@pytest.fixture
def loop() -> ClockedLoop:
    return ClockedLoop()


@pytest.fixture
def client(loop: ClockedLoop, monkeypatch: pytest.MonkeyPatch) -> Client:
    monkeypatch.setattr(asyncio, "get_running_loop", lambda: loop)
    return Client()


@pytest.mark.parametrize(
    ("behind", "seconds", "given_up"), [(1_001, 5.0, 1), (1_000, 50.0, 0), (9_999, 4.9, 0)]
)
def test_a_client_is_given_up_when_it_is_far_behind_and_takes_nothing_for_long(
    client: Client, loop: ClockedLoop, behind: int, seconds: float, given_up: int
) -> None:
    client.backlog.begin()
    client.behind = behind
    loop.advance(seconds)
    assert client.given_up == given_up


def test_a_client_that_takes_each_write_in_time_may_be_behind_for_ever(
    client: Client, loop: ClockedLoop
) -> None:
    client.behind = 1_000_000
    for _ in range(10):
        client.backlog.begin()
        loop.advance(4.0)
        client.backlog.end()
    assert client.given_up == 0


def test_the_time_counts_from_the_write_that_waits(client: Client, loop: ClockedLoop) -> None:
    client.backlog.begin()
    client.backlog.end()
    loop.advance(3.0)
    client.backlog.begin()
    client.behind = 2_000
    loop.advance(4.9)
    assert client.given_up == 0
    loop.advance(0.1)
    assert client.given_up == 1


def test_a_stuck_client_is_given_up_once_what_is_ready_has_grown(
    client: Client, loop: ClockedLoop
) -> None:
    client.backlog.begin()
    loop.advance(20.0)
    client.behind = 2_000
    loop.advance(5.0)
    assert client.given_up == 1


def test_nothing_is_timed_between_writes_or_after_the_last(
    client: Client, loop: ClockedLoop
) -> None:
    client.backlog.begin()
    client.backlog.end()
    loop.advance(5.0)
    assert loop.timers == 0
    client.backlog.begin()
    client.backlog.close()
    assert loop.timers == 0
