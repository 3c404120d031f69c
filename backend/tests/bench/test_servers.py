"""The peers that need ADK, in this process, so that ADK is imported once."""

from __future__ import annotations

import contextlib
import importlib
import json
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import uvicorn
from opentelemetry import trace

from bench.client import Address, get_json, post
from bench.peers import ADK, PEERS, RUNNER, chat_body
from bench.rounds import measure
from bench.script import SHORT
from bench.server_process import sluicegate


class InThisProcess(NamedTuple):
    """A server in a thread."""

    listens: Address

    def address(self) -> Address:
        return self.listens

    def loop_seconds(self) -> None:
        """Unknown, since the server shares its process with the test."""


@pytest.fixture
def serve(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str], InThisProcess]]:
    """Run a server of the benchmark on a free port until the test ends."""
    monkeypatch.setenv("BENCH_DELTAS", "50")
    monkeypatch.chdir(tmp_path)
    # ADK's server sets the one provider of the process, which other tests need.
    monkeypatch.setattr(trace, "set_tracer_provider", lambda tracer_provider: None)
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


@pytest.mark.parametrize(("kind", "name"), [("runner", RUNNER), ("adk", ADK)])
def test_the_peer_streams_the_script(
    serve: Callable[[str], InThisProcess], kind: str, name: str
) -> None:
    [peer] = [peer for peer in PEERS if peer.name == name]
    servers = {name: serve(kind)}

    [found] = measure([peer], servers, rounds=1, deltas=50, progress=lambda _: None).values()

    assert found.first_delta[0] > 0
    assert found.server == []


def test_a_chat_is_created_with_the_requested_length(serve: Callable[[str], InThisProcess]) -> None:
    address = serve("approvals").address()
    post(address, "/api/chat", chat_body("long", SHORT))

    post(address, "/fill", {"chat": "long", "events": 12})

    stored = get_json(address, "/api/chats/long")["messages"]
    assert [message["role"] for message in stored] == ["user", "assistant"] * 4
    answer = post(address, "/api/chat", chat_body("long", SHORT, message="later"))
    assert b'"finish"' in answer.body


def test_adk_alone_runs_a_turn_on_the_same_chat(serve: Callable[[str], InThisProcess]) -> None:
    address = serve("approvals").address()
    post(address, "/api/chat", chat_body("long", SHORT))
    assert json.loads(post(address, "/bare", {"chat": "long"}).body)["seconds"] > 0
    stored = get_json(address, "/api/chats/long")["messages"]
    assert [message["role"] for message in stored] == ["user", "assistant"] * 2


def test_an_option_is_a_variable_or_one_of_the_command() -> None:
    command = sluicegate("free", "env:A=b", "--auth", "none")

    assert command[:2] == ["env", "A=b"]
    assert command[-2:] == ["--auth", "none"]
