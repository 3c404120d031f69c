"""A new project: its files, its own tests, its page, and the server that reloads on changes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Queue

import pytest

from sluicegate.server.cli import main
from tests.docs.markdown import ROOT

PATIENCE = 120.0
"""Seconds; only a defect reaches it."""

MINIMAL = {
    ".env",
    ".gitignore",
    "README.md",
    "agent.py",
    "pytest.ini",
    "script.yaml",
    "tests/test_agent.py",
}
MORE = {
    ".dockerignore",
    "Dockerfile",
    "page/index.html",
    "page/package.json",
    "page/playwright.config.ts",
    "page/src/chat.tsx",
    "page/src/main.tsx",
    "page/tests/approval.spec.ts",
    "page/tsconfig.json",
    "page/vite.config.ts",
}
ENVIRONMENT = {
    name: value
    for name, value in os.environ.items()
    if not name.startswith(("SLUICEGATE_", "PYTEST_", "GOOGLE_", "GEMINI_"))
} | {"PYTHONUNBUFFERED": "1"}


def files_of(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "My Cashier"
    assert main(["new", str(folder)]) == 0
    return folder


def test_a_project_is_written_with_its_name(project: Path) -> None:
    assert files_of(project) == MINIMAL | MORE
    texts = [path.read_text("utf-8") for path in project.rglob("*") if path.is_file()]
    assert not any("{{name" in text or "{{more" in text for text in texts)
    assert json.loads((project / "page/package.json").read_text())["name"] == "my-cashier-page"
    assert (project / ".env").stat().st_mode & 0o777 == 0o600


def test_a_minimal_project_has_the_server_alone(tmp_path: Path) -> None:
    folder = tmp_path / "small"
    folder.mkdir()
    assert main(["new", str(folder), "--minimal"]) == 0
    assert files_of(folder) == MINIMAL
    assert "page" not in (folder / "README.md").read_text("utf-8").partition("```\n\n")[2]


def test_a_folder_with_files_is_refused_and_kept(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "agent.py").write_text("mine = 1\n")
    assert main(["new", str(project)]) == 2
    assert "is not an empty folder" in capsys.readouterr().err
    assert (project / "agent.py").read_text() == "mine = 1\n"


def test_the_tests_of_a_project_pass_and_fail_without_the_gate(project: Path) -> None:
    def run() -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly"]
        return subprocess.run(
            command, cwd=project, env=ENVIRONMENT, capture_output=True, text=True, check=False
        )

    done = run()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout
    agent = project / "agent.py"
    agent.write_text(agent.read_text().replace("require_confirmation=True", ""))
    assert run().returncode == 1


def test_the_packages_of_the_page_have_the_versions_of_this_repository(project: Path) -> None:
    page = json.loads((project / "page/package.json").read_text("utf-8"))
    known: dict[str, str] = {}
    for name in ("package.json", "frontend/app/package.json"):
        manifest = json.loads((ROOT / name).read_text("utf-8"))
        known |= {**manifest.get("dependencies", {}), **manifest.get("devDependencies", {})}
    for package, wanted in {**page["dependencies"], **page["devDependencies"]}.items():
        assert known[package] == wanted


class Output:
    """The lines that a process prints, as they come."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._lines: Queue[str] = Queue()
        self._seen: list[str] = []

        def read() -> None:
            for line in process.stdout or ():
                self._lines.put(line)

        self._reader = threading.Thread(target=read, daemon=True)
        self._reader.start()

    def seen(self) -> list[str]:
        """Return the lines so far, once the process has ended."""
        self._reader.join(PATIENCE)
        return [*self._seen, *self._lines.queue]

    def wait_for(self, pattern: str) -> str:
        """Wait for a line in which the pattern is found."""
        while True:
            line = self._lines.get(timeout=PATIENCE)
            self._seen.append(line)
            if re.search(pattern, line):
                return line


@contextmanager
def running(folder: Path, *arguments: str) -> Iterator[Output]:
    command = [sys.executable, "-m", "sluicegate", *arguments]
    with subprocess.Popen(
        command,
        cwd=folder,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            yield Output(process)
        finally:
            # A process of a script in the background ignores an interrupt.
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                raise


def test_dev_serves_the_script_logs_requests_and_reloads_on_a_change(project: Path) -> None:
    with running(project, "dev", "--port", "0") as output:
        line = output.wait_for("serves cashier at")
        url = line.partition(" at ")[2].partition(" ")[0]
        check = f"import urllib.request as r; print(r.urlopen('{url}healthz').status)"
        subprocess.run([sys.executable, "-c", check], check=True, capture_output=True)
        output.wait_for("request GET /healthz 200")
        agent = project / "agent.py"
        agent.write_text(agent.read_text().replace('name="cashier"', 'name="teller"'))
        output.wait_for(r"agent\.py changed; the server starts again")
        output.wait_for("serves teller at")
    assert not any("signal" in line or "KeyboardInterrupt" in line for line in output.seen())


def test_dev_waits_for_a_change_after_an_error(project: Path) -> None:
    agent = project / "agent.py"
    good = agent.read_text()
    agent.write_text("oops(")
    with running(project, "dev", "--port", "0") as output:
        line = output.wait_for("agent.py cannot be imported: SyntaxError")
        assert line.endswith("agent.py:1: '(' was never closed.\n")
        agent.write_text(good)
        output.wait_for("serves cashier at")
    assert not any("process already dead" in line for line in output.seen())


def test_dev_outside_a_project_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["dev"]) == 2
    said = capsys.readouterr().err
    assert said.startswith(
        "There is no file agent.py; correct the path, or run this in the agent's"
    )


@pytest.mark.parametrize("target", ["agent.py", "agent:root_agent", "."])
def test_the_env_beside_the_agent_sets_settings(project: Path, target: str) -> None:
    command = [sys.executable, "-m", "sluicegate", "check", target]
    done = subprocess.run(
        command, cwd=project, env=ENVIRONMENT, capture_output=True, text=True, check=True
    )
    assert "models: the script script.yaml" in done.stdout
