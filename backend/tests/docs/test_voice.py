"""The how-to guide to voice: its commands print what it says, and its code is accepted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sluicegate.server.cli import main
from sluicegate.server.command_parser import command_parser
from tests.docs.markdown import DOCS, ROOT, fences, one_fence

if TYPE_CHECKING:
    from pathlib import Path

GUIDE = (DOCS / "how-to" / "voice.md").read_text("utf-8")
AGENT, PHRASE, OWN_CONFIG = (fence.code for fence in fences(GUIDE) if fence.language == "python")
COMMANDS = [
    line for fence in fences(GUIDE) if fence.language == "sh" for line in fence.code.splitlines()
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the reader."""
    (tmp_path / "cashier.py").write_text(AGENT, "utf-8")
    monkeypatch.chdir(tmp_path)
    for key in ("GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(key, raising=False)
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_the_check_prints_what_the_guide_says(capsys: pytest.CaptureFixture[str]) -> None:
    [command] = [line for line in COMMANDS if line.startswith("sluicegate check")]
    assert main(command.split()[1:]) == 0
    assert capsys.readouterr().out == one_fence(GUIDE, "text")


def test_the_server_takes_the_options_of_the_guide() -> None:
    [command] = [line for line in COMMANDS if line.startswith("sluicegate serve")]
    assert command_parser().parse_args(command.split()[1:]).live_model == "gemini-3.8-live"


@pytest.mark.parametrize(("code", "name"), [(PHRASE, "tools"), (OWN_CONFIG, "app")])
def test_the_code_of_the_guide_is_accepted(code: str, name: str) -> None:
    names: dict[str, object] = {}
    exec(code, names)
    assert name in names


def test_the_task_of_the_guide_exists() -> None:
    [command] = [line for line in COMMANDS if line.startswith("make ")]
    task = command.removeprefix("make ")
    assert f"\n{task}: " in (ROOT / "Makefile").read_text("utf-8")
