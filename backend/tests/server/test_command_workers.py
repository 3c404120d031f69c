"""Workers that the server starts as commands and calls over their pipes."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from sluicegate.server.cli import main
from sluicegate.tools.worker_stdio_client import COMMAND
from tests.engine.stage import calls, says, scripted
from tests.server.page import Page, served
from tests.server.test_workers import AGENT

SERVER = Path(__file__).parent.parent / "agents" / "stdio_worker.py"


@pytest.fixture
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The setting for a worker named ``shop`` that is a command."""
    monkeypatch.setenv("SECRET", "of the server")
    return f"shop={COMMAND}{shlex.join([sys.executable, '-S', str(SERVER), 'two words'])}"


def outputs(read: list[dict[str, Any]]) -> list[Any]:
    return [chunk["output"] for chunk in read if chunk["type"] == "tool-output-available"]


async def test_a_command_is_one_process_that_serves_all_calls_after_their_approval(
    tmp_path: Path, worker: str
) -> None:
    script = [calls(("shop_count", {})), calls(("shop_count", {}), ("shop_count", {})), says("ok")]
    async with served(scripted(script), tmp_path, workers=(worker,)) as http:
        page = Page(http)
        assert outputs(await page.say("go")) == []
        first = outputs(await page.answer())
        second = outputs(await page.answer())
    found = [*first, *second]
    assert sorted(each["calls"] for each in found) == [1, 2, 3]
    assert len({each["process"] for each in found}) == 1
    assert {(each["secret"], each["argument"]) for each in found} == {(None, "two words")}


async def test_a_command_that_ends_in_a_call_is_started_again(tmp_path: Path, worker: str) -> None:
    script = [calls(("shop_die", {})), calls(("shop_count", {})), says("ok")]
    ungated = ("shop_die", "shop_count")
    async with served(
        scripted(script), tmp_path, workers=(worker,), ungated_worker_tools=ungated
    ) as http:
        read = await Page(http).say("go")
    errors = [chunk["errorText"] for chunk in read if chunk["type"] == "tool-output-error"]
    assert errors == [
        "The connection to the worker shop broke in the call; whether it took effect is not known."
    ]
    assert [each["calls"] for each in outputs(read)] == [1]


async def test_a_command_reports_progress_and_a_late_call_ends(tmp_path: Path, worker: str) -> None:
    script = [calls(("shop_report", {})), calls(("shop_wait", {})), calls(("shop_count", {}))]
    async with served(
        scripted([*script, says("ok")]),
        tmp_path,
        workers=(worker,),
        worker_timeout=5,
        release="progressive",
        ungated_worker_tools=("shop_report", "shop_wait", "shop_count"),
    ) as http:
        read = await Page(http).say("go")
    assert [chunk["output"] for chunk in read if chunk.get("preliminary")] == ["half"]
    errors = [chunk["errorText"] for chunk in read if chunk["type"] == "tool-output-error"]
    assert errors == [
        "The worker shop did not answer within 5 s; whether it took effect is not known."
    ]
    assert [each["calls"] for each in outputs(read) if isinstance(each, dict)] == [1, 2]


async def test_a_command_asks_a_person_in_its_only_call(tmp_path: Path, worker: str) -> None:
    script = [calls(("shop_ask", {})), says("ok")]
    async with served(scripted(script), tmp_path, workers=(worker,)) as http:
        page = Page(http)
        await page.say("go")
        await page.answer()
        [part] = page.pending()
        assert part["approval"]["requestReason"] == "The worker shop asks: Whose name?"
        read = await page.answer(payload={part["approval"]["id"]: {"name": "Bo"}})
    assert outputs(read) == [{"action": "accept", "content": {"name": "Bo"}}]


async def test_a_command_that_asks_in_one_of_several_calls_is_refused(
    tmp_path: Path, worker: str
) -> None:
    script = [calls(("shop_wait", {}), ("shop_ask", {})), says("ok")]
    free = ("shop_wait", "shop_ask")
    async with served(
        scripted(script),
        tmp_path,
        workers=(worker,),
        worker_timeout=5,
        ungated_worker_tools=free,
    ) as http:
        page = Page(http)
        read = await page.say("go")
    assert page.asks() == []
    [refused] = outputs(read)
    assert "does not know which of them asks" in refused["message"]


def test_check_lists_the_tools_of_a_command_and_a_command_that_cannot_be_run(
    tmp_path: Path, worker: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "agent.py").write_text(AGENT)
    options = ["--worker", worker, "--worker", "none=cmd:/no/such/program"]
    assert main(["check", str(tmp_path / "agent.py"), *options]) == 0
    said = capsys.readouterr().out
    assert "    shop_count: requires approval\n" in said
    assert "  none at cmd:/no/such/program: offers nothing now\n    The worker none cannot" in said


def test_a_command_whose_quotes_do_not_match_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "agent.py").write_text(AGENT)
    assert main(["check", str(tmp_path / "agent.py"), "--worker", "shop=cmd:a 'b"]) == 1
    assert "The worker shop has no command that can be run" in capsys.readouterr().out
