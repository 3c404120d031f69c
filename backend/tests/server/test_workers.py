"""Workers that register over HTTP, from registration to the end of the lease (S1-R23, S1-R35)."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from sluicegate.server.cli import main
from tests.engine.stage import calls, says, scripted
from tests.server.exchange import PATIENCE
from tests.server.page import Page, served
from tests.tools.worker_process import WorkerForkServer, WorkerProcess

TOKEN = "a-token-of-some-length"
OTHER = "another-token-of-some-length"


def start(nursery: WorkerForkServer, *options: str) -> WorkerProcess:
    token, effects = nursery.folder / "token", nursery.folder / "effects"
    token.write_text(TOKEN)
    effects.touch()
    return nursery.start("--token", str(token), *options, effects=effects)


@pytest.fixture(scope="module")
def worker(nursery: WorkerForkServer) -> WorkerProcess:
    return start(nursery)


@dataclass
class Registrar:
    """A server that records registrations and grants short leases."""

    asked: asyncio.Queue[tuple[str, str]] = field(default_factory=asyncio.Queue)

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = re.search(r"content-length: (\d+)", head.lower())
        body = await reader.readexactly(int(length[1])) if length else b""
        assert f"Bearer {TOKEN}" in head
        self.asked.put_nowait((head.partition(" HTTP")[0], body.decode()))
        said = b'{"lease": 0.3}'
        close = b"content-length: 14\r\nconnection: close\r\n\r\n"
        writer.write(b"HTTP/1.1 200 OK\r\n" + close + said)
        await writer.drain()
        writer.close()
        await writer.wait_closed()


def known(folder: Path) -> str:
    file = folder / "workers.txt"
    named = {"shop": TOKEN, "late": OTHER}
    lines = [f"sha256:{hashlib.sha256(t.encode()).hexdigest()} {n}" for n, t in named.items()]
    file.write_text("\n".join(lines))
    return str(file)


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


async def test_a_registered_tool_is_approved_run_and_removed_with_its_worker(
    tmp_path: Path, worker: WorkerProcess
) -> None:
    agent = scripted([calls(("shop_pay", {"n": 7})), says("done")])
    async with served(agent, tmp_path, worker_registrations=known(tmp_path)) as http:
        body = {"name": "shop", "url": worker.url}
        for _ in range(2):
            answer = await http.post("/api/workers", json=body, headers=bearer(TOKEN))
            assert answer.status_code == 200
            assert answer.json()["lease"] == 30
            assert "shop_pay" in answer.json()["tools"]
        page = Page(http)
        read = await page.say("pay")
        assert "tool-approval-request" in [chunk["type"] for chunk in read]
        read = await page.answer()
        outputs = [c["output"] for c in read if c["type"] == "tool-output-available"]
        assert outputs == [{"paid": 7, "to": "nobody"}]
        assert (await http.delete("/api/workers/late", headers=bearer(TOKEN))).status_code == 404
        assert (await http.delete("/api/workers/shop", headers=bearer(TOKEN))).status_code == 204
        assert (await http.delete("/api/workers/shop", headers=bearer(TOKEN))).status_code == 404


@pytest.mark.parametrize(
    ("headers", "body", "status", "sentence"),
    [
        ({}, {}, 401, "credential is not known"),
        (bearer("no-such-token-is-known"), {}, 401, "credential is not known"),
        (bearer(OTHER), {"name": "shop", "url": "http://127.0.0.1/"}, 401, "another worker's"),
        (bearer(TOKEN), {"name": "shop"}, 400, "a name and a url"),
        (bearer(TOKEN), {"name": "shop", "url": 3}, 400, "are texts"),
        (bearer(TOKEN), [1], 400, "a name and a url"),
        (bearer(TOKEN), {"name": "shop", "url": "file:///etc/passwd"}, 400, "no http or https"),
        *(
            (bearer(TOKEN), {"name": "shop", "url": url}, 400, "worker_hosts (--worker-host)")
            for url in (
                "http://10.0.0.7:8001/mcp",
                "http://169.254.169.254/latest/meta-data",
                "http://127.0.0.2:8001/mcp",
                "http://93.184.216.34/mcp",
                "http://[::1]:8001/mcp",
                "http://[::ffff:10.0.0.7]:8001/mcp",
                "http://2130706433:8001/mcp",
                "http://0x7f.1:8001/mcp",
                "http://127.1:8001/mcp",
                "http://tools.example:8001/mcp",
                "http://localhost.example:8001/mcp",
            )
        ),
        *(
            (bearer(TOKEN), {"name": "shop", "url": url}, 400, sentence)
            for url, sentence in (
                ("http://ann@127.0.0.1:8001/mcp", "no http or https URL"),
                ("http://127.0.0.1\\@10.0.0.7:8001/mcp", "no http or https URL"),
                ("http://127.0.0.1:8001/mcp#x", "no http or https URL"),
                ("gopher://127.0.0.1:8001/mcp", "no http or https URL"),
                ("http://127.0.0.1:22/mcp", "The port 22 of the worker shop is not allowed"),
                ("http://127.0.0.1:0/mcp", "no http or https URL"),
                ("http://127.0.0.1:99999/mcp", "no http or https URL"),
            )
        ),
        (
            {**bearer(TOKEN), "x-forwarded-for": "127.0.0.1"},
            {"name": "shop", "url": "http://127.0.0.1:8001/mcp"},
            400,
            "neither the address from which it registers",
        ),
        (
            bearer(TOKEN),
            {"name": "shop", "url": "http://127.0.0.1:1024/"},
            400,
            "cannot be reached",
        ),
    ],
)
async def test_a_refused_registration_changes_nothing(
    tmp_path: Path, headers: dict[str, str], body: Any, status: int, sentence: str
) -> None:
    agent = scripted([says("hi")])
    async with served(agent, tmp_path, worker_registrations=known(tmp_path)) as http:
        answer = await http.post("/api/workers", json=body, headers=headers)
        assert answer.status_code == status
        assert sentence in answer.text
        assert (await http.delete("/api/workers/shop", headers=bearer(TOKEN))).status_code == 404


async def test_a_worker_renews_its_lease_and_deregisters(nursery: WorkerForkServer) -> None:
    registrar = Registrar()
    async with (
        await asyncio.start_server(registrar, "127.0.0.1", 0) as server,
        asyncio.timeout(PATIENCE),
    ):
        port = server.sockets[0].getsockname()[1]
        own = ("--register", f"http://127.0.0.1:{port}")
        worker = await asyncio.to_thread(start, nursery, *own)
        for _ in range(3):
            asked, body = await registrar.asked.get()
            assert asked == "POST /api/workers"
            assert json.loads(body) == {"name": "shop", "url": worker.url}
        await asyncio.to_thread(worker.kill, signal.SIGTERM)
        while asked != "DELETE /api/workers/shop":
            asked, _ = await registrar.asked.get()


async def test_a_server_without_registrations_refuses_workers(tmp_path: Path) -> None:
    async with served(scripted([says("hi")]), tmp_path) as http:
        answer = await http.post("/api/workers", json={}, headers=bearer(TOKEN))
        assert (answer.status_code, "--worker-registrations" in answer.text) == (401, True)


async def test_a_worker_refuses_calls_without_its_credential(worker: WorkerProcess) -> None:
    async with httpx.AsyncClient(timeout=PATIENCE) as http:
        for headers in ({}, bearer("a-guess-of-some-length")):
            assert (await http.post(worker.url, headers=headers)).status_code == 401
        assert (await http.get(f"{worker.url}/elsewhere")).status_code == 404


async def test_a_worker_without_a_credential_answers_pages_of_its_own_origin_alone(
    nursery: WorkerForkServer,
) -> None:
    effects = nursery.folder / "effects"
    effects.touch()
    worker = await asyncio.to_thread(nursery.start, effects=effects)
    own = worker.url.removesuffix("/mcp")
    expected = {
        own: 200,
        f"http://localhost:{worker.port}": 200,
        "http://localhost:1": 403,
        "https://tools.example": 403,
        "null": 403,
    }
    statuses = {}
    async with httpx.AsyncClient(timeout=PATIENCE) as http:
        for origin in expected:
            headers = {"origin": origin, "accept": "application/json, text/event-stream"}
            initialize = {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "initialize",
                "params": {
                    "protocolVersion": "2025-11-25",
                    "capabilities": {},
                    "clientInfo": {"name": "page", "version": "1"},
                },
            }
            answer = await http.post(worker.url, headers=headers, json=initialize)
            statuses[origin] = answer.status_code
    assert statuses == expected


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["nothing.py"], "There is no file nothing.py"),
        (["tools.py", "--host", "0.0.0.0"], "Without --token only loopback addresses are served"),
        (["tools.py", "--register", "http://x"], "A registration needs a credential"),
        (["tools.py", "--token", "none"], "The token file none cannot be read"),
        (["tools.py", "--token", "short"], "at least 16"),
        (["tools.py", "--name", "a_b"], "cannot be a worker's"),
    ],
)
def test_a_worker_that_cannot_start_prints_the_reason_in_one_sentence(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    sentence: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tools.py").write_text('def a():\n    "A."\n')
    (tmp_path / "short").write_text("abc")
    assert main(["worker", *options]) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1


async def test_serving_with_workers_leaves_no_task_behind(
    tmp_path: Path, worker: WorkerProcess
) -> None:
    agent = scripted([says("hi")])
    before = len(asyncio.all_tasks())
    async with served(agent, tmp_path, workers=(f"shop={worker.url}",)):
        pass
    assert len(asyncio.all_tasks()) == before


AGENT = """
from google.adk.agents.llm_agent import LlmAgent

root_agent = LlmAgent(name="clerk", model="gemini-3.5-flash")
"""
FLOW = """
from google.adk.agents.sequential_agent import SequentialAgent

root_agent = SequentialAgent(name="flow")
"""


@pytest.fixture
def tokens(tmp_path: Path) -> str:
    """The credential of the worker in the configuration of the server."""
    file = tmp_path / "tokens.txt"
    file.write_text(f"shop {TOKEN}\n")
    return str(file)


def test_check_lists_the_tools_of_workers_and_unreachable_workers(
    tmp_path: Path,
    worker: WorkerProcess,
    tokens: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "agent.py").write_text(AGENT)
    monkeypatch.setenv("SLUICEGATE_UNGATED_WORKER_TOOLS", "shop_slow,shop_typo")
    late = "late=http://127.0.0.1:1/mcp"
    options = ["--worker", f"shop={worker.url}", "--worker", late, "--worker-tokens", tokens]
    assert main(["check", str(tmp_path / "agent.py"), *options]) == 0
    said = capsys.readouterr().out
    assert "approvals: none" not in said
    assert f"  shop at {worker.url}: " in said
    assert "    shop_pay: requires approval\n" in said
    assert "    shop_slow: runs without approval (ungated_worker_tools)\n" in said
    assert "  late at http://127.0.0.1:1/mcp: offers nothing now\n" in said
    assert "    The worker late cannot be reached; nothing ran. Try again later.\n" in said
    assert "note: ungated_worker_tools names shop_typo, but no worker offers it now\n" in said
    assert TOKEN not in said


@pytest.mark.parametrize(
    ("agent", "options", "named"),
    [
        (AGENT, ["shop=http://127.0.0.1:1/mcp", "shop=http://127.0.0.1:2/mcp"], "'shop'"),
        (FLOW, ["shop=http://127.0.0.1:1/mcp"], "need a root agent with a model"),
    ],
)
def test_check_reports_workers_that_prevent_startup(
    tmp_path: Path,
    agent: str,
    options: list[str],
    named: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "agent.py").write_text(agent)
    workers = [word for option in options for word in ("--worker", option)]
    assert main(["check", str(tmp_path / "agent.py"), *workers]) == 1
    [refused] = [line for line in capsys.readouterr().out.splitlines() if "refused:" in line]
    assert named in refused
