"""The commands that the pages print, run in a sandbox: a folder, a home and programs of its own."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import pytest

from tests.docs import curl
from tests.docs.markdown import DOCS, PAGES, ROOT, fences
from tests.docs.sandbox import agent, background
from tests.fork_server import ForkServer
from tests.real_stores.ports import free_port
from tests.real_stores.postgres import Postgres
from tests.real_stores.valkey import Valkey

ELSEWHERE: Final = {
    "CONTRIBUTING.md": "its tasks are those of the Makefile; scripts/ has the tests of a release",
    "README.md": "`make smoke` runs it",
    "docs/how-to/back-up.md": "test_operate.py runs it",
    "docs/how-to/next-js.md": "`make smoke` runs it",
    "docs/how-to/operate.md": "test_operate.py runs it",
    "docs/performance.md": "it measures for an hour",
    "docs/tutorial.md": "test_tutorial.py runs it",
}
"""Pages whose commands run in another test."""

OTHERS: Final = ("docker", "gcloud", "kubectl", "make", "npm", "npx", "pip")
"""Programs that reach other systems; a file that they name must be there."""

LIMIT: Final = 300.0
"""Seconds for all commands of a page, which only those that hang need."""

SERVE: Final = "sluicegate serve agent.py:root_agent --auth bearer:tokens\n"
ASK: Final = """
TOKEN=$(cat ann.token)
curl -s https://chat.example/api/chat -H "authorization: Bearer $TOKEN" \\
  -H "content-type: application/json" -d '{"id": "c1", "message": {"id": "m1", "role": "user",
  "parts": [{"type": "text", "text": "Pay RECIPIENT"}]}}' > asked.txt
APPROVAL=$(sed -n 's/.*"approvalId":"\\([^"]*\\)".*/\\1/p' asked.txt)
"""
FILES: Final = """
sluicegate token ann --file ann.token > tokens
sluicegate token shop --file token.txt > workers.txt
echo "shop $(cat token.txt)" > tokens.txt
ssh-keygen -q -t ed25519 -N '' -f ~/.ssh/id_ed25519
"""
BEFORE: Final = {
    "approvals.md": SERVE + ASK.replace("RECIPIENT", "Ada"),
    "approvers.md": SERVE
    + ASK.replace("RECIPIENT", "Ada")
    + """
DIGEST=$(curl -s https://chat.example/api/approvals/$APPROVAL \\
  -H "authorization: Bearer $TOKEN" | sed 's/.*"digest":"\\([^"]*\\)".*/\\1/')
""",
    "scale-out.md": "rm ann.token\n",
    # The server stops while the call runs.
    "inbox.md": "export SLUICEGATE_SHUTDOWN_TIMEOUT=1\n"
    + SERVE
    + ASK.replace("RECIPIENT", "nobody")
    + """
curl -s https://chat.example/api/approvals/$APPROVAL -H "authorization: Bearer $TOKEN" \\
  -H "content-type: application/json" -d '{"approved": true}'
until curl -s https://chat.example/api/approvals/$APPROVAL \\
  -H "authorization: Bearer $TOKEN" | grep -q '"state":"executing"'; do :; done
"""
    + SERVE
    + """
until curl -s "https://chat.example/api/approvals?state=unknown" \\
  -H "authorization: Bearer $TOKEN" | grep -q $APPROVAL; do :; done
""",
}
"""What a reader of a page has done before its first command."""

EXAMPLES: Final = {
    "adk-4f…": "$APPROVAL",
    "9c56cc…": "'$DIGEST'",
    "grep 80c5cae2": "grep cashier",
    "--processes 4": "--processes 2",
    "sluicegate webhooks list": ASK.replace("RECIPIENT", "Ada") + "sluicegate webhooks list",
    "webhooks retry 17": "webhooks retry 1",
    "worker shop.py --token": "worker shop.py --port 0 --token",
}
"""What a reader puts in the place of an example, or does meanwhile."""

OTHER_PROGRAM: Final = """
before=
for argument in "$@"; do
  file=.
  case "$before" in -f) file=$argument ;; esac
  case "$argument" in --from-*=*) file=${argument#*=} ;; esac
  test -e "$file" || { echo "There is no $file." >&2; exit 1; }
  before=$argument
done
"""


def blocks(page: Path) -> list[str]:
    """The shell blocks of a page."""
    return [fence.code for fence in fences(page.read_text("utf-8")) if fence.language == "sh"]


def program(folder: Path, name: str, lines: str) -> None:
    """Put a program on the path of the sandbox."""
    file = folder / name
    file.write_text(f"#!/bin/sh\n{lines}\n", "utf-8")
    file.chmod(0o755)


def run(script: str, folder: Path, environment: dict[str, str]) -> None:
    done = subprocess.run(
        ["sh", "-eux"],
        input=script,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def sandbox(tmp_path: Path, fork_server: ForkServer) -> Iterator[Path]:
    """A reader: ``work`` has the files that the pages name. What it starts ends afterwards."""
    for name in ("home/.ssh", "home/sluicegate/dist", "programs", "processes", "work/recordings"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "home/sluicegate/dist/sluicegate-0.1.0-py3-none-any.whl").touch()
    programs, work = tmp_path / "programs", tmp_path / "work"
    ours = shlex.join([sys.executable, background.__file__, *fork_server.command])
    program(programs, "sluicegate", f'exec {ours} "$@"')
    program(programs, "curl", f'exec {sys.executable} {curl.__file__} "$@"')
    stdio = ROOT / "backend/tests/agents/stdio_worker.py"
    program(programs, "mcp-server-filesystem", f"exec {sys.executable} {stdio}")
    for name in OTHERS:
        program(programs, name, OTHER_PROGRAM)
    if shutil.which("ssh-keygen") is None:
        program(programs, "ssh-keygen", "touch ~/.ssh/id_ed25519.pub checkpoint.txt.sig")
    for name in ("agent.py", "cashier.py"):
        shutil.copy(agent.__file__, work / name)
    recording = ROOT / "frontend/app/playground/recordings/approved.jsonl"
    shutil.copy(recording, work / "recordings/c1.3f2a91bc.jsonl")
    shutil.copytree(ROOT / "deploy", work / "deploy")
    (work / "stores.env").touch()
    (work / "shop.py").write_text(one_snippet("how-to/tool-workers.md", "# shop.py"), "utf-8")
    (work / "script.yaml").write_text(one_snippet("reference/protocol.md", "scenarios:"), "utf-8")
    yield tmp_path
    for running in (tmp_path / "processes").glob("*.pid"):
        background.end(running)


@pytest.fixture
def receiver() -> Iterator[str]:
    """The URL of an endpoint that takes the event of a test and nothing else."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            event = json.loads(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200 if event["type"] == "webhook.test" else 503)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def one_snippet(page: str, beginning: str) -> str:
    """The only block of a page that begins like this."""
    text = (DOCS / page).read_text("utf-8")
    (code,) = (fence.code for fence in fences(text) if fence.code.startswith(beginning))
    return code


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if blocks(page) and str(page.relative_to(ROOT)) not in ELSEWHERE],
    ids=lambda page: page.name,
)
def test_the_commands_of_a_page_run_in_their_order(
    page: Path, sandbox: Path, receiver: str, request: pytest.FixtureRequest
) -> None:
    script = FILES + BEFORE.get(page.name, "") + "\n".join(blocks(page))
    server = str(free_port())
    examples = {**EXAMPLES, ":8000": f":{server}", "8001": str(free_port())}
    examples["https://chat.example"] = f"http://127.0.0.1:{server}"
    examples["https://hooks.example/sluicegate"] = receiver
    examples["/shared/files"] = str(sandbox / "files")
    if "postgresql+asyncpg://" in script:
        postgres: Postgres = request.getfixturevalue("postgres")
        valkey: Valkey = request.getfixturevalue("valkey")
        examples["postgresql+asyncpg://user:password@host/database"] = postgres.url()
        examples["valkey://:password@host:6379/0"] = valkey.url()
    for example, value in examples.items():
        script = script.replace(example, value)
    environment = {
        "PATH": f"{sandbox / 'programs'}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(sandbox / "home"),
        "SANDBOX_PROCESSES": str(sandbox / "processes"),
        "SLUICEGATE_PORT": server,
        "SLUICEGATE_WEBHOOK_HOSTS": "127.0.0.1",
    }
    run(script, sandbox / "work", environment)


def test_the_pages_that_are_left_out_have_commands() -> None:
    assert [page for page in ELSEWHERE if not blocks(ROOT / page)] == []


def test_every_block_names_its_language() -> None:
    assert [
        page.name for page in PAGES for f in fences(page.read_text("utf-8")) if not f.language
    ] == []
