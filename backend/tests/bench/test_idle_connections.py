"""The measurement of idle connections and pending approvals, at a small scale."""

from __future__ import annotations

from pathlib import Path

from bench.idle_connections import measure_connections, measure_waiting
from bench.server_process import ServerProcess, sluicegate


def test_open_streams_and_sockets_do_not_block_other_requests(tmp_path: Path) -> None:
    with ServerProcess(sluicegate("free"), tmp_path / "idle", {}) as server:
        found = measure_connections(server, count=4, turns=2, others=2)
    assert found.count == 4
    assert 0 < found.p50 <= found.p99


def test_approvals_in_copies_of_a_chat_can_be_decided(tmp_path: Path) -> None:
    found = measure_waiting(tmp_path, count=5, decided=2)
    assert found.count == 5
    assert found.disk_kib > 0
    assert found.ready > 0
