"""Interleaved rounds: in each, every peer answers once while all others are idle."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from bench.client import BenchError
from bench.script import FAST, SLOW, SLOW_DELTAS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from bench.client import Address
    from bench.peers import Peer


@dataclass(slots=True)
class Samples:
    """The measurements of one peer, one value per round, in seconds.

    ``per_delta`` and ``whole`` come from the answer without waits; where the text is held back,
    ``per_delta`` is a share of the whole. ``first_delta`` from the model
    that awaits a millisecond before each delta. ``client`` is this process's own work per delta,
    ``server`` that of the server's event loop over the whole answer, if the system reports it: it
    counts work and no waiting, so other programs hardly disturb it.
    """

    per_delta: list[float] = field(default_factory=list)
    whole: list[float] = field(default_factory=list)
    first_delta: list[float] = field(default_factory=list)
    client: list[float] = field(default_factory=list)
    server: list[float] = field(default_factory=list)


class Server(Protocol):
    """The interface of a running server; `ServerProcess` implements it."""

    def address(self) -> Address:
        """Host and port of the server."""

    def loop_seconds(self) -> float | None:
        """CPU seconds of its event loop so far; None if unknown."""


def measure(
    peers: Sequence[Peer],
    servers: Mapping[str, Server],
    *,
    rounds: int,
    deltas: int,
    progress: Callable[[str], None],
) -> dict[str, Samples]:
    """Send a request to every peer in every round; the first round is a warm-up.

    Raises:
        BenchError: A peer fails, or does not send what the script says.
    """
    samples = {peer.name: Samples() for peer in peers}
    for number in range(rounds + 1):
        progress(f"round {number} of {rounds}" if number else "warming up")
        # Each round begins with another peer.
        turned = number % len(peers) if peers else 0
        for peer in (*peers[turned:], *peers[:turned]):
            found = _once(peer, servers[peer.name], deltas)
            if number:
                _add(samples[peer.name], found)
    return samples


def _once(peer: Peer, server: Server, deltas: int) -> Samples:
    before = server.loop_seconds()
    fast = peer.ask(server.address(), FAST)
    after = server.loop_seconds()
    slow = peer.ask(server.address(), SLOW)
    for exchange, expected in ((fast, deltas), (slow, SLOW_DELTAS)):
        sent = peer.deltas(exchange.body)
        if sent != expected:
            raise BenchError(f"{peer.title} sent {sent} deltas, not {expected}.")
    if fast.first is None or slow.first is None:
        raise BenchError(f"{peer.title} sent its deltas in no shape that could be timed.")
    streamed = fast.last / deltas if peer.is_held else (fast.last - fast.first) / (deltas - 1)
    return Samples(
        per_delta=[streamed],
        whole=[fast.last],
        first_delta=[slow.first],
        client=[fast.cpu / deltas],
        server=[] if before is None or after is None else [(after - before) / deltas],
    )


def _add(kept: Samples, found: Samples) -> None:
    kept.per_delta += found.per_delta
    kept.whole += found.whole
    kept.first_delta += found.first_delta
    kept.client += found.client
    kept.server += found.server
