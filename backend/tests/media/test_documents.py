"""A document that is uploaded, returned by a tool, and read by each provider's model (S4-R36)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.tool_context import ToolContext

from sluicegate.demo.read_document import read_document
from sluicegate.wire.requests import parse_chat_request
from tests.engine.stage import words
from tests.engine.talk import Talk
from tests.media import samples
from tests.media.families import NAMES, Family

if TYPE_CHECKING:
    from tests.media.conftest import Open


async def make(kind: str, tool_context: ToolContext) -> Any:
    """Read a document; the models of these tests call every tool by this name."""
    source: Any = kind
    return await read_document(tool_context, source, return_original=True)


@pytest.mark.parametrize("name", NAMES)
async def test_a_document_is_uploaded_returned_by_a_tool_and_read_by_the_model(
    families: dict[str, Family], open_with: Open, folder: Path, name: str
) -> None:
    for family in families.values():
        family.endpoint.refused.clear()
    async with open_with(families[name].make(), tools=[FunctionTool(make)]) as engine:
        file = await engine.save_file(
            "c1", samples.PDF, "application/pdf", title="report.pdf", user="ann"
        )
        talk = Talk(engine, "progressive", chat_id="c1")
        part = {"type": "file", "url": file["url"], "mediaType": file["mediaType"]}
        text = {"type": "text", "text": "make attachment and handbook"}
        body: dict[str, Any] = {"message": {"id": "u1", "role": "user", "parts": [part, text]}}
        options = engine.resources.options
        request = parse_chat_request(
            {"id": "c1", **body}, options.request_limits, own_files=options.files_url
        )
        turn = await talk.read(await engine.start(request, user="ann", client=talk.client))
    assert words(turn.message) == "I see application/pdf; application/pdf."
    stored = [path for path in (folder / "artifacts").rglob("*.pdf") if path.is_file()]
    assert len(stored) == 2, "the upload and the handbook, each once"
    assert families[name].endpoint.refused == []
