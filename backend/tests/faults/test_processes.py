"""Several processes behind one port: they are replaced, and no turn and no approval is lost."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import websockets
from websockets.typing import Origin

from tests.faults.served import BACKEND, COMMAND, LIMIT, SETTINGS, asking, client_of, is_running
from tests.real_stores.postgres import Postgres
from tests.real_stores.valkey import Valkey
from tests.server.page import Page
from tests.transports.socket_client import SocketClient

_ANSWERS = re.compile(r"a server process answers requests pid=(\d+)")
_START_SECONDS = 120.0
_SOURCE = os.environ.get("PYTHONPATH", str(BACKEND / "src"))
SESSIONS = "postgresql+asyncpg://nobody@localhost/none"
STREAMS = "valkey://localhost:1/0"


@dataclass
class Supervised:
    """A running supervisor of two processes."""

    process: subprocess.Popen[str]
    folder: Path
    url: str

    @property
    def log(self) -> str:
        """What was logged."""
        return (self.folder / "log").read_text()

    def ids(self) -> list[int]:
        """The ids of the processes that have answered requests, the oldest first."""
        return [int(found) for found in _ANSWERS.findall(self.log)]

    def running(self) -> list[int]:
        """The ids of those that have not ended."""
        return [pid for pid in self.ids() if is_running(pid)]

    async def until(self, text: str, count: int = 1) -> None:
        """Wait until a text was logged so many times."""
        async with asyncio.timeout(_START_SECONDS):
            # A file announces nothing.
            while self.log.count(text) < count:  # noqa: ASYNC110
                await asyncio.sleep(0.05)


@pytest.fixture(scope="module")
def supervised(real_stores_folder: Path) -> Iterator[Supervised]:
    """Two processes on one port; they end without an error."""
    folder = Path(tempfile.mkdtemp(prefix="processes-", dir=real_stores_folder))
    (folder / "holds").mkdir()
    postgres, valkey = Postgres(folder / "postgres"), Valkey(folder / "valkey")
    postgres.create()
    postgres.start()
    valkey.start()
    stores = ("--sessions", postgres.url(), "--streams", valkey.url())
    files = ("--artifacts", f"file:{folder}/files")
    options = ("--no-page", "--processes", "2")
    target = "tests.agents.conformance_agent:root_agent"
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen(
            [COMMAND, "serve", target, *stores, *files, "--port", "0", *options],
            cwd=BACKEND,
            env={
                **os.environ,
                **SETTINGS,
                "PYTHONPATH": os.pathsep.join((_SOURCE, str(BACKEND))),
                "SLUICEGATE_EFFECTS": str(folder / "effects"),
                "SLUICEGATE_HOLDS": str(folder / "holds"),
                # A replaced process waits for its last turn while the next one starts.
                "SLUICEGATE_SHUTDOWN_TIMEOUT": "600",
            },
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        ) as process,
    ):
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            found = re.search(r"http://[\d.]+:\d+", line)
            assert found, (folder / "log").read_text()
            assert "with 2 processes" in line
            yield Supervised(process, folder, found[0])
            process.send_signal(signal.SIGTERM)
            assert process.wait(LIMIT) == 0
        finally:
            process.kill()
            valkey.kill()
            postgres.stop()


def _accepts(pid: int, url: str) -> bool:
    """Whether a process holds the listening socket of an address."""
    port, listening = f":{urlsplit(url).port:04X}", "0A"
    rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    inodes = {row[9] for row in rows if row[1].endswith(port) and row[3] == listening}
    held = set[str]()
    # The process may end meanwhile, or close a file.
    with contextlib.suppress(FileNotFoundError):
        for each in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):
                held.add(os.readlink(each))
    return any(f"socket:[{inode}]" in held for inode in inodes)


async def _accept_nothing(pids: list[int], url: str) -> None:
    """Wait until no process that runs holds the listening socket of an address."""
    if sys.platform != "linux":
        return
    async with asyncio.timeout(LIMIT):
        # A file announces nothing.
        while any(_accepts(pid, url) for pid in pids if is_running(pid)):  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def _ended(pid: int) -> None:
    async with asyncio.timeout(LIMIT):
        # The process of another parent announces nothing.
        while is_running(pid):  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def test_a_killed_process_is_replaced_and_its_approval_runs_once(
    supervised: Supervised,
) -> None:
    async with client_of(supervised.url) as http:
        page = Page(http)
        await page.say("story:approval")
        [approval_id] = page.asks()
        before = len(supervised.ids())
        os.kill(supervised.ids()[-1], signal.SIGKILL)
        await supervised.until("another starts in 0.5 seconds")
        async with asyncio.timeout(_START_SECONDS):
            while len(supervised.ids()) == before:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
    async with client_of(supervised.url) as http:
        waiting = (await http.get("/api/approvals")).json()["approvals"]
        assert [card["approvalId"] for card in waiting] == [approval_id]
        page = Page(http, chat_id=page.chat_id, messages=page.messages)
        assert (await page.answer())[-1]["type"] == "finish"
    effects = (supervised.folder / "effects").read_text().splitlines()
    assert sum(page.chat_id in line for line in effects) == 1


async def test_a_rolling_restart_ends_no_turn(supervised: Supervised) -> None:
    # Another test may have killed the newer of the first two.
    old = supervised.running()
    assert len(old) == 2
    replaced = supervised.log.count("a server process is replaced")
    async with client_of(supervised.url) as http, client_of(supervised.url) as other:
        page = Page(http)
        held = supervised.folder / "holds" / page.chat_id
        held.touch()
        socket_url = f"{supervised.url.replace('http', 'ws')}/api/chat/ws"
        async with (
            asking(page, "story:plain") as stream,
            websockets.connect(
                socket_url, origin=Origin(supervised.url), open_timeout=LIMIT
            ) as socket,
        ):
            await stream.until("start")
            supervised.process.send_signal(signal.SIGHUP)
            await supervised.until("a server process is replaced", replaced + 1)
            # The second old process answers until its replacement has started.
            for _ in range(10):
                async with client_of(supervised.url) as fresh:
                    assert (await fresh.get("/api/chats")).status_code == 200
            await supervised.until("a server process is replaced", replaced + 2)
            # Heartbeats come first if the new processes take long to start.
            code, _ = await SocketClient(socket).wait_closed()
            assert code == 1012
            await _accept_nothing(old, supervised.url)
            # The new processes answer while the turn of an old one runs.
            assert (await other.get("/readyz")).status_code == 200
            serving = [pid for pid in old if is_running(pid)]
            assert serving
            if sys.platform == "linux":
                assert _accepts(supervised.ids()[-1], supervised.url)
                assert not any(_accepts(pid, supervised.url) for pid in serving)
            held.unlink()
            assert (await stream.to_the_end())[-1]["type"] == "finish"
    for pid in old:
        await _ended(pid)


def test_a_first_process_that_cannot_start_ends_the_command(tmp_path: Path) -> None:
    stores = ("--sessions", SESSIONS, "--streams", STREAMS)
    command = [COMMAND, "serve", "nothing.py", *stores]
    ran = subprocess.run(
        [*command, "--processes", "2", "--port", "0"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=_START_SECONDS,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.count("nothing.py") == 1
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize(
    ("stores", "needed"),
    [
        ((), "PostgreSQL"),
        (("--sessions", SESSIONS), "Valkey"),
        (("--sessions", SESSIONS, "--streams", STREAMS, "--metrics-port", "9464"), "collector"),
    ],
)
def test_several_processes_need_what_they_can_share(stores: tuple[str, ...], needed: str) -> None:
    ran = subprocess.run(
        [COMMAND, "demo", "--processes", "2", *stores],
        capture_output=True,
        text=True,
        timeout=_START_SECONDS,
        check=False,
    )
    assert ran.returncode == 2
    assert needed in ran.stderr
    assert len(ran.stderr.splitlines()) == 1


async def test_a_process_shuts_down_when_its_supervisor_is_gone() -> None:
    code = """
import signal, socket, sys, threading
from sluicegate.server.supervised import Inherited
ours, theirs = socket.socketpair()
asked = threading.Event()
Inherited(socket.socket(), theirs).watch(asked.set)
ours.sendall(b"R")
asked.wait(30)
ours.close()
signal.pause()
"""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", code), env={**os.environ, "PYTHONPATH": _SOURCE}
    )
    async with asyncio.timeout(LIMIT):
        assert await process.wait() == -signal.SIGTERM
