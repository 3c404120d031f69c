"""Time of a turn by conversation length, approvals per second, and startup time."""

from __future__ import annotations

import json
import os
import secrets
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from bench.client import BenchError, get_json, post
from bench.peers import chat_body, chunks
from bench.script import ASK, SHORT
from bench.server_process import PATH, ServerProcess, sluicegate

if TYPE_CHECKING:
    from pathlib import Path

APPROVALS_A_SECOND: Final = 20
"""Minimum approvals per second of one worker, without the requests that create them."""

_IMPORT = (
    "import time; began = time.perf_counter(); import sluicegate; "
    "print(time.perf_counter() - began)"
)


@dataclass(frozen=True, slots=True)
class Turn:
    """Median seconds of a turn in a long chat.

    ``warm`` where the process has had the chat before, ``cold`` where it reads all of it; ``bare``
    is ADK alone on the same database.
    """

    warm: float
    cold: float
    bare: float


def measure_turns(server: ServerProcess, *, lengths: list[int], rounds: int) -> dict[int, Turn]:
    """Return the time of a turn in sessions of these numbers of events."""
    address, taken = server.address(), {}
    for length in lengths:
        samples: list[Turn] = []
        for number in range(rounds):
            chat = f"long-{length}-{number}"
            post(address, "/api/chat", chat_body(chat, SHORT))
            post(address, "/fill", {"chat": chat, "events": length})
            began = time.perf_counter()
            post(address, "/api/chat", chat_body(chat, SHORT, message="later"))
            read = time.perf_counter()
            post(address, "/api/chat", chat_body(chat, SHORT, message="again"))
            done = time.perf_counter()
            alone = json.loads(post(address, "/bare", {"chat": chat}).body)["seconds"]
            samples.append(Turn(done - read, read - began, alone))
        taken[length] = Turn(
            statistics.median(turn.warm for turn in samples),
            statistics.median(turn.cold for turn in samples),
            statistics.median(turn.bare for turn in samples),
        )
    return taken


@dataclass(frozen=True, slots=True)
class Rates:
    """Rates per second: ``answered`` of pending approvals, ``whole`` including their requests."""

    answered: float
    whole: float


def measure_approvals(server: ServerProcess, *, count: int, people: int) -> Rates:
    """Create ``count`` approvals, ``people`` at a time, then approve all and await the results."""
    with ThreadPoolExecutor(people) as pool:
        began = time.perf_counter()
        answers = list(pool.map(_ask, [server] * count))
        asked = time.perf_counter()
        for _ in pool.map(_approve, [server] * count, answers):
            pass
        done = time.perf_counter()
    return Rates(answered=count / (done - asked), whole=count / (done - began))


def _ask(server: ServerProcess) -> dict[str, Any]:
    """Request a gated call; return the body that approves it."""
    address, chat = server.address(), secrets.token_hex(8)
    post(address, "/api/chat", chat_body(chat, ASK), {"x-ai-sdk": "7"})
    message: dict[str, Any] = get_json(address, f"/api/chats/{chat}")["messages"][-1]
    for part in message["parts"]:
        if part.get("state") == "approval-requested":
            part["state"] = "approval-responded"
            part["approval"] = {**part["approval"], "approved": True}
    trigger = "submit-message"
    return {"id": chat, "message": message, "messageId": message["id"], "trigger": trigger}


def _approve(server: ServerProcess, body: dict[str, Any]) -> None:
    answer = post(server.address(), "/api/chat", body, {"x-ai-sdk": "7"})
    last = list(chunks(answer.body))
    if not last or last[-1].get("finishReason") != "stop":
        raise BenchError(f"An approval did not end well: {answer.body[-500:]!r}.")


def measure_import(*, rounds: int) -> float:
    """Return the seconds of ``import sluicegate``, without the startup of Python."""
    command = [sys.executable, "-c", _IMPORT]
    environment = {**os.environ, "PYTHONPATH": PATH}
    return statistics.median(
        float(subprocess.run(command, capture_output=True, check=True, env=environment).stdout)
        for _ in range(rounds)
    )


def measure_start(folder: Path, *, rounds: int) -> float:
    """Return the seconds from the command to the response to a first request."""
    samples = []
    for number in range(rounds):
        began = time.perf_counter()
        with ServerProcess(sluicegate("free"), folder / f"start-{number}", {}) as server:
            get_json(server.address(), "/api/chats")
            samples.append(time.perf_counter() - began)
    return statistics.median(samples)
