"""The demo's documents: the text by default, the original when asked for (S4-R28, S4-R36)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from sluicegate import ToolResult, create_app
from sluicegate.demo.agent import build_agent
from sluicegate.demo.handbook import LINES, handbook_pdf, handbook_text
from sluicegate.demo.read_document import read_document
from sluicegate.media import Attachment
from sluicegate.replay import ScriptedModel
from tests.media import samples
from tests.server.exchange import client, started


def test_the_handbook_is_a_pdf_with_a_valid_cross_reference_table() -> None:
    pdf = handbook_pdf()
    assert pdf.startswith(b"%PDF-1.4\n")
    assert pdf.endswith(b"%%EOF\n")
    start = int(re.findall(rb"startxref\n(\d+)\n", pdf)[0])
    assert pdf[start:].startswith(b"xref\n0 6\n")
    places = [int(place) for place in re.findall(rb"(\d{10}) 00000 n ", pdf)]
    for number, place in enumerate(places, start=1):
        assert pdf[place:].startswith(b"%d 0 obj\n" % number)
    (length,) = re.findall(rb"/Length (\d+) >>\nstream\n", pdf)
    content = pdf.partition(b">>\nstream\n")[2].partition(b"\nendstream")[0]
    assert len(content) == int(length)
    shown = re.findall(rb"\((.*?)\) Tj", content)
    assert [line.decode() for line in shown] == list(LINES)
    assert pdf == handbook_pdf()


async def test_a_document_is_returned_as_text_by_default() -> None:
    context: Any = None
    assert await read_document(context) == ToolResult([handbook_text()])
    original = await read_document(context, return_original=True)
    (file,) = original.files
    assert isinstance(file, Attachment)
    assert (file.data, file.title) == (handbook_pdf(), "handbook.pdf")


async def no_wait(_: float) -> None:
    """The script does not wait for anybody."""


class Chat:
    """One chat with the demo over HTTP."""

    def __init__(self, http: Any) -> None:
        self.http = http
        self.posts = 0

    async def say(self, text: str, *files: dict[str, Any]) -> list[dict[str, Any]]:
        """Say something; the chunks of the answer."""
        self.posts += 1
        parts = [*files, {"type": "text", "text": text}]
        message = {"id": f"u{self.posts}", "role": "user", "parts": parts}
        response = await self.http.post("/api/chat", json={"id": "c1", "message": message})
        assert response.status_code == 200, response.text
        lines = [line[6:] for line in response.text.splitlines() if line.startswith("data: {")]
        return [json.loads(line) for line in lines]

    async def files(self, chunks: list[dict[str, Any]]) -> list[tuple[str, bytes]]:
        """The files of an answer, as a browser fetches them."""
        found = []
        for chunk in chunks:
            if chunk["type"] == "file":
                got = await self.http.get(chunk["url"])
                assert got.status_code == 200
                assert got.headers["content-type"] == chunk["mediaType"]
                found.append((chunk["mediaType"], got.content))
        return found

    async def attached(self, data: bytes, media_type: str, name: str) -> dict[str, Any]:
        """Upload a file, as the page does; the part that a message names it by."""
        response = await self.http.post(
            "/api/chats/c1/files",
            content=data,
            headers={"content-type": media_type},
            params={"filename": name},
        )
        assert response.status_code == 201, response.text
        return {"type": "file", **{key: response.json()[key] for key in ("url", "mediaType")}}


@pytest.fixture
def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    agent = build_agent({}, report_seconds=0)
    assert isinstance(agent.model, ScriptedModel)
    agent.model = agent.model.model_copy(update={"sleep": no_wait})
    return create_app(agent, page=False)


async def test_the_original_of_the_handbook_is_a_file(demo: Any) -> None:
    async with started(demo), client(demo) as http:
        chat = Chat(http)
        chunks = await chat.say("Show me the handbook")
        assert await chat.files(chunks) == [("application/pdf", handbook_pdf())]
        assert "".join(chunk.get("delta", "") for chunk in chunks).endswith("ask the miller.")


@pytest.mark.parametrize(
    ("data", "media_type", "comes_back"),
    [
        (samples.PDF, "application/pdf", True),
        (samples.PNG, "image/png", True),
        (samples.JPEG, "image/jpeg", True),
        (samples.TEXT, "text/plain", False),
        (samples.JSON, "application/json", False),
    ],
    ids=["pdf", "png", "jpeg", "text", "json"],
)
async def test_an_uploaded_file_is_returned_as_original_or_as_text(
    demo: Any, data: bytes, media_type: str, comes_back: bool
) -> None:
    async with started(demo), client(demo) as http:
        chat = Chat(http)
        chunks = await chat.say("What is in my file?", await chat.attached(data, media_type, "a"))
        files = await chat.files(chunks)
        (output,) = [c["output"] for c in chunks if c["type"] == "tool-output-available"]
    assert files == ([(media_type, data)] if comes_back else [])
    said = output["text_result"]
    assert said == "This is a." if comes_back else said == data.decode()


@pytest.mark.parametrize(
    ("media_type", "data", "sentence"),
    [
        (None, b"", "There is no attached file; attach one and ask again."),
        ("image/gif", samples.GIF, "No text can be read from image/gif; ask for the original."),
    ],
    ids=["nothing", "gif"],
)
async def test_an_unreadable_attachment_is_one_sentence(
    demo: Any, media_type: str | None, data: bytes, sentence: str
) -> None:
    async with started(demo), client(demo) as http:
        chat = Chat(http)
        files = [] if media_type is None else [await chat.attached(data, media_type, "a")]
        chunks = await chat.say("What is in my file?", *files)
    assert [c["errorText"] for c in chunks if c["type"] == "tool-output-error"] == [sentence]
