"""The peers that need ADK, in this process, so that it is imported once."""

from __future__ import annotations

import contextlib
import importlib
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import uvicorn

from bench.client import Address
from bench.peers import ADK, ALONE, PEERS, RUNNER
from bench.rounds import measure
from bench.script import write_script


class InThisProcess(NamedTuple):
    """A server in a thread."""

    listens: Address

    def address(self) -> Address:
        return self.listens

    def loop_seconds(self) -> None:
        """Nobody can tell its work from that of the test."""


@pytest.fixture
def serve(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str], InThisProcess]]:
    """Serve one of the benchmark's servers, each on a port of its own, until the test ends."""
    write_script(tmp_path / "script.json", deltas=50)
    monkeypatch.setenv("BENCH_SCRIPT", str(tmp_path / "script.json"))
    monkeypatch.chdir(tmp_path)
    with contextlib.ExitStack() as running:

        def started(kind: str) -> InThisProcess:
            app = importlib.import_module(f"bench.servers.{kind}").build()
            listener = running.enter_context(socket.create_server(("127.0.0.1", 0)))
            server = uvicorn.Server(uvicorn.Config(app, log_config=None))
            thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
            running.callback(_end, server, thread)
            thread.start()
            return InThisProcess(Address(*listener.getsockname()))

        yield started


def _end(server: uvicorn.Server, thread: threading.Thread) -> None:
    server.should_exit = True
    thread.join()


@pytest.mark.parametrize(("kind", "names"), [("runner", {RUNNER, ALONE}), ("adk", {ADK})])
def test_the_peer_streams_what_the_script_says(
    serve: Callable[[str], InThisProcess], kind: str, names: set[str]
) -> None:
    peers = [peer for peer in PEERS if peer.name in names]
    server = serve(kind)

    samples = measure(
        peers,
        {peer.command: server for peer in peers},
        rounds=1,
        deltas=50,
        progress=lambda _: None,
    )

    assert samples.keys() == names
    assert all(found.first_delta[0] > 0 for found in samples.values())
    assert all(found.server == [] for found in samples.values())
