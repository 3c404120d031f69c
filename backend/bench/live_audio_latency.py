"""Latency of live audio: from the first byte of input to the first byte of output."""

from __future__ import annotations

import math
import statistics
import time
from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from websockets.sync.client import connect
from websockets.typing import Subprotocol

from bench.client import BenchError

if TYPE_CHECKING:
    from websockets.sync.connection import Connection

    from bench.server_process import ServerProcess

BUDGET: Final = 25e-3
"""Maximum latency with a model that answers immediately, on the loopback address."""

_WARM: Final = 3
_PATIENCE: Final = 10.0
_RATE: Final = 16_000
_SPEECH_SECONDS: Final = 0.04
_PAUSE_SECONDS: Final = 0.52


@dataclass(frozen=True, slots=True)
class Spoken:
    """Seconds to the first byte of each answer."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """Seconds."""
        return statistics.median(self.seconds)


def measure_spoken(server: ServerProcess, *, count: int) -> Spoken:
    """Send speech repeatedly in one chat, each time after the end of the previous answer.

    Raises:
        BenchError: an answer does not come.
    """
    address = server.address()
    url = f"ws://{address.host}:{address.port}/api/live?chat=spoken"
    said = _utterance()
    seconds: list[float] = []
    live = [Subprotocol("sluicegate.live.v1")]
    with connect(url, subprotocols=live, compression=None, proxy=None) as socket:
        _until(socket, '"ready"')
        for _ in range(_WARM + count):
            began = time.perf_counter()
            socket.send(said)
            _until(socket, None)
            seconds.append(time.perf_counter() - began)
            _until(socket, '"turn-complete"')
    return Spoken(tuple(seconds[_WARM:]))


def _until(socket: Connection, said: str | None) -> None:
    """Wait for a frame that contains ``said``, or for audio."""
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        message = socket.recv(timeout=_PATIENCE)
        if isinstance(message, bytes) if said is None else said in str(message):
            return
    raise BenchError("The live chat did not answer.")


def _utterance() -> bytes:
    """A short tone and the pause by which a model detects the end of speech."""
    step = 2 * math.pi * 440 / _RATE
    count = round(_SPEECH_SECONDS * _RATE)
    tone = array("h", (round(12_000 * math.sin(step * n)) for n in range(count)))
    return tone.tobytes() + bytes(2 * round(_PAUSE_SECONDS * _RATE))
