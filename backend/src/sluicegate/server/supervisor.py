"""The supervisor of several processes that serve one port.

It listens, starts the processes on the same socket, and starts another when one has ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
from typing import TYPE_CHECKING, Final

from sluicegate.errors import ConfigurationError
from sluicegate.server.supervised import CHANNEL, LISTENER, REPLACED
from sluicegate.server.terminal import is_coloured
from sluicegate.server.uvicorn_server import FORCED, bind, url_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluicegate.server.settings import Settings

_FIRST_PAUSE: Final = 0.5
_LONGEST_PAUSE: Final = 30.0
_STABLE_SECONDS: Final = 60.0
"""Seconds after which the end of a process is no longer one of a series."""

_log: Final = logging.getLogger("sluicegate")


def supervise(arguments: Sequence[str], settings: Settings) -> int:
    """Serve with several processes until a signal comes; SIGHUP replaces them one by one.

    Args:
        arguments: The command line of each process.
        settings: Their settings.

    Returns:
        0, the exit code of a first process that could not start, or `FORCED` if one has failed.

    Raises:
        ConfigurationError: The port cannot be used, or the system has no SIGHUP.
    """
    if not hasattr(signal, "SIGHUP"):
        raise ConfigurationError("Several processes need a Unix system; leave --processes out.")
    with bind(settings) as listener:
        supervisor = Supervisor(arguments, listener, settings)
        return asyncio.run(supervisor.run())


class _Process:
    """One process of a supervisor."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        channel: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        self._process = process
        self._reader, self._writer = channel
        self.pid = process.pid
        self.started_at = asyncio.get_running_loop().time()
        self.ended = asyncio.create_task(process.wait())
        """The exit code; negative for a signal."""
        self.left_place = asyncio.Event()
        """Set when it has ended, or another has replaced it."""
        self.ended.add_done_callback(self._on_end)

    def _on_end(self, _: asyncio.Task[int]) -> None:
        self.left_place.set()
        self._writer.close()

    @classmethod
    async def start(cls, arguments: Sequence[str], listener: socket.socket) -> _Process:
        """Start a process of the command line ``arguments`` on a listening socket."""
        ours, theirs = socket.socketpair()
        descriptors = (listener.fileno(), theirs.fileno())
        with theirs:
            process = await asyncio.create_subprocess_exec(
                # "-P" leaves the current folder out of the path, as the script does.
                *(sys.executable, "-P", "-m", "sluicegate", *arguments),
                stdin=asyncio.subprocess.DEVNULL,
                pass_fds=descriptors,
                env={**os.environ, LISTENER: str(descriptors[0]), CHANNEL: str(descriptors[1])},
                # Ctrl+C at a terminal is for the supervisor alone.
                start_new_session=True,
            )
        return cls(process, await asyncio.open_connection(sock=ours))

    async def description(self) -> str | None:
        """Wait until it answers requests, and return what it serves; None if it has ended."""
        line = b""
        with contextlib.suppress(OSError):
            line = await self._reader.readline()
        if line:
            _log.info("a server process answers requests pid=%d", self.pid)
        return line.decode().strip() or None

    def replace(self) -> None:
        """Let it end with its last turn; another process serves new connections."""
        self.left_place.set()
        self._writer.write(REPLACED)

    def terminate(self) -> None:
        """Let it shut down; the second time, end it at once."""
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()


class Supervisor:
    """Keeps ``settings.processes`` processes on one listening socket.

    Args:
        arguments: The command line of each process.
        listener: The listening socket.
        settings: The settings of the processes.
    """

    def __init__(
        self, arguments: Sequence[str], listener: socket.socket, settings: Settings
    ) -> None:
        self._arguments = arguments
        self._listener = listener
        self._count = settings.processes
        self._places: list[_Process] = []
        self._running: set[_Process] = set()
        self._stopping = asyncio.Event()
        self._replacing: asyncio.Task[None] | None = None

    async def run(self) -> int:
        """Serve until a signal comes, and return the exit code."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGHUP, self._replace_all)
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._stop)
        # The first one creates tables, and reports what is wrong with the agent or a setting.
        first = await self._start()
        description = await first.description()
        if description is None:
            code = await first.ended
            return 0 if self._stopping.is_set() else code
        self._places = [first]
        for _ in range(1, self._count):
            self._places.append(await self._start())
        await asyncio.gather(*(process.description() for process in self._places[1:]))
        if not self._stopping.is_set():
            self._announce(description)
        await asyncio.gather(*(self._keep(place) for place in range(self._count)))
        codes = await asyncio.gather(*(process.ended for process in self._running))
        # One that was starting had no handler for the signal yet.
        return FORCED if any(code not in (0, -signal.SIGTERM) for code in codes) else 0

    async def _start(self) -> _Process:
        process = await _Process.start(self._arguments, self._listener)
        self._running.add(process)
        process.ended.add_done_callback(lambda _: self._forget(process))
        if self._stopping.is_set():
            process.terminate()
        return process

    def _forget(self, process: _Process) -> None:
        if not self._stopping.is_set():
            self._running.discard(process)

    def _announce(self, description: str) -> None:
        url = url_of(self._listener)
        shown = f"\x1b[1m{url}\x1b[0m" if is_coloured(sys.stdout) else url
        sys.stdout.write(
            f"sluicegate {description} at {shown} with {self._count} processes (Ctrl+C ends it)\n"
        )
        sys.stdout.flush()

    async def _keep(self, place: int) -> None:
        """Start another process when the one at a place ends, after pauses that grow."""
        loop = asyncio.get_running_loop()
        pause = _FIRST_PAUSE
        while not self._stopping.is_set():
            process = self._places[place]
            await process.left_place.wait()
            if self._stopping.is_set() or not process.ended.done():
                continue
            if loop.time() - process.started_at >= _STABLE_SECONDS:
                pause = _FIRST_PAUSE
            _log.error(
                "a server process has ended pid=%d code=%d; another starts in %.1f seconds",
                process.pid,
                process.ended.result(),
                pause,
            )
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
            if not self._stopping.is_set() and process is self._places[place]:
                self._places[place] = process = await self._start()
                await process.description()

    def _replace_all(self) -> None:
        if self._replacing is None or self._replacing.done():
            self._replacing = asyncio.create_task(self._replace_one_by_one())
        else:
            _log.warning("the processes are being replaced already")

    async def _replace_one_by_one(self) -> None:
        """Start a process for each; the one before ends with its last turn."""
        for place in range(len(self._places)):
            if self._stopping.is_set():
                return
            process = await self._start()
            if await process.description() is None:
                _log.error(
                    "a new server process could not start pid=%d; the old ones go on", process.pid
                )
                return
            before, self._places[place] = self._places[place], process
            before.replace()
            _log.info("a server process is replaced pid=%d by=%d", before.pid, process.pid)

    def _stop(self) -> None:
        self._stopping.set()
        for process in self._running:
            process.terminate()
