"""The command line: output, exit codes and shutdown."""

from __future__ import annotations

import gc
import io
import logging
import platform
import re
import socket
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import HTTPConnection

from sluicegate.server import serve_commands
from sluicegate.server.authentication import BearerFile
from sluicegate.server.cli import main
from sluicegate.server.logging_config import logging_to_stderr
from sluicegate.server.settings import Settings
from sluicegate.server.terminal import show_progress

pytestmark = pytest.mark.usefixtures("folder")

BAD_USE = {
    # the command
    "an unknown command": (["fly"], "fly"),
    "a command that resembles one": (["serv"], "did you mean serve?"),
    "no target": (["serve"], "TARGET"),
    "an unknown option": (["serve", "payer.py", "--fly"], "--fly"),
    "an option that resembles one": (
        ["demo", "--prot", "1"],
        "did you mean --port? See sluicegate",
    ),
    "an option of another command": (["replay", "x", "--prefx=/a"], "did you mean --prefix?"),
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
    "a missing recording": (["replay", "none.jsonl"], "none.jsonl"),
    "a recording that is none": (["replay", "broken.yaml"], "broken.yaml, line 1"),
    "a replay with an agent's option": (["replay", "none.jsonl", "--release", "x"], "--release"),
    "a folder that is a file": (
        ["serve", "payer.py", "--record", "payer.py"],
        "cannot be written to payer.py",
    ),
    "an empty field": (["serve", "payer.py", "--record", "x", "--redact", ""], "redact"),
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
def test_a_failure_is_one_sentence_and_exit_code_2(
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


@pytest.mark.parametrize(
    ("command", "target"),
    [
        ("serve", "none.py:agent"),
        ("check", "no_such_module:agent"),
        ("dev", "none.py"),
        ("replay", "none.jsonl"),
        ("worker", "none.py"),
    ],
)
def test_a_target_that_does_not_exist_is_reported_before_adk_is_imported(
    command: str, target: str
) -> None:
    code = (
        "import sys; from sluicegate.server.cli import main; "
        f"print(main([{command!r}, {target!r}]), 'google.adk' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "2 False\n"
    assert is_one_sentence(done.stderr)


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
def test_an_invalid_environment_variable_is_named(
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


def test_the_value_of_a_setting_is_not_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["serve", "payer.py", "--sessions", "postgres://me:sk-secret@db", "--port", "0"]) == 2
    )
    assert "sk-secret" not in capsys.readouterr().err


def test_an_unexpected_failure_prints_its_location_and_not_its_message(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def failing(text: str) -> None:
        raise RuntimeError("sk-secret")

    monkeypatch.setattr(serve_commands, "load_target", failing)
    assert main(["serve", "payer.py"]) == 1
    written = capsys.readouterr().err
    assert is_one_sentence(written)
    assert "RuntimeError at" in written
    assert "sk-secret" not in written


def test_check_prints_the_application_its_gated_tools_and_the_settings(
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


MODELS: list[tuple[str, list[str], str]] = [
    ("gemini-3.5-flash", [], "gemini-3.5-flash, live gemini-3.8-live"),
    ("gemini-3.8-live", [], "gemini-3.5-flash, live gemini-3.8-live"),
    ("gemini-2.5-flash-native-audio", ["--live-model", "gemini-3.8-live"], "live gemini-3.8-live"),
    ("gemini-3.5-flash", ["--model", "gemini-2.5-pro"], "gemini-2.5-pro, live gemini-3.8-live"),
    ("", [], "gemini-3.5-flash, live gemini-live-2.5-flash-native-audio"),
]


@pytest.mark.parametrize(("model", "options", "line"), MODELS)
def test_check_prints_the_model_for_turns_and_the_one_for_live_chats(
    model: str, options: list[str], line: str, capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    (folder / "own.py").write_text(
        "from google.adk.agents import LlmAgent\n"
        f"root_agent = LlmAgent(name='own', model={model!r})\n"
    )
    assert main(["check", "own.py", *options]) == 0
    [said] = [each for each in capsys.readouterr().out.splitlines() if each.startswith("  own: ")]
    assert f"{line}; " in said


@pytest.mark.parametrize("backend", [{"vertexai": True}, {"enterprise": True}], ids=str)
def test_a_gemini_that_is_called_through_vertex_ai_has_its_live_model(
    backend: dict[str, bool], capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    (folder / "own.py").write_text(
        "from google.adk.agents import LlmAgent\n"
        "from google.adk.models.google_llm import Gemini\n"
        f"model = Gemini(model='gemini-3.5-flash', client_kwargs={backend})\n"
        "root_agent = LlmAgent(name='own', model=model)\n"
    )
    assert main(["check", "own.py"]) == 0
    said = capsys.readouterr().out
    assert "  own: gemini-3.5-flash, live gemini-live-2.5-flash-native-audio\n" in said


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("x" * 20, "; the key is in GOOGLE_API_KEY\n"),
        (
            "",
            "; no key in GOOGLE_API_KEY or GEMINI_API_KEY, see docs/reference/errors.md#model_key",
        ),
    ],
    ids=["set", "missing"],
)
def test_check_prints_whether_the_key_is_set_the_gates_and_the_release(
    key: str,
    said: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)
    monkeypatch.setenv("GOOGLE_API_KEY", key)
    assert main(["check", "payer.py"]) == 0
    printed = capsys.readouterr().out
    assert said in printed
    assert "xxx" not in printed
    assert "gates:\n  payer: pay\n" in printed
    assert "release: deferred\n" in printed


def test_check_prints_the_servers_of_mcp_toolsets(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    (folder / "toolset.py").write_text(
        "from google.adk.agents import LlmAgent\n"
        "from google.adk.tools.mcp_tool import McpToolset, StreamableHTTPConnectionParams\n"
        "params = StreamableHTTPConnectionParams(url='http://u:pw@127.0.0.1:9/mcp?key=1')\n"
        "root_agent = LlmAgent(\n"
        "    name='own', model='gemini-3.5-flash', tools=[McpToolset(connection_params=params)]\n"
        ")\n"
    )
    assert main(["check", "toolset.py:root_agent"]) == 0
    said = "MCP toolsets:\n  http://127.0.0.1:9/mcp of own: its tools could not be listed\n"
    assert said in capsys.readouterr().out


def test_check_prints_the_reason_of_pydantic_without_the_value(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    (folder / "bad.py").write_text(
        "from google.adk.agents import LlmAgent\n"
        "root_agent = LlmAgent(name='own', model='gemini-3.5-flash', instructions='sk-secret-1')\n"
    )
    assert main(["check", "bad.py"]) == 2
    written = capsys.readouterr()
    assert is_one_sentence(written.err)
    assert "instructions: Extra inputs are not permitted" in written.err
    assert "sk-secret" not in written.err


def test_check_prints_that_nothing_is_gated_and_nothing_is_set(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    payer = folder / "payer.py"
    payer.write_text(payer.read_text().replace("require_confirmation=True", ""))
    assert main(["check", "payer.py"]) == 0
    said = capsys.readouterr().out
    assert "  pay of payer: runs without approval\n" in said
    assert "approvals: none; everything streams in its natural order\n" in said
    assert "settings: the defaults\n" in said


def test_check_reports_a_gated_name_that_no_tool_has(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLUICEGATE_DYNAMIC_GATES", "pay,payy")
    assert main(["check", "payer.py"]) == 0
    [note] = [line for line in capsys.readouterr().out.splitlines() if "note:" in line]
    assert note.startswith("note: dynamic_gates names payy,")


@pytest.mark.parametrize(
    ("argv", "named"),
    [
        (["reserved.py"], "adk_pay"),
        (["payer.py", "--host", "0.0.0.0"], "--auth"),
        (["payer.py", "--auth", "bearer:none"], "token file none"),
        (["payer.py", "--page-tool", "pay"], "page_tools names 'pay'"),
        (["payer.py", "--model-script", "broken.yaml"], "broken.yaml"),
        (["payer.py", "--live-model", "nonsense"], "live_model names 'nonsense'"),
    ],
)
def test_check_exits_with_1_if_serve_would_refuse_to_start(
    argv: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", *argv]) == 1
    [refused] = [line for line in capsys.readouterr().out.splitlines() if "refused:" in line]
    assert named in refused


@pytest.mark.parametrize("argv", [["--version"], ["--help"], ["serve", "--help"]])
def test_help_and_version_exit_with_0(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == 0
    assert "sluicegate" in capsys.readouterr().out


def test_a_bare_call_prints_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    bare = capsys.readouterr().out
    assert main(["--help"]) == 0
    assert capsys.readouterr().out == bare
    assert "130 after Ctrl+C" in bare


def test_the_version_is_that_of_all_parts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"sluicegate {version('sluicegate')}"
    assert f"Python {platform.python_version()}" in lines
    assert f"google-adk {version('google-adk')}" in lines


@pytest.mark.parametrize(("command", "port"), [("serve", 8000), ("demo", 8000), ("worker", 8001)])
def test_the_help_names_the_port_that_a_command_binds(
    command: str, port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, "--help"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    [shown] = re.findall(r"--port NUMBER The port to bind; 0 binds a free one \((\d+)\)", said)
    assert int(shown) == port


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_script_has_the_commands_and_options(
    shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    for word in ("serve", "check", "audit", "completion", "model-script", "log-level"):
        assert word in script


def test_bash_completes_with_the_script(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "bash"]) == 0
    (folder / "completion.sh").write_text(capsys.readouterr().out)
    typed = "COMP_WORDS=(sluicegate serve --model-s); COMP_CWORD=2; COMP_LINE='x'; COMP_POINT=1"
    function = "$(complete -p sluicegate | sed 's/.*-F \\([^ ]*\\).*/\\1/')"
    script = (
        f'. ./completion.sh; {typed}; {function} sluicegate; printf "%s\\n" "${{COMPREPLY[@]}}"'
    )
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["--model-script"]


async def test_a_token_is_accepted_by_the_file_with_its_line(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["token", "ada"]) == 0
    written = capsys.readouterr()
    token, line = written.err.rstrip("\n"), written.out
    assert main(["token", "bob", "--file", "bob.token"]) == 0
    [other] = capsys.readouterr().out.splitlines()
    kept = (folder / "bob.token").read_text().strip()
    assert (folder / "bob.token").stat().st_mode & 0o777 == 0o600
    (folder / "tokens").write_text(f"{line}{other}\n")
    users = BearerFile(folder / "tokens")
    for sent, user in ((token.removeprefix("token: "), "ada"), (kept, "bob"), ("other", None)):
        headers = [(b"authorization", f"Bearer {sent}".encode())]
        assert await users(HTTPConnection({"type": "http", "headers": headers})) == user


@pytest.mark.parametrize(
    "argv", [["token", "a b"], ["token", "ada", "--file", "payer.py"]], ids=["name", "file"]
)
def test_a_token_that_cannot_be_made_is_one_sentence_and_exit_code_2(
    argv: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (folder / "payer.py").read_text()
    assert main(argv) == 2
    assert is_one_sentence(capsys.readouterr().err)
    assert (folder / "payer.py").read_text() == before


class Terminal(io.StringIO):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_colours_and_progress_and_a_file_gets_neither(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    with logging_to_stderr(Settings()):
        logging.getLogger("sluicegate").warning("plain")
        show_progress("loading")
    assert capsys.readouterr().err.endswith(" WARNING sluicegate: plain\n")
    for no_color, colour in (("", "\x1b[33m"), ("1", "")):
        monkeypatch.setenv("NO_COLOR", no_color)
        terminal = Terminal()
        monkeypatch.setattr(sys, "stderr", terminal)
        with logging_to_stderr(Settings()):
            show_progress("loading")
            logging.getLogger("sluicegate").warning("coloured")
        said = terminal.getvalue()
        assert said.startswith("loading\n")
        assert f" {colour}WARNING" in said
        assert ("\x1b" in said) == bool(colour)


def test_garbage_collection_resumes_after_the_first_requests(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[bool] = []

    def run(application: object, settings: object, listener: Any, ready: Any) -> None:
        listener.close()
        seen.append(gc.isenabled())
        ready("http://127.0.0.1:1/")
        seen.append(gc.isenabled())

    monkeypatch.setattr("sluicegate.server.serve_commands.run", run)
    of_tests = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    try:
        assert main(["serve", "payer.py", "--port", "0"]) == 0
        # Collections of all objects, which stop every stream, are rarer than by default.
        assert gc.get_threshold()[0] > 700
    finally:
        gc.unfreeze()
        gc.set_threshold(*of_tests)
    assert seen == [False, True]
    assert gc.isenabled()
