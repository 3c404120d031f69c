"""The tutorial, command by command, against a dedicated server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.server_process import ServerProcess
from sluicegate.server.cli import main
from tests.docs import curl
from tests.docs.markdown import DOCS, fences

TUTORIAL = (DOCS / "tutorial.md").read_text("utf-8")
COMMANDS = [fence.code for fence in fences(TUTORIAL) if fence.language == "sh"]
FOLDER = Path(sys.executable).parent


def _own(subcommand: str) -> list[str]:
    """The arguments of the only command of the tutorial with this prefix."""
    (command,) = (c for c in COMMANDS if c.startswith(f"sluicegate {subcommand}"))
    return command.split()


@pytest.fixture(scope="module")
def followed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the reader after all steps of the tutorial."""
    folder = tmp_path_factory.mktemp("tutorial") / "cashier"
    files = {"python": "cashier.py", "yaml": "cashier.yaml"}
    folder.mkdir()
    for fence in fences(TUTORIAL):
        if fence.language in files:
            (folder / files[fence.language]).write_text(fence.code, "utf-8")
    program, *options = _own("serve")
    with ServerProcess([str(FOLDER / program), *options, "--port", "0"], folder, {}) as server:
        host, port = server.address()
        script = "\n".join(c for c in COMMANDS if not c.startswith(("make", "sluicegate")))
        _run(script.replace("127.0.0.1:8000", f"{host}:{port}"), folder)
    return folder


def _run(script: str, folder: Path) -> None:
    programs = folder.parent / "programs"
    programs.mkdir()
    ours = programs / "curl"
    ours.write_text(f'#!/bin/sh\nexec {sys.executable} {curl.__file__} "$@"\n', "utf-8")
    ours.chmod(0o755)
    path = os.pathsep.join([str(programs), os.environ["PATH"]])
    done = subprocess.run(
        ["sh", "-eu"],
        input=script,
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def _chunks(stream: Path) -> list[dict[str, Any]]:
    lines = [line[6:] for line in stream.read_text("utf-8").splitlines() if "data: {" in line]
    return [json.loads(line) for line in lines]


def _types(stream: Path) -> list[str]:
    return [chunk["type"] for chunk in _chunks(stream)]


def test_the_check_names_the_gated_tool(
    followed: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(followed)

    assert main(_own("check")[1:]) == 0
    assert "pay" in capsys.readouterr().out


def test_the_first_request_returns_the_documented_stream(followed: Path) -> None:
    shown = next(fence.code for fence in fences(TUTORIAL) if fence.language == "text")
    expected = [line.split('"')[3] for line in shown.splitlines() if "data: {" in line]

    # The second chat has overwritten the first request with an identical one.
    assert _types(followed / "asked.txt") == expected


def test_the_approval_releases_the_buffered_text_and_runs_the_call(followed: Path) -> None:
    paid = _chunks(followed / "paid.txt")
    said = "".join(chunk.get("delta", "") for chunk in paid)

    assert (
        said
        == "I prepare the payment. Ada has the money if you approved, and nothing if you denied."
    )
    outputs = [chunk["output"] for chunk in paid if chunk["type"] == "tool-output-available"]
    assert outputs == [{"recipient": "Ada", "paid": 5}]


def test_the_payment_runs_once(followed: Path) -> None:
    assert (followed / "payments.txt").read_text("utf-8") == "5 euros for Ada\n"
    assert _types(followed / "again.txt")[0] == "start"


def test_a_denial_ends_the_part_as_denied(followed: Path) -> None:
    assert "tool-output-denied" in _types(followed / "denied.txt")


def test_the_history_holds_both_messages(followed: Path) -> None:
    chat = json.loads((followed / "history.json").read_text("utf-8"))

    assert [message["role"] for message in chat["messages"]] == ["user", "assistant"]
    (part,) = (p for p in chat["messages"][1]["parts"] if p["type"] == "tool-pay")
    assert part["state"] == "output-available"
    assert part["approval"]["approved"] is True
