"""Tools that are nodes of a Workflow: ADK leaves their files in the output of the node."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.runners import InMemoryRunner
from google.adk.tools.function_tool import FunctionTool
from google.adk.workflow import Workflow
from google.genai import types

from sluicegate import ToolResult
from sluicegate.core.event_reading import media_in_output
from sluicegate.engine.chat_engine import ChatEngine
from sluicegate.engine.options import EngineOptions
from sluicegate.testing.message_comparison import comparable
from sluicegate.wire.stored_files import StoredFile
from tests.engine.talk import Talk
from tests.media import samples

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PICTURE = types.Part(inline_data=types.Blob(data=samples.PNG, mime_type="image/png"))
NAME = StoredFile.of(samples.PNG, "image/png").name


def plain(node_input: str = "") -> dict[str, Any]:
    """Draw."""
    return {"title": "t", "deep": [{"chart": PICTURE}]}


def result(node_input: str = "") -> ToolResult:
    """Draw."""
    return ToolResult(["words", PICTURE])


async def test_adk_leaves_files_in_the_output_of_a_node() -> None:
    runner = InMemoryRunner(node=Workflow(name="flow", edges=[("START", FunctionTool(plain))]))
    session = await runner.session_service.create_session(app_name=runner.app_name, user_id="u")
    message = types.Content(role="user", parts=[types.Part(text="go")])
    outputs = [
        event.output
        async for event in runner.run_async(user_id="u", session_id=session.id, new_message=message)
    ]
    assert {"title": "t", "deep": [{"chart": PICTURE}]} in outputs


@pytest.mark.parametrize(
    ("tool", "output"),
    [
        (plain, {"title": "t"}),
        (result, {"status": "success", "text_result": "words"}),
    ],
)
async def test_a_gated_node_shows_its_files_and_stores_references(
    folder: Path, tool: Callable[..., Any], output: dict[str, Any]
) -> None:
    flow = Workflow(name="flow", edges=[("START", FunctionTool(tool, require_confirmation=True))])
    options = EngineOptions(
        sessions=f"sqlite+aiosqlite:///{folder}/s.db", artifacts=f"file:{folder}/artifacts"
    )
    engine = await ChatEngine.open(flow, options)
    talk = Talk(engine)
    await talk.say("go")
    turn = await talk.approve()
    parts = {part["type"]: part for part in turn.message["parts"]}
    assert parts[f"tool-{tool.__name__}"]["output"] == output
    assert parts["file"]["url"].endswith(f"/files/{NAME}")
    assert comparable(await talk.history()) == comparable(turn.message)
    assert (await engine.get_file(talk.chat_id, NAME, user="ann"))[0] == samples.PNG
    await engine.close()
    assert b"iVBORw0KGgo" not in (folder / "s.db").read_bytes()


STORED = {"file_data": {"file_uri": StoredFile.of(b"x", "a/b").uri, "mime_type": "a/b"}}


@pytest.mark.parametrize(
    ("output", "rest", "count"),
    [
        (None, None, 0),
        ("words", "words", 0),
        ({"a": []}, {"a": []}, 0),
        (STORED, {}, 1),
        ([STORED, 1], [1], 1),
        ({"a": 1, "b": STORED, "c": [STORED]}, {"a": 1}, 2),
        ({"file_data": {"file_uri": "gs://a/b", "mime_type": "a/b"}}, None, 0),
        ({**STORED, "more": 1}, None, 0),
    ],
)
def test_files_are_extracted_from_an_output(output: Any, rest: Any, count: int) -> None:
    before = json.dumps(output)
    left, files = media_in_output(output, "/f/")
    assert left == (rest if rest is not None else output)
    assert len(files) == count
    assert json.dumps(output) == before
