"""Live chats through Google's own client, beside a relay that does nothing else with it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import secrets
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from websockets.asyncio.client import connect
from websockets.sync.client import connect as connect_sync
from websockets.typing import Subprotocol

from bench.client import BenchError, get_json, post
from bench.idle_sockets import settled
from bench.peers import chat_body
from bench.server_process import ServerProcess, module, own_server, sluicegate
from bench.servers.live_api import API_URL, HEAD, LAST, MORE
from tests.live.google.certificates import create_certificates

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from websockets.asyncio.client import ClientConnection

    from bench.client import Address

CARD: Final = 40e-3
"""Maximum median of the seconds from the model's call to its card."""
YES: Final = 60e-3
"""Maximum median of the seconds from an approval to the response that the model receives."""
ADDED: Final = 10e-3
"""Maximum seconds by which the first audio of an answer is later than with the relay."""
CROWD: Final = (50, 30e-3)
"""Number of conversations, and the seconds by which their p99 may be above that of the relay."""
EACH_KIB: Final = 600
"""Maximum memory of an open live chat."""

FRAME_SECONDS: Final = 0.04
UTTERANCE: Final = 200
"""Frames of an utterance in a crowd; the conversations end theirs one after the other."""
_FRAME: Final = round(FRAME_SECONDS * 16_000) * 2
_WARM: Final = 3
_PATIENCE: Final = 30.0
_LIVE: Final = (Subprotocol("sluicegate.live.v1"),)
_TIMES: Final = re.compile(r"^(called|answered) (\d+\.\d+)$", re.MULTILINE)
_MANY: Final = {
    "SLUICEGATE_MAX_LIVE_CHATS": "1000",
    "SLUICEGATE_MAX_LIVE_CHATS_PER_USER": "1000",
}


@dataclass(frozen=True, slots=True)
class Talk:
    """Conversations with audio both ways: the seconds of a frame to the model and back."""

    chats: int
    ours: tuple[float, ...]
    relay: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Voice:
    """Seconds of approvals and of answers, conversations by number, and KiB for each open chat.

    ``first``: the seconds from the last audio of an utterance to the first audio of its answer.
    """

    card: tuple[float, ...]
    yes: tuple[float, ...]
    first: Talk
    talks: tuple[Talk, ...]
    chat_kib: float


def measure_voice(
    folder: Path, *, count: int, crowds: Sequence[int], seconds: float, rounds: int
) -> Voice:
    """Start a Live API, a relay and a server, and talk to both.

    Raises:
        BenchError: one of them does not answer.
    """
    folder.mkdir(exist_ok=True)
    certificates = create_certificates(folder)
    with contextlib.ExitStack() as running:
        command = module("bench.servers.live_api", str(folder))
        api = running.enter_context(ServerProcess(command, folder / "api", {}))
        address = api.address()
        variables = {
            API_URL: f"https://{address.host}:{address.port}",
            "SSL_CERT_FILE": str(certificates.authority),
            "NO_PROXY": "localhost",
            **_MANY,
        }
        command = own_server("live_relay")
        relay = running.enter_context(ServerProcess(command, folder / "relay", variables))
        command = sluicegate("google")
        ours = running.enter_context(ServerProcess(command, folder / "ours", variables))
        card, yes = _approvals(ours, api, count=count)
        first = _measured(1, ours, relay, partial(_utterances, count=count), rounds)
        chat_kib = _memory(ours, chats=max(crowds))
        talks = [
            _measured(chats, ours, relay, partial(_talk, chats=chats, seconds=seconds), rounds)
            for chats in crowds
        ]
    return Voice(card, yes, first, tuple(talks), chat_kib)


def _measured(
    chats: int,
    ours: ServerProcess,
    relay: ServerProcess,
    measure: Callable[[Address], list[float]],
    rounds: int,
) -> Talk:
    """Measure both in turn, so that what else the machine does falls on both."""
    found: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for seconds, server in zip(found, (ours, relay), strict=True):
            seconds += measure(server.address())
    return Talk(chats, tuple(found[0]), tuple(found[1]))


def _approvals(
    server: ServerProcess, api: ServerProcess, *, count: int
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Let the model call a gated tool again and again, and approve each call over HTTP."""
    address = server.address()
    carded: list[float] = []
    approved: list[float] = []
    with connect_sync(_url(address, "paying"), proxy=None) as socket:

        def until(kind: str) -> dict[str, Any]:
            while True:
                frame = json.loads(socket.recv(timeout=_PATIENCE))
                if frame["type"] == "error":
                    raise BenchError(f"The live chat has failed: {frame}.")
                if kind in (frame["type"], frame.get("chunk", {}).get("type")):
                    return dict(frame)

        until("ready")
        for number in range(1, _WARM + count + 1):
            said = chat_body("paying", "Pay.", message=f"m{number}")
            socket.send(json.dumps({"type": "send", "requestId": f"r{number}", **said}))
            request = until("tool-approval-request")["chunk"]
            carded.append(time.perf_counter())
            until("end")
            approved.append(time.perf_counter())
            deadline = time.monotonic() + _PATIENCE
            post(address, f"/api/approvals/{request['approvalId']}", {"approved": True})
            while len(_times(api, "answered")) < number:
                _pause(deadline)
            while get_json(address, "/api/chats/paying")["status"] != "ready":
                _pause(deadline)
    cards = zip(_times(api, "called"), carded, strict=True)
    answers = zip(approved, _times(api, "answered"), strict=True)
    return tuple(_differences(cards))[_WARM:], tuple(_differences(answers))[_WARM:]


def _differences(pairs: Iterator[tuple[float, float]]) -> Iterator[float]:
    return (later - earlier for earlier, later in pairs)


def _times(api: ServerProcess, what: str) -> list[float]:
    """The times that the Live API has printed."""
    return [float(seconds) for word, seconds in _TIMES.findall(api.said()) if word == what]


def _utterances(address: Address, *, count: int) -> list[float]:
    """Say something of one frame, each time after the end of the answer before."""
    seconds: list[float] = []
    with connect_sync(
        _url(address, _new_chat()), subprotocols=_LIVE, compression=None, proxy=None
    ) as socket:
        _until_text(socket, '"ready"')
        for _ in range(_WARM + count):
            socket.send(_frame(LAST))
            while not isinstance(data := socket.recv(timeout=_PATIENCE), bytes):
                pass
            seconds += _delays(data)
            _until_text(socket, '"turn-complete"')
            time.sleep(FRAME_SECONDS)
    return seconds[_WARM:]


def _until_text(socket: Any, text: str) -> None:
    while text not in str(socket.recv(timeout=_PATIENCE)):
        pass


def _memory(server: ServerProcess, *, chats: int) -> float:
    """Return the KiB for each open chat that has said something."""

    async def opened() -> float:
        address = server.address()
        async with contextlib.AsyncExitStack() as sockets:
            for _ in range(max(1, chats // 10)):
                await _opened(sockets, address)
            before = await asyncio.to_thread(settled, server)
            for _ in range(chats):
                await _opened(sockets, address)
            return (await asyncio.to_thread(settled, server) - before) / chats

    return asyncio.run(opened())


async def _opened(stack: contextlib.AsyncExitStack, address: Address) -> ClientConnection:
    """Open a chat, and have one utterance answered."""
    socket = await stack.enter_async_context(
        connect(_url(address, _new_chat()), subprotocols=_LIVE, compression=None, proxy=None)
    )
    async with asyncio.timeout(_PATIENCE):
        while '"ready"' not in str(await socket.recv()):
            pass
        await socket.send(_frame(LAST))
        while '"turn-complete"' not in str(await socket.recv()):
            pass
    return socket


def _talk(address: Address, *, chats: int, seconds: float) -> list[float]:
    """Speak in several chats at once, while the model does so too."""
    return asyncio.run(_talking(address, chats, seconds))


async def _talking(address: Address, chats: int, seconds: float) -> list[float]:
    async with contextlib.AsyncExitStack() as stack:
        sockets = [await _opened(stack, address) for _ in range(chats)]
        frames = round(seconds / FRAME_SECONDS)
        begin = time.perf_counter() + FRAME_SECONDS
        spoken = [
            asyncio.create_task(_speak(socket, begin, frames, number / chats))
            for number, socket in enumerate(sockets)
        ]
        heard = [asyncio.create_task(_listen(socket, frames)) for socket in sockets]
        await asyncio.gather(*spoken)
        return [each for delays in await asyncio.gather(*heard) for each in delays]


async def _speak(socket: ClientConnection, begin: float, frames: int, phase: float) -> None:
    """``phase``: the share of a frame, and of an utterance, by which the others are ahead."""
    utterance = min(UTTERANCE, frames)
    begin += FRAME_SECONDS * phase
    for number in range(frames):
        await asyncio.sleep(begin + FRAME_SECONDS * number - time.perf_counter())
        is_last = (number + int(phase * utterance) + 1) % utterance == 0
        await socket.send(_frame(LAST if is_last else MORE))


async def _listen(socket: ClientConnection, frames: int) -> list[float]:
    """Return the delays of the frames after the first second."""
    delays: list[float] = []
    async with asyncio.timeout(_PATIENCE + 2 * frames * FRAME_SECONDS):
        while len(delays) < frames:
            if isinstance(data := await socket.recv(), bytes):
                delays += _delays(data)
    return delays[min(round(1 / FRAME_SECONDS), frames // 2) :]


def _frame(kind: int) -> bytes:
    return HEAD.pack(time.perf_counter(), kind).ljust(_FRAME, b"\0")


def _delays(data: bytes) -> list[float]:
    """The delays of the frames in a message, which may hold several."""
    now = time.perf_counter()
    if len(data) % _FRAME:
        raise BenchError(f"A message of {len(data)} bytes does not consist of whole frames.")
    return [now - HEAD.unpack_from(data, at)[0] for at in range(0, len(data), _FRAME)]


def _new_chat() -> str:
    return secrets.token_hex(8)


def _url(address: Address, chat: str) -> str:
    return f"ws://{address.host}:{address.port}/api/live?chat={chat}"


def _pause(deadline: float) -> None:
    if time.monotonic() > deadline:
        raise BenchError("The live chat did not go on.")
    time.sleep(0.005)
