"""A server started by the command line: responses, log lines and shutdown."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from sluicegate.demo.suggestions import SUGGESTIONS
from sluicegate.server import serve_commands, uvicorn_server
from sluicegate.server.cli import main
from sluicegate.server.page import built_page
from tests.server.exchange import PATIENCE, chat_body, chunks

pytestmark = pytest.mark.usefixtures("folder")

Use = Callable[[str], None]


def serve_and(use: Use, monkeypatch: pytest.MonkeyPatch, *options: str) -> int:
    """Run ``serve``; once it answers, ``use`` runs in a thread and must stop it."""
    failures: list[BaseException] = []

    def in_thread(url: str) -> None:
        try:
            use(url)
        except BaseException as error:  # noqa: BLE001 - raised below, in the test's own thread
            failures.append(error)
            os.kill(os.getpid(), signal.SIGTERM)

    def run(application: object, settings: object, listener: object, ready: Use) -> None:
        def also_use(url: str) -> None:
            ready(url)
            thread.append(threading.Thread(target=in_thread, args=[url]))
            thread[0].start()

        uvicorn_server.run(application, settings, listener, also_use)  # type: ignore[arg-type]  # passed on

    thread: list[threading.Thread] = []
    monkeypatch.setattr(serve_commands, "run", run)
    code = main(["serve", "payer.py", "--port", "0", "--model-script", "script.yaml", *options])
    thread[0].join(PATIENCE)
    if failures:
        raise failures[0]
    return code


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_the_server_and_its_streams_promptly(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ended: list[float] = []

    def use(url: str) -> None:
        sent = httpx.post(f"{url}api/chat", json=chat_body(), timeout=PATIENCE)
        assert chunks(sent.text)[-1]["type"] == "finish"
        body = chat_body("wait", chat="c2")
        with httpx.stream("POST", f"{url}api/chat", json=body, timeout=PATIENCE) as response:
            pieces = response.iter_text()
            assert next(pieces).startswith(": stream-open")
            os.kill(os.getpid(), number)
            ended.append(time.monotonic())
            last = chunks("".join(pieces))[-1]
            assert (last["type"], "restarting" in last["errorText"]) == ("error", True)

    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    assert serve_and(use, monkeypatch) == 0
    assert time.monotonic() - ended[0] < PATIENCE
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before
    written = capsys.readouterr()
    assert written.out.startswith("sluicegate serves payer at http://127.0.0.1:")
    assert "Traceback" not in written.err
    assert "ERROR" not in written.err


def test_a_second_server_in_the_process_streams_like_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def use(url: str) -> None:
        response = httpx.post(f"{url}api/chat", json=chat_body(), timeout=PATIENCE)
        assert response.text.endswith("data: [DONE]\n\n")
        os.kill(os.getpid(), signal.SIGTERM)

    assert serve_and(use, monkeypatch) == 0
    assert serve_and(use, monkeypatch) == 0


def test_no_log_line_contains_request_content(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def use(url: str) -> None:
        with httpx.Client(base_url=url, timeout=PATIENCE) as http:
            http.get("/api/chats?q=sk-secret-query")
            http.get("/sk-secret-path?token=sk-secret-token")
            http.post("/api/chat", json=chat_body("sk-secret-text"))
            http.get("/api/chats", headers={"authorization": "Bearer sk-secret-header"})
        os.kill(os.getpid(), signal.SIGTERM)

    assert serve_and(use, monkeypatch, "--log-level", "debug") == 0
    assert "sk-secret" not in capsys.readouterr().err


def test_the_command_of_the_package_serves_the_demo(folder: Path) -> None:
    command = [str(Path(sys.executable).with_name("sluicegate")), "demo", "--port", "0"]
    environment = {name: value for name, value in os.environ.items() if name != "GOOGLE_API_KEY"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        line = process.stdout.readline()
        url = line.partition(" at ")[2].partition(" ")[0]
        with httpx.Client(base_url=url, timeout=30) as http:
            page = http.get("/")
            answer = http.post("/api/chat", json=chat_body(SUGGESTIONS[0]))
        process.terminate()
        errors = process.stderr.read()
        assert process.wait(timeout=30) == 0
    assert line.startswith("sluicegate serves sluicegate_demo at http://127.0.0.1:")
    assert page.status_code == (503 if built_page() is None else 200)
    assert chunks(answer.text)[-1]["type"] == "finish"
    unexpected = [line for line in errors.splitlines() if " INFO " not in line]
    # Without a built page the request for it is refused, which is logged.
    assert [line for line in unexpected if built_page() or " path=/ " not in line] == []
