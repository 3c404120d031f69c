"""The guides of the operator: what operate.md and back-up.md print for a shell is run, in order.

The commands run in a folder of their own, with the ports and databases of the test in place of
those of the pages. What a machine lacks (curl, sqlite3, ssh-keygen, pgrep) skips a test.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.docs.markdown import DOCS, ROOT, TESTS, fences
from tests.faults.served import asking, at, client_of, is_running
from tests.real_stores.databases import connection_to, execute
from tests.real_stores.ports import free_port
from tests.real_stores.postgres import Postgres
from tests.real_stores.valkey import Valkey
from tests.server.page import Page
from tests.upgrades.write_fixtures import COMMITS, FIXTURES

OPERATE: Final = (DOCS / "how-to" / "operate.md").read_text("utf-8")
BACK_UP: Final = (DOCS / "how-to" / "back-up.md").read_text("utf-8")
SCALE_OUT: Final = (DOCS / "how-to" / "scale-out.md").read_text("utf-8")
LIMIT: Final = 120.0
"""Seconds for a command, or for new processes; only a defect takes so long, not a busy machine."""

RUN: Final = {
    OPERATE: (
        "--metrics-port",
        "OTEL_EXPORTER_OTLP_ENDPOINT=",
        "user export",
        "--audit-checkpoint",
        "--checkpoint >",
        "kill -HUP",
    ),
    BACK_UP: ("pg_dump", "VACUUM INTO", "--against"),
}
"""A part of each block that a test here runs."""

OTHERS: Final = ("promtool",)
"""Blocks of other tests: `test_alert_rules.py` evaluates the rules without promtool."""

ANN: Final = {"x-user": "ann"}


def block(page: str, part: str) -> str:
    """The only block for a shell that has a text."""
    [found] = [
        fence.code for fence in fences(page) if fence.language == "sh" and part in fence.code
    ]
    return found


@dataclass
class Operator:
    """A shell in a folder, with an agent, the settings of a server, and what its pages name."""

    folder: Path
    settings: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    """What stands in the commands in place of the names and ports of the pages."""
    port: int = 0
    """That of the server that runs."""

    def __post_init__(self) -> None:
        agents = TESTS / "agents"
        shutil.copyfile(agents / "conformance_agent.py", self.folder / "agent.py")
        shutil.copyfile(agents / "conformance.yaml", self.folder / "conformance.yaml")
        (self.folder / "holds").mkdir()
        (self.folder / "bin").mkdir()

    @property
    def url(self) -> str:
        """The URL of the server."""
        return f"http://127.0.0.1:{self.port}"

    def shim(self, name: str, line: str) -> None:
        """Put a command before those of the machine."""
        path = self.folder / "bin" / name
        path.write_text(f"#!/bin/sh\n{line}\n", "utf-8")
        path.chmod(0o700)

    def own(self, commands: str) -> str:
        """The commands with the names of this operator."""
        for name, mine in self.names.items():
            commands = commands.replace(name, mine)
        return commands

    def run(self, commands: str) -> str:
        """Run commands until one fails; returns what they print."""
        done = subprocess.run(
            ["bash", "-eu", "-o", "pipefail", "-c", self.own(commands)],
            cwd=self.folder,
            env=self._environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT,
        )
        assert done.returncode == 0, f"{commands}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    @contextmanager
    def serving(self, command: str) -> Iterator[Path]:
        """Run a command of a page that serves, on a port of its own; gives its log."""
        log = self.folder / "server.log"
        with (
            log.open("w", encoding="utf-8") as errors,
            subprocess.Popen(
                ["bash", "-c", f"{self.own(command).strip()} --port 0"],
                cwd=self.folder,
                env=self._environment(),
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            ) as process,
        ):
            try:
                assert process.stdout is not None
                found = re.search(r"http://127\.0\.0\.1:(\d+)/", process.stdout.readline())
                assert found is not None, log.read_text("utf-8")
                self.port = int(found[1])
                self.names["127.0.0.1:8000"] = f"127.0.0.1:{self.port}"
                # Other servers of this machine are none of this operator's.
                self.shim("pgrep", f'exec {shutil.which("pgrep")} -s {process.pid} "$@"')
                yield log
                process.send_signal(signal.SIGTERM)
                assert process.wait(LIMIT) == 0, log.read_text("utf-8")
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)

    def _environment(self) -> dict[str, str]:
        path = (str(self.folder / "bin"), str(Path(sys.executable).parent), os.environ["PATH"])
        return {
            **os.environ,
            "PATH": os.pathsep.join(path),
            "HOME": str(self.folder),
            "PYTHONPATH": str(ROOT / "backend" / "src"),
            "SLUICEGATE_AUTH": "header:x-user",
            "SLUICEGATE_EFFECTS": str(self.folder / "effects"),
            "SLUICEGATE_HOLDS": str(self.folder / "holds"),
            "SLUICEGATE_LEASE_TTL": "60",
            **self.settings,
        }


@contextmanager
def collector() -> Iterator[tuple[int, list[str]]]:
    """A collector of OpenTelemetry; gives its port and the names of the spans it has received."""
    names: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            if self.path == "/v1/traces":
                request = ExportTraceServiceRequest.FromString(body)
                names.extend(
                    span.name
                    for resource in request.resource_spans
                    for scope in resource.scope_spans
                    for span in scope.spans
                )
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port, names
        finally:
            server.shutdown()
            thread.join()


def needs(*programs: str) -> pytest.MarkDecorator:
    missing = [each for each in programs if shutil.which(each) is None]
    return pytest.mark.skipif(bool(missing), reason=f"without {', '.join(missing)}")


@pytest.mark.parametrize("page", RUN, ids=["operate.md", "back-up.md"])
def test_every_block_for_a_shell_is_run(page: str) -> None:
    for fence in fences(page):
        if fence.language == "sh":
            parts = [part for part in (*RUN[page], *OTHERS) if part in fence.code]
            assert len(parts) == 1, fence.code


@needs("curl", "sqlite3", "ssh-keygen", "pgrep")
async def test_an_operator_sees_backs_up_exports_and_deletes_what_one_server_stores(
    tmp_path: Path,
) -> None:
    operator = Operator(tmp_path, names={"9464": str(free_port())})
    serve, curl = block(OPERATE, "--metrics-port").strip().splitlines()
    with operator.serving(serve):
        async with client_of(operator.url) as http:
            http.headers.update(ANN)
            page = Page(http)
            await page.say("story:approval")
            await page.answer()
        seen = operator.run(curl)
        assert re.search(r'sluicegate_approval_outcomes_total\{[^}]*"executed"[^}]*\} 1', seen)
        operator.run(block(BACK_UP, "VACUUM INTO"))
    copy = tmp_path / "chats.backup.db"
    assert copy.stat().st_mode & 0o077 == 0
    assert operator.run(f"sqlite3 {copy} 'SELECT state FROM sluicegate_approvals'") == "executed\n"
    with collector() as (traces, names):
        operator.names["4318"] = str(traces)
        with operator.serving(block(OPERATE, "OTLP_ENDPOINT=")):
            async with client_of(operator.url) as http:
                http.headers.update(ANN)
                await Page(http).say("story:one_tool")
    assert {"turn", "execute_tool lookup"} <= set(names)
    # Each loads the agent, which takes a busy machine half a minute.
    for command in block(OPERATE, "user export").splitlines():
        operator.run(command)
    exported = json.loads((tmp_path / "export-of-ann" / "user.json").read_text("utf-8"))
    assert len(exported["chats"]) == 2
    (tmp_path / ".ssh").mkdir(mode=0o700)
    operator.run("ssh-keygen -q -t ed25519 -N '' -f ~/.ssh/id_ed25519")
    operator.run(block(OPERATE, "--audit-checkpoint"))
    assert (tmp_path / "checkpoint.txt.sig").is_file()


@pytest.fixture
async def upgraded(
    tmp_path: Path, postgres: Postgres, valkey: Valkey, monkeypatch: pytest.MonkeyPatch
) -> Any:
    """An operator of two processes, whose database is of the schema before."""
    server = {"PGHOST": "127.0.0.1", "PGPORT": str(postgres.port), "PGUSER": "postgres"}
    operator = Operator(
        tmp_path,
        settings={
            **server,
            "SLUICEGATE_SESSIONS": postgres.url("chats"),
            "SLUICEGATE_STREAMS": valkey.url(),
        },
        names={
            "user@host": f"postgres@127.0.0.1:{postgres.port}",
            "--processes 4": "--processes 2",
        },
    )
    for program in ("pg_dump", "pg_restore", "createdb"):
        operator.shim(program, f'exec {postgres.program(program)} "$@"')
    await execute(postgres, "CREATE DATABASE chats STRATEGY file_copy")
    dump = gzip.decompress((FIXTURES / f"schema-{max(COMMITS)}.sql.gz").read_bytes())
    async with connection_to(postgres.url("chats")) as connection:
        await connection.execute(dump.decode())
    yield operator
    for name in ("chats", "restored"):
        await execute(postgres, f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


async def states(url: str) -> Mapping[str, str]:
    async with connection_to(url) as connection:
        rows = await connection.fetch("SELECT chat, state FROM sluicegate_approvals")
    return {row["chat"]: row["state"] for row in rows}


def are_replaced(processes: int, log: Path) -> bool:
    """Whether so many processes of a server are gone and others have taken their places."""
    replaced = re.findall(r"is replaced pid=(\d+)", log.read_text("utf-8"))
    return len(replaced) == processes and not any(is_running(int(pid)) for pid in replaced)


async def until_replaced(processes: int, log: Path) -> None:
    """Wait for it: one that leaves may close a connection at the moment in which it is used."""
    async with asyncio.timeout(LIMIT):
        # The processes of another parent announce nothing.
        while not are_replaced(processes, log):  # noqa: ASYNC110
            await asyncio.sleep(0.05)


@needs("curl", "pgrep")
async def test_an_operator_upgrades_restarts_and_restores_two_processes_on_postgresql(
    upgraded: Operator, postgres: Postgres
) -> None:
    before = await states(postgres.url("chats"))
    with upgraded.serving(block(SCALE_OUT, "--processes 4")) as log:
        assert await states(postgres.url("chats")) == before
        upgraded.run(block(OPERATE, "--checkpoint >"))
        async with client_of(upgraded.url) as http:
            http.headers.update(ANN)
            page = Page(http)
            held = upgraded.folder / "holds" / page.chat_id
            held.touch()
            async with asking(page, "story:plain", **ANN) as stream:
                await stream.until("start")
                upgraded.run(block(OPERATE, "kill -HUP"))
                held.unlink()
                assert (await stream.to_the_end())[-1]["type"] == "finish"
        await until_replaced(2, log)
        async with client_of(upgraded.url) as http:
            http.headers.update(ANN)
            waits = Page(http)
            await waits.say("story:approval")
            chats = await states(postgres.url("chats"))
            upgraded.run(block(BACK_UP, "pg_dump"))
            asked = at(waits, http)
            await waits.answer()
        assert log.read_text("utf-8").count("turn failed") == 0
    restored = postgres.url("restored")
    assert (upgraded.folder / "chats.dump").stat().st_mode & 0o077 == 0
    assert await states(restored) == chats
    upgraded.run(block(BACK_UP, "--against"))
    [closing] = [fence.code for fence in fences(BACK_UP) if fence.language == "sql"]
    async with connection_to(restored) as connection:
        await connection.execute(closing)
    upgraded.settings["SLUICEGATE_SESSIONS"] = restored
    with upgraded.serving("sluicegate serve agent.py"):
        async with client_of(upgraded.url) as http:
            http.headers.update(ANN)
            await at(asked, http).answer()
            [part] = [
                part for part in (await at(asked, http).history())["parts"] if "approval" in part
            ]
    # What the backup has forgotten does not run again, by whatever answer.
    assert "expired" in json.dumps(part), part
    assert (upgraded.folder / "effects").read_text("utf-8").count('"pay"') == 1
