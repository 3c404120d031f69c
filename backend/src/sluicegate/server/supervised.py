"""The side of a supervised process: what it inherits, and its channel to the supervisor.

The channel is a pair of connected sockets. The process writes a line once it answers requests; the
supervisor writes `REPLACED` to one that another replaces, and at the end of the channel a
process knows that its supervisor is gone.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

LISTENER: Final = "SLUICEGATE_LISTENER_FD"
CHANNEL: Final = "SLUICEGATE_SUPERVISOR_FD"
"""Variables with the file descriptors that a process inherits."""

REPLACED: Final = b"R"


@dataclass(frozen=True)
class Inherited:
    """What a process has from its supervisor: the listening socket and the channel."""

    listener: socket.socket
    channel: socket.socket

    def announce(self, description: str) -> None:
        """Report to the supervisor that requests are answered."""
        # A supervisor that is gone is noticed by `watch`.
        with contextlib.suppress(OSError):
            self.channel.sendall(f"{description}\n".encode())

    def watch(self, replace: Callable[[], None]) -> None:
        """Call ``replace`` when the supervisor asks for it; shut down when it is gone."""

        def watch() -> None:
            with contextlib.suppress(OSError):
                while self.channel.recv(1) == REPLACED:
                    replace()
            os.kill(os.getpid(), signal.SIGTERM)

        threading.Thread(target=watch, name="supervisor", daemon=True).start()


def is_supervised() -> bool:
    """Whether this process has a supervisor."""
    return CHANNEL in os.environ


def inherited() -> Inherited | None:
    """Return what this process has from a supervisor; None without one."""
    descriptors = [os.environ.pop(name, None) for name in (LISTENER, CHANNEL)]
    if None in descriptors:
        return None
    listener, channel = (socket.socket(fileno=int(each or "")) for each in descriptors)
    for inherited_socket in (listener, channel):
        inherited_socket.set_inheritable(False)
    return Inherited(listener, channel)
