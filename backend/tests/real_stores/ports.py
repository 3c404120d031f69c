"""Free ports of this machine."""

from __future__ import annotations

import socket
import sys


def free_port() -> int:
    """Return a port without a listener.

    On Linux it is given to no other process while this one lives, and refuses connections until a
    server listens on it that allows the reuse of its address.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        if sys.platform == "linux":
            # The port is bound as long as the descriptor is open.
            probe.detach()
        return port
