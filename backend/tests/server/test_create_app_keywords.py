"""A type checker finds a setting of ``create_app`` with a wrong name or a wrong type."""

from __future__ import annotations

import re
import subprocess
import sys
import typing
from pathlib import Path

from scripts.create_app_keywords import FILE, source
from sluicegate.server.app import create_app
from sluicegate.server.create_app_keywords import SettingsKeywords
from sluicegate.server.settings import Settings
from tests.docs.markdown import ROOT

CALLS = """
from google.adk.agents import LlmAgent
from sluicegate import create_app

agent = LlmAgent(name="a", model="m")
create_app(agent, release="progressive", origins=["https://app.example"], port=80, title="x")
create_app(agent, approval_ttls={"pay": 60}, suggestions=("Hello",), live_voice=None)
create_app(agent, relase="progressive")  # wrong
create_app(agent, release="sometimes")  # wrong
create_app(agent, origins="https://app.example")  # wrong
create_app(agent, port="eighty")  # wrong
create_app(agent, approval_ttls={"pay": "a minute"})  # wrong
"""
CONFIG = """
[mypy]
mypy_path = {source}
follow_imports = silent
ignore_missing_imports = true

[mypy-google.*,starlette.*,sqlalchemy.*,uvicorn.*,mcp.*,litellm.*,sse_starlette.*,numpy.*]
follow_imports = skip
"""


def test_the_keywords_are_those_of_the_settings() -> None:
    assert source() == FILE.read_text("utf-8"), "run scripts/create_app_keywords.py"
    assert set(SettingsKeywords.__annotations__) == set(Settings.model_fields)
    assert typing.get_type_hints(SettingsKeywords)["port"] is int


def test_the_signature_can_be_read_while_the_program_runs() -> None:
    assert "settings" in create_app.__annotations__


def test_mypy_finds_each_wrong_name_and_type_and_accepts_the_right_ones(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(CALLS, "utf-8")
    (tmp_path / "mypy.ini").write_text(CONFIG.format(source=ROOT / "backend/src"), "utf-8")
    command = [sys.executable, "-m", "mypy", "--config-file", "mypy.ini", "server.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "server.py" in done.stdout, done.stdout + done.stderr
    found = re.findall(r"^server\.py:(\d+): error: (.*)$", done.stdout, re.MULTILINE)
    errors = {int(line): text for line, text in found}
    lines = enumerate(CALLS.splitlines(), 1)
    wrong = [number for number, text in lines if text.endswith("# wrong")]
    assert sorted(errors) == wrong
    assert 'Unexpected keyword argument "relase"' in errors[wrong[0]]
