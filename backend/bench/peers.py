"""Who is measured: how each server is started, asked, and believed."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from bench.client import BenchError, Exchange, post
from bench.script import DELTA
from bench.server_process import own_server, sluicegate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from bench.client import Address

    Ask = Callable[[Address, str], Exchange]

FLOOR: Final = "floor"
RUNNER: Final = "runner"
ALONE: Final = "runner_alone"
ADK: Final = "adk"
FREE: Final = "free"
PROGRESSIVE: Final = "gated_progressive"
PREVIEW: Final = "gated_preview"


@dataclass(frozen=True, slots=True)
class Peer:
    """One row of the table; rows with the same command share a process."""

    name: str
    title: str
    command: tuple[str, ...]
    ask: Ask
    deltas: Callable[[bytes], int]
    """Counts the deltas in a body; raises BenchError when one is not what the script says."""


def chat_body(chat: str, text: str) -> dict[str, Any]:
    """Return what ``DefaultChatTransport`` posts for the first message of a chat."""
    message = {
        "id": f"message-{chat}",
        "role": "user",
        "parts": [{"type": "text", "text": text}],
    }
    return {"id": chat, "messages": [message], "trigger": "submit-message"}


def chunks(body: bytes) -> Iterator[dict[str, Any]]:
    """Yield what the ``data`` fields of a stream hold, the terminator left out."""
    for line in body.splitlines():
        if line.startswith(b"data: ") and line != b"data: [DONE]":
            yield json.loads(line[6:])


@dataclass(frozen=True, slots=True)
class _Chat:
    """Asks in the AI SDK's words, each time in a new chat."""

    headers: Mapping[str, str] = field(default_factory=dict)
    path: str = "/api/chat"

    def __call__(self, address: Address, text: str) -> Exchange:
        return post(address, self.path, chat_body(secrets.token_hex(8), text), self.headers)


def _ask_alone(address: Address, text: str) -> Exchange:
    """Run without a stream; the server itself took the times."""
    answer = post(address, "/alone", chat_body("alone", text))
    taken = json.loads(answer.body)
    return Exchange(answer.body, taken["first"], taken["last"], answer.cpu)


def _ask_adk(address: Address, text: str) -> Exchange:
    session = json.loads(post(address, "/apps/free/users/bench/sessions", {}).body)
    body = {
        "appName": "free",
        "userId": "bench",
        "sessionId": session["id"],
        "newMessage": {"role": "user", "parts": [{"text": text}]},
        "streaming": True,
    }
    return post(address, "/run_sse", body)


def _chat_deltas(body: bytes) -> int:
    found = list(chunks(body))
    if not found or found[-1]["type"] != "finish":
        raise BenchError(f"The stream has no good end: {body[-500:]!r}.")
    return _counted(chunk["delta"] for chunk in found if chunk["type"] == "text-delta")


def _adk_deltas(body: bytes) -> int:
    events = [event for event in chunks(body) if event.get("partial")]
    return _counted(event["content"]["parts"][0]["text"] for event in events)


def _counted(deltas: Iterator[str]) -> int:
    texts = list(deltas)
    if set(texts) - {DELTA}:
        raise BenchError(f"A delta is not what the script says: {set(texts)}.")
    return len(texts)


def _wish(release: str) -> _Chat:
    return _Chat({"x-ai-sdk": "7", "x-release": release})


PEERS: Final = (
    Peer(FLOOR, "bare Starlette generator", (*own_server("floor"),), _Chat(), _chat_deltas),
    Peer(
        ALONE,
        "Runner.run_async, nothing sent",
        (*own_server("runner"),),
        _ask_alone,
        lambda body: int(json.loads(body)["deltas"]),
    ),
    Peer(
        RUNNER,
        "Runner.run_async in that generator",
        (*own_server("runner"),),
        _Chat(),
        _chat_deltas,
    ),
    Peer(
        FREE,
        "sluicegate, agent without gates",
        (*sluicegate("free"),),
        _Chat({"x-ai-sdk": "7"}),
        _chat_deltas,
    ),
    Peer(
        PROGRESSIVE,
        "sluicegate, gated, progressive",
        (*sluicegate("gated"),),
        _wish("progressive"),
        _chat_deltas,
    ),
    Peer(
        PREVIEW,
        "sluicegate, gated, preview",
        (*sluicegate("gated"),),
        _wish("preview"),
        _chat_deltas,
    ),
    Peer(ADK, "google-adk /run_sse", (*own_server("adk"),), _ask_adk, _adk_deltas),
)
