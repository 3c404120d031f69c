"""The guide to testing an agent: its example runs as a user runs it, in a pytest of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import sluicegate.testing
from tests.docs.markdown import DOCS

SNIPPET = DOCS / "how-to" / "snippets" / "test_cashier.py"
GUIDE = (DOCS / "how-to" / "test-your-agent.md").read_text("utf-8")
GATED = "require_confirmation=True"


def run(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    """Run a test file in a project of its own."""
    (folder / "pytest.ini").write_text("[pytest]\nasyncio_mode = auto\n")
    (folder / "test_cashier.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:xdist"]
    env = os.environ | {"PYTEST_ADDOPTS": ""}
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)


def test_the_guide_shows_the_example_that_is_run() -> None:
    assert f"```python\n{SNIPPET.read_text('utf-8')}```" in GUIDE


def test_the_example_passes(tmp_path: Path) -> None:
    done = run(tmp_path, SNIPPET.read_text("utf-8"))
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_the_example_fails_without_the_gate(tmp_path: Path) -> None:
    text = SNIPPET.read_text("utf-8")
    assert GATED in text
    done = run(tmp_path, text.replace(GATED, "require_confirmation=False"))
    assert "1 failed" in done.stdout
    assert "[request] = chat.pending()" in done.stdout


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`([a-z_0-9]+)\(", GUIDE))))
def test_every_function_that_the_guide_names_exists(name: str) -> None:
    owners = (sluicegate.testing, sluicegate.testing.ChatClient, sluicegate.testing.ScriptedModel)
    assert any(hasattr(owner, name) for owner in owners)


@pytest.mark.parametrize(
    "module", ["", ".providers", ".send_automatically_when", ".response_checks"]
)
def test_the_kit_imports_no_package_that_only_tests_have(module: str) -> None:
    program = (
        f"import sys, sluicegate.testing{module}; "
        "print(sorted({'pytest', 'hypothesis', 'litellm', 'xdist'} "
        "& {name.partition('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
