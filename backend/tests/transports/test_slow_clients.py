"""When a client that does not read is dropped; the tests control the clock."""

from __future__ import annotations

import pytest

from sluicegate.transports.slow_clients import WriteLimits, WriteMonitor
from tests.transports.clock import ClockedLoop

LIMITS = WriteLimits(backlog=1_000, timeout=5.0)


class Client:
    """A monitored client; ``backlog`` is the number of bytes that it has not read."""

    def __init__(self, loop: ClockedLoop) -> None:
        self.backlog = 0
        self.aborts = 0
        self.writes = WriteMonitor(
            LIMITS, backlog=lambda: self.backlog, abort=self._abort, loop=loop
        )

    def _abort(self) -> None:
        self.aborts += 1


@pytest.fixture
def loop() -> ClockedLoop:
    return ClockedLoop()


@pytest.fixture
def client(loop: ClockedLoop) -> Client:
    return Client(loop)


@pytest.mark.parametrize(
    ("backlog", "seconds", "aborts"), [(1_001, 5.0, 1), (1_000, 50.0, 0), (9_999, 4.9, 0)]
)
def test_a_client_is_dropped_when_a_write_blocks_too_long_with_too_large_a_backlog(
    client: Client, loop: ClockedLoop, backlog: int, seconds: float, aborts: int
) -> None:
    client.writes.started()
    client.backlog = backlog
    loop.advance(seconds)
    assert client.aborts == aborts


def test_a_client_whose_writes_end_in_time_may_have_any_backlog(
    client: Client, loop: ClockedLoop
) -> None:
    client.backlog = 1_000_000
    for _ in range(10):
        client.writes.started()
        loop.advance(4.0)
        client.writes.finished()
    assert client.aborts == 0


def test_the_timeout_counts_from_the_write_that_blocks(client: Client, loop: ClockedLoop) -> None:
    client.writes.started()
    client.writes.finished()
    loop.advance(3.0)
    client.writes.started()
    client.backlog = 2_000
    loop.advance(4.9)
    assert client.aborts == 0
    loop.advance(0.1)
    assert client.aborts == 1


def test_a_blocked_client_is_dropped_once_its_backlog_has_grown(
    client: Client, loop: ClockedLoop
) -> None:
    client.writes.started()
    loop.advance(20.0)
    client.backlog = 2_000
    loop.advance(5.0)
    assert client.aborts == 1


def test_no_timer_is_armed_between_writes_or_after_the_last(
    client: Client, loop: ClockedLoop
) -> None:
    client.writes.started()
    client.writes.finished()
    loop.advance(5.0)
    assert loop.timers == 0
    client.writes.started()
    client.writes.close()
    assert loop.timers == 0
