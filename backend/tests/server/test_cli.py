"""The command line: what it says, how it exits, how it ends."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from sluicegate.server import commands, serving
from sluicegate.server.cli import main
from tests.server.exchange import PATIENCE, chat_body, chunks

AGENT = """
from google.adk.agents.llm_agent import LlmAgent
from google.adk.tools.function_tool import FunctionTool


def pay(amount: int) -> dict[str, int]:
    '''Pay an amount.'''
    return {"paid": amount}


root_agent = LlmAgent(
    name="payer", model="gemini-2.5-flash", tools=[FunctionTool(pay, require_confirmation=True)]
)
"""
RESERVED = AGENT.replace("def pay(", "def adk_pay(").replace("(pay,", "(adk_pay,")
SCRIPT = """
scenarios:
  - match: "wait"
    responses: [{parts: [{text: "One moment."}], hang: true}]
  - match: "."
    responses: [{parts: [{text: "Hello."}]}]
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working directory with an agent; what the imports of targets leave is taken away."""
    (tmp_path / "payer.py").write_text(AGENT)
    (tmp_path / "reserved.py").write_text(RESERVED)
    (tmp_path / "empty.py").write_text("x = 1\n")
    (tmp_path / "script.yaml").write_text(SCRIPT)
    (tmp_path / "broken.yaml").write_text("scenarios: [{responses: []}]")
    for agent in ("one", "two"):
        (tmp_path / "agents" / agent).mkdir(parents=True)
        (tmp_path / "agents" / agent / "agent.py").write_text(AGENT)
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("SLUICEGATE_")]:
        monkeypatch.delenv(name)
    modules, path = set(sys.modules), list(sys.path)
    yield tmp_path
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if name in ("payer", "reserved", "empty", "agent") or name.startswith("sluicegate_target"):
            del sys.modules[name]


BAD_USE = {
    # the command
    "no command": ([], "required"),
    "an unknown command": (["fly"], "fly"),
    "no target": (["serve"], "TARGET"),
    "an unknown option": (["serve", "payer.py", "--fly"], "--fly"),
    "an option without its value": (["serve", "payer.py", "--port"], "--port"),
    # the target
    "a missing file": (["serve", "none.py:root_agent"], "none.py"),
    "a missing module": (["serve", "no.such_module:root_agent"], "no"),
    "a missing attribute": (["serve", "payer.py:agent"], "'agent'"),
    "no agent": (["serve", "empty.py:x"], "int"),
    "a folder of several agents": (["serve", "agents"], "one, two"),
    "a missing target of check": (["check", "none.py"], "none.py"),
    # options
    "a release": (["serve", "payer.py", "--release", "all"], "--release"),
    "a port": (["serve", "payer.py", "--port", "70000"], "--port"),
    "a word as a port": (["serve", "payer.py", "--port", "http"], "--port"),
    "a prefix": (["serve", "payer.py", "--prefix", "api/"], "--prefix"),
    "a public URL": (["serve", "payer.py", "--public-url", "chat.example"], "--public-url"),
    "an authentication": (["serve", "payer.py", "--auth", "magic"], "--auth"),
    "an origin": (["serve", "payer.py", "--origin", "app.example"], "--origin"),
    "a host name": (["serve", "payer.py", "--allowed-host", "http://x"], "--allowed-host"),
    "a proxy": (["serve", "payer.py", "--trusted-proxy", "localhost"], "--trusted-proxy"),
    "a style": (["serve", "payer.py", "--approval-style", "x"], "--approval-style"),
    "a log level": (["check", "payer.py", "--log-level", "loud"], "--log-level"),
    "a log format": (["demo", "--log-format", "xml"], "--log-format"),
    # files and addresses
    "a missing script": (["serve", "payer.py", "--model-script", "none.yaml"], "none.yaml"),
    "a script that cannot be played": (
        ["serve", "payer.py", "--model-script", "broken.yaml"],
        "broken.yaml",
    ),
    "a missing token file": (["serve", "payer.py", "--auth", "bearer:none"], "none"),
    "strangers": (["serve", "payer.py", "--host", "0.0.0.0"], "--auth"),
    "another machine": (
        ["serve", "payer.py", "--host", "192.0.2.7", "--auth", "header:x"],
        "--host",
    ),
    "a host that is none": (["serve", "payer.py", "--host", "no.such.host.invalid"], "--host"),
    "sessions that are no URL": (
        ["serve", "payer.py", "--port", "0", "--sessions", "x"],
        "sessions URL",
    ),
    "sessions where nothing can be written": (
        ["serve", "payer.py", "--port", "0", "--sessions", "sqlite+aiosqlite:////proc/x/y.db"],
        "/proc/x",
    ),
    # the agent
    "a tool that belongs to ADK": (["serve", "reserved.py", "--port", "0"], "adk_pay"),
}


@pytest.mark.parametrize("name", BAD_USE)
def test_what_cannot_be_done_is_one_sentence_and_exit_code_2(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    argv, named = BAD_USE[name]
    assert main(argv) == 2
    written = capsys.readouterr()
    assert written.out == ""
    assert is_one_sentence(written.err)
    assert named in written.err


def is_one_sentence(text: str) -> bool:
    return text.count("\n") == 1 and text.endswith(".\n") and "Traceback" not in text


def test_a_port_in_use_is_one_sentence_and_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert main(["serve", "payer.py", "--port", port]) == 2
    written = capsys.readouterr()
    assert is_one_sentence(written.err)
    assert f"Port {port} of 127.0.0.1 cannot be used: address already in use" in written.err


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("SLUICEGATE_PORT", "http"),
        ("SLUICEGATE_RELEASE", "all"),
        ("SLUICEGATE_PAGE", "maybe"),
        ("SLUICEGATE_APPROVAL_TTLS", "pay"),
        ("SLUICEGATE_ORIGINS", "https://ok.example,nonsense"),
    ],
)
def test_a_variable_that_cannot_be_used_is_named(
    variable: str,
    value: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv(variable, value)
    assert main(["check", "payer.py"]) == 2
    written = capsys.readouterr()
    assert is_one_sentence(written.err)
    assert variable in written.err


def test_the_value_of_a_setting_is_not_repeated(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["serve", "payer.py", "--sessions", "postgres://me:sk-secret@db", "--port", "0"]) == 2
    )
    assert "sk-secret" not in capsys.readouterr().err


def test_what_fails_unexpectedly_says_where_and_not_what(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def failing(text: str) -> None:
        raise RuntimeError("sk-secret")

    monkeypatch.setattr(commands, "load_target", failing)
    assert main(["serve", "payer.py"]) == 1
    written = capsys.readouterr().err
    assert is_one_sentence(written)
    assert "RuntimeError at" in written
    assert "sk-secret" not in written


def test_check_tells_the_application_its_gates_and_the_settings(
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = [
        "--release",
        "preview",
        "--origin",
        "https://a.example",
        "--origin",
        "https://b.example",
    ]
    database = ["--sessions", "postgresql+asyncpg://me:sk-secret@db/chats"]
    assert main(["check", "payer.py", *options, *database]) == 0
    said = capsys.readouterr().out
    assert "app: payer\n" in said
    assert "pay of payer: " in said
    assert "require_confirmation=True" in said
    assert "release = preview\n" in said
    assert "origins = https://a.example, https://b.example\n" in said
    assert "sessions = postgresql+asyncpg://me:***@db/chats\n" in said
    assert "refused" not in said


def test_check_says_that_nothing_is_gated_and_nothing_is_set(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    (folder / "payer.py").write_text(AGENT.replace("require_confirmation=True", ""))
    assert main(["check", "payer.py"]) == 0
    said = capsys.readouterr().out
    assert "gates: none" in said
    assert "settings: the defaults\n" in said


@pytest.mark.parametrize(
    ("argv", "named"),
    [
        (["reserved.py"], "adk_pay"),
        (["payer.py", "--host", "0.0.0.0"], "--auth"),
    ],
)
def test_check_exits_with_1_for_what_serve_would_refuse(
    argv: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", *argv]) == 1
    [refused] = [line for line in capsys.readouterr().out.splitlines() if "refused:" in line]
    assert named in refused


@pytest.mark.parametrize("argv", [["--version"], ["--help"], ["serve", "--help"]])
def test_help_and_version_exit_with_0(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == 0
    assert "sluicegate" in capsys.readouterr().out


Use = Callable[[str], None]


def serve_and(use: Use, monkeypatch: pytest.MonkeyPatch, *options: str) -> int:
    """Run ``serve`` here; once it answers, ``use`` runs in a thread and must end it."""
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

        serving.run(application, settings, listener, also_use)  # type: ignore[arg-type]  # passed on

    thread: list[threading.Thread] = []
    monkeypatch.setattr(commands, "run", run)
    code = main(["serve", "payer.py", "--port", "0", "--model-script", "script.yaml", *options])
    thread[0].join(PATIENCE)
    if failures:
        raise failures[0]
    return code


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server_and_its_streams_soon(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ended: list[float] = []

    def use(url: str) -> None:
        assert chunks(httpx.post(f"{url}api/chat", json=chat_body()).text)[-1]["type"] == "finish"
        body = chat_body("wait", chat="c2")
        with httpx.stream("POST", f"{url}api/chat", json=body, timeout=PATIENCE) as response:
            pieces = response.iter_text()
            assert next(pieces).startswith(": stream-open")
            os.kill(os.getpid(), number)
            ended.append(time.monotonic())
            with pytest.raises(httpx.RemoteProtocolError):
                list(pieces)

    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    assert serve_and(use, monkeypatch) == 0
    assert time.monotonic() - ended[0] < PATIENCE
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before
    written = capsys.readouterr()
    assert written.out.startswith("sluicegate serves payer at http://127.0.0.1:")
    assert "Traceback" not in written.err
    assert "ERROR" not in written.err


def test_a_second_server_of_the_process_streams_like_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def use(url: str) -> None:
        response = httpx.post(f"{url}api/chat", json=chat_body())
        assert response.text.endswith("data: [DONE]\n\n")
        os.kill(os.getpid(), signal.SIGTERM)

    assert serve_and(use, monkeypatch) == 0
    assert serve_and(use, monkeypatch) == 0


def test_no_log_has_what_was_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def use(url: str) -> None:
        httpx.get(f"{url}api/chats?q=sk-secret-query")
        httpx.get(f"{url}sk-secret-path?token=sk-secret-token")
        httpx.post(f"{url}api/chat", json=chat_body("sk-secret-text"))
        httpx.get(f"{url}api/chats", headers={"authorization": "Bearer sk-secret-header"})
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
            suggestions = http.get("/suggestions.json").json()
            answer = http.post("/api/chat", json=chat_body(suggestions[0]))
        process.terminate()
        errors = process.stderr.read()
        assert process.wait(timeout=30) == 0
    assert line.startswith("sluicegate serves sluicegate_demo at http://127.0.0.1:")
    assert "<!doctype html>" in page.text
    assert chunks(answer.text)[-1]["type"] == "finish"
    assert [line for line in errors.splitlines() if " INFO " not in line] == []
