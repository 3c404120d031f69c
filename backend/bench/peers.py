"""The measured servers: how each is started, requested, and validated."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from bench import peer_environments
from bench.client import BenchError, Exchange, post
from bench.script import DELTA, SLOW_DELTAS
from bench.server_process import own_server, sluicegate
from bench.socket_client import ask_over_socket

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from bench.client import Address

    Ask = Callable[[Address, str], Exchange]

FLOOR: Final = "floor"
RUNNER: Final = "runner"
SSE: Final = "sse"
SOCKET: Final = "socket"
GATED: Final = ("gated_6", "gated_7")
OURS: Final = (SSE, "sse_off", SOCKET, "socket_off", *GATED)
ADK: Final = "adk"
AI_SDK: Final = "ai_sdk"
PYDANTIC_AI: Final = "pydantic_ai"
AG_UI: Final = "ag_ui"
VERCEL: Final = "vercel_ai"


@dataclass(frozen=True, slots=True)
class Peer:
    """One row of the table; rows with the same command share a process.

    ``start`` gives the command, None where the machine cannot run it. ``is_held``: its text comes
    in one piece at the end, so that only the whole answer can be timed.
    """

    name: str
    title: str
    start: Callable[[], tuple[str, ...] | None]
    ask: Ask
    deltas: Callable[[bytes], int]
    """Counts the deltas in a body; raises BenchError if one differs from the script."""
    is_held: bool = False


def chat_body(chat: str, text: str, *, message: str = "message") -> dict[str, Any]:
    """Return what ``DefaultChatTransport`` posts for a message of a chat."""
    said = {
        "id": f"{message}-{chat}",
        "role": "user",
        "parts": [{"type": "text", "text": text}],
    }
    return {"id": chat, "messages": [said], "trigger": "submit-message"}


def chunks(body: bytes) -> Iterator[dict[str, Any]]:
    """Yield the values of the ``data`` fields of a stream, without the terminator."""
    for line in body.splitlines():
        if line.startswith(b"data: ") and line != b"data: [DONE]":
            yield json.loads(line[6:])


@dataclass(frozen=True, slots=True)
class _Chat:
    """Sends requests in the format of the AI SDK, each in a new chat."""

    headers: Mapping[str, str] = field(default_factory=dict)
    path: str = "/api/chat"

    def __call__(self, address: Address, text: str) -> Exchange:
        return post(address, self.path, chat_body(secrets.token_hex(8), text), self.headers)


def _ask_socket(address: Address, text: str) -> Exchange:
    frame = {"type": "send", "requestId": "r", **chat_body(secrets.token_hex(8), text)}
    return ask_over_socket(address, "/api/chat/ws", frame)


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


def _ask_ag_ui(address: Address, text: str) -> Exchange:
    body = {
        "threadId": secrets.token_hex(8),
        "runId": secrets.token_hex(8),
        "messages": [{"id": "message", "role": "user", "content": text}],
        "state": {},
        "tools": [],
        "context": [],
        "forwardedProps": {},
    }
    return post(address, "/agent", body)


def _chat_deltas(body: bytes) -> int:
    found = list(chunks(body))
    if not found or found[-1]["type"] != "finish":
        raise BenchError(f"The stream has no good end: {body[-500:]!r}.")
    return _counted(chunk["delta"] for chunk in found if chunk["type"] == "text-delta")


def _socket_deltas(body: bytes) -> int:
    frames = [json.loads(line) for line in body.splitlines()]
    found = [frame["chunk"] for frame in frames if frame["type"] == "chunk"]
    if not found or found[-1]["type"] != "finish":
        raise BenchError(f"The request has no good end: {body[-500:]!r}.")
    return _counted(chunk["delta"] for chunk in found if chunk["type"] == "text-delta")


def _held_deltas(body: bytes) -> int:
    """The number of deltas in buffered text, which arrives in one piece."""
    text = "".join(chunk["delta"] for chunk in chunks(body) if chunk["type"] == "text-delta")
    return _counted(text[at : at + len(DELTA)] for at in range(0, len(text), len(DELTA)))


def _adk_deltas(body: bytes) -> int:
    events = [event for event in chunks(body) if event.get("partial")]
    return _counted(event["content"]["parts"][0]["text"] for event in events)


def _ag_ui_deltas(body: bytes) -> int:
    found = list(chunks(body))
    if not found or found[-1]["type"] != "RUN_FINISHED":
        raise BenchError(f"The run has no good end: {body[-500:]!r}.")
    return _counted(each["delta"] for each in found if each["type"] == "TEXT_MESSAGE_CONTENT")


def _counted(deltas: Iterator[str]) -> int:
    texts = list(deltas)
    if set(texts) - {DELTA}:
        raise BenchError(f"A delta is not what the script says: {set(texts)}.")
    return len(texts)


def _own(kind: str) -> Callable[[], tuple[str, ...]]:
    return lambda: tuple(own_server(kind))


def _ours(agent: str, *options: str) -> Callable[[], tuple[str, ...]]:
    return lambda: tuple(sluicegate(agent, *options))


def _peer(kind: str) -> Callable[[], tuple[str, ...]]:
    return lambda: (peer_environments.peers_python(), "-m", "bench.serve", kind)


def _vercel() -> tuple[str, ...] | None:
    python = peer_environments.newer_python()
    return None if python is None else (python, "-m", "bench.serve", "vercel_ai_peer")


def _on_node() -> tuple[str, ...] | None:
    found = peer_environments.node()
    if found is None:
        return None
    binary, package = found
    script = peer_environments.ROOT / "backend" / "bench" / "servers" / "ai_sdk.mjs"
    return (binary, str(script), package, DELTA, str(SLOW_DELTAS))


_SEVEN: Final = {"x-ai-sdk": "7"}
_OFF: Final = ("env:SLUICEGATE_FAST_LANE=off",)

PEERS: Final = (
    Peer(FLOOR, "bare Starlette generator", _own("floor"), _Chat(), _chat_deltas),
    Peer(SSE, "sluicegate, SSE", _ours("free"), _Chat(_SEVEN), _chat_deltas),
    Peer(
        "sse_off",
        "sluicegate, SSE, fast lane off",
        _ours("free", *_OFF),
        _Chat(_SEVEN),
        _chat_deltas,
    ),
    Peer(SOCKET, "sluicegate, WebSocket", _ours("free"), _ask_socket, _socket_deltas),
    Peer(
        "socket_off",
        "sluicegate, WebSocket, fast lane off",
        _ours("free", *_OFF),
        _ask_socket,
        _socket_deltas,
    ),
    *(
        Peer(
            f"gated_{major}",
            f"sluicegate, gated, deferred, AI SDK {major}",
            _ours("gated"),
            _Chat({"x-ai-sdk": major}),
            _held_deltas,
            is_held=True,
        )
        for major in "67"
    ),
    Peer(RUNNER, "Runner.run_async in that generator", _own("runner"), _Chat(), _chat_deltas),
    Peer(ADK, "google-adk /run_sse", _own("adk"), _ask_adk, _adk_deltas),
    Peer(
        PYDANTIC_AI,
        "pydantic-ai VercelAIAdapter",
        _peer("pydantic_ai_peer"),
        _Chat(),
        _chat_deltas,
    ),
    Peer(AG_UI, "ag-ui-adk", _peer("ag_ui_peer"), _ask_ag_ui, _ag_ui_deltas),
    Peer(VERCEL, "Vercel's ai for Python", _vercel, _Chat(), _chat_deltas),
    Peer(AI_SDK, "AI SDK 7 on Node", _on_node, _Chat(), _chat_deltas),
)
