"""Fixtures: an in-memory engine, and a working directory with an agent for the command line."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.stage import Counted
from tests.server.fake_engine import FakeEngine

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


@pytest.fixture
def engine() -> FakeEngine:
    """An in-memory engine that records its calls."""
    return FakeEngine()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working directory with agents; modules imported from it are removed afterwards."""
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


@pytest.fixture
def counted() -> Counted:
    """A tool that counts its runs."""
    return Counted()
