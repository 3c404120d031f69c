"""How many connections a server accepts, in all and from one peer."""

from __future__ import annotations

import ipaddress
from collections import Counter
from typing import TYPE_CHECKING, Final

from sluicegate.server.network_addresses import address_of, client_network

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Sequence

    from sluicegate.server.limit_refusal_log import RefusalLog

_RESERVED_FILES: Final = 128
"""Open files that a process needs beside its connections."""


class ConnectionLimits:
    """The open connections of a server, which are refused beyond a limit.

    Args:
        total: Connections that may be open.
        per_peer: Connections of one address; for IPv6, of one network of 64 bits.
        trusted: Networks of proxies, whose connections are those of many users.
        refusals: Logs what is refused.
    """

    def __init__(
        self, *, total: int, per_peer: int, trusted: Sequence[str], refusals: RefusalLog
    ) -> None:
        self._total = total
        self._per_peer = per_peer
        self._trusted = [ipaddress.ip_network(network) for network in trusted]
        self._refusals = refusals
        self._open: dict[asyncio.BaseTransport, str | None] = {}
        self._peers: Counter[str] = Counter()

    def accept(self, transport: asyncio.BaseTransport, host: str | None) -> bool:
        """Count a connection; False, and it is not counted, if it is one too many."""
        if len(self._open) >= self._total:
            self._refusals.note("max_connections", host or "unknown")
            return False
        peer = self._peer_of(host)
        if peer is not None:
            if self._peers[peer] >= self._per_peer:
                self._refusals.note("max_connections_per_peer", peer)
                return False
            self._peers[peer] += 1
        self._open[transport] = peer
        return True

    def release(self, transport: asyncio.BaseTransport) -> None:
        """Stop counting a connection."""
        peer = self._open.pop(transport, None)
        if peer is not None:
            self._peers[peer] -= 1
            if not self._peers[peer]:
                del self._peers[peer]

    def _peer_of(self, host: str | None) -> str | None:
        """Return what the connections of one client have in common; None for a trusted proxy."""
        address = None if host is None else address_of(host)
        if address is None or any(address in network for network in self._trusted):
            return None
        return client_network(address)


def connections_possible(wanted: int) -> int:
    """Return how many connections the process may have open; raises its limit of open files."""
    try:
        import resource  # noqa: PLC0415 - Windows has no such module and no such limit
    except ImportError:
        return wanted
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + _RESERVED_FILES
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return wanted
    allowed = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return max(1, allowed - _RESERVED_FILES)
