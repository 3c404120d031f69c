"""What an exception says is in one line of the log, without credentials, and nowhere else."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.apps.app import App
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.function_tool import FunctionTool
from google.adk.workflow import START, Workflow

from sluicegate.server.logging_config import logging_to_stderr
from sluicegate.server.settings import Settings
from sluicegate.wire.encoding import to_json
from tests.engine.stage import calls, says, scripted
from tests.engine.talk import Talk

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.engine.stage import Open

WORDS = "words of an exception"
KEY = "sk-live-4711-abcdefgh"
SAID = f"{WORDS} with {KEY} and password={KEY}"


class Cause(Exception):
    """An exception whose cause knows more than it does."""


def fail(*_: Any, **__: Any) -> Any:
    """Raise, with words in every place an exception has."""
    try:
        raise LookupError(SAID)
    except LookupError as error:
        error.add_note(SAID)
        raise Cause(SAID, {"password": KEY}) from error


async def later(n: int) -> None:
    """Raise from a task of one's own, as a group."""
    async with asyncio.TaskGroup() as group:
        group.create_task(asyncio.to_thread(fail))


def now(n: int) -> None:
    """Raise in ADK's thread."""
    fail()


class Failing(BasePlugin):
    """A user's plugin that raises at one of its hooks."""

    def __init__(self, hook: str) -> None:
        super().__init__("failing")
        setattr(self, hook, self._fail)

    async def _fail(self, **_: Any) -> None:
        fail()


def _tool(function: Callable[..., Any], **more: Any) -> Any:
    return scripted(
        [calls((function.__name__, {"n": 1})), says("done")], [FunctionTool(function, **more)]
    )


def _plugin(hook: str) -> Any:
    agent = scripted([calls(("fine", {"n": 1})), says("done")], [fine])
    return App(name="stage", root_agent=agent, plugins=[Failing(hook)])


def fine(n: int) -> dict[str, int]:
    """Do nothing wrong."""
    return {"n": n}


def _flow() -> Any:
    def node(node_input: Any) -> str:
        return str(fail())

    return Workflow(name="stage", edges=[(START, node)])


SOURCES: dict[str, Callable[[], Any]] = {
    "a free tool": lambda: _tool(later),
    "a free tool in a thread": lambda: _tool(now),
    "a gated tool": lambda: _tool(later, require_confirmation=True),
    "a gated tool in a thread": lambda: _tool(now, require_confirmation=True),
    "a predicate": lambda: _tool(now, require_confirmation=fail),
    "a model": lambda: scripted([says("so ", error={"code": 500, "message": SAID})]),
    "a callback before the model": lambda: scripted([says("no")], before_model_callback=fail),
    "a callback after the model": lambda: scripted([says("no")], after_model_callback=fail),
    "a callback before the tool": lambda: scripted(
        [calls(("fine", {"n": 1}))], [fine], before_tool_callback=fail
    ),
    "a plugin before the tool": lambda: _plugin("before_tool_callback"),
    "a plugin after the tool": lambda: _plugin("after_tool_callback"),
    "a plugin at an event": lambda: _plugin("on_event_callback"),
    "a plugin before the run": lambda: _plugin("before_run_callback"),
    "a node of a workflow": _flow,
}


@pytest.mark.parametrize("source", SOURCES)
async def test_the_text_of_an_exception_is_in_the_log_only_and_without_credentials(
    open_stage: Open,
    folder: Path,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
    source: str,
) -> None:
    caplog.set_level(logging.DEBUG, logger="sluicegate")
    talk = Talk(await open_stage(SOURCES[source]()))
    with logging_to_stderr(Settings(log_level="debug")):
        turn = await talk.say("go")
        if talk.pending():
            turn = await talk.approve()
        await talk.engine.close()
    assert turn.types[-1] in ("finish", "error")
    sent = "".join(to_json(chunk) for each in talk.turns for chunk in each.chunks)
    assert WORDS not in sent
    assert KEY not in sent
    written = capsys.readouterr()
    assert KEY not in written.err + written.out
    [line] = [each for each in written.err.splitlines() if " ERROR sluicegate: " in each]
    assert "error=" in line
    assert WORDS in line
    assert line in [each for each in written.err.splitlines() if WORDS in each]
    ours = [record.getMessage() for record in caplog.records if record.name == "sluicegate"]
    assert KEY not in "".join(ours)
    stored = stored_in(folder)
    assert b"go" in stored
    assert WORDS.encode() not in stored
    assert KEY.encode() not in stored


def stored_in(folder: Path) -> bytes:
    """Everything in the database, its log of changes too, and every file."""
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("source", ["a free tool", "a gated tool", "a model"])
async def test_an_error_is_logged_under_the_id_shown_to_the_user(
    open_stage: Open, caplog: pytest.LogCaptureFixture, source: str
) -> None:
    caplog.set_level(logging.INFO, logger="sluicegate")
    talk = Talk(await open_stage(SOURCES[source]()))
    turn = await talk.say("go")
    if talk.pending():
        turn = await talk.approve()
    text = "".join(to_json(chunk) for chunk in turn.chunks)
    name = text.partition("(error ")[2][:8]
    assert len(name) == 8
    assert f"error={name}" in caplog.text
