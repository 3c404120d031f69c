"""Attachments that no model of the agent reads, named by a running server before they are sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from google.adk.agents.llm_agent import LlmAgent

from tests.engine.stage import words
from tests.media import samples
from tests.media.conftest import close, connected
from tests.server.page import Page, served

if TYPE_CHECKING:
    from pathlib import Path

    from tests.media.families import Family

SOUND, FILM = (samples.WAV, "audio/wav", "a.wav"), (samples.MP4, "video/mp4", "b.mp4")
PICTURE, PAPER = (samples.PNG, "image/png", "c.png"), (samples.PDF, "application/pdf", "d.pdf")


@pytest.mark.parametrize("name", ["claude", "claude-adk", "openai", "gemini-3", "unknown"])
async def test_a_file_that_the_model_does_not_read_is_named_when_it_is_stored(
    families: dict[str, Family], tmp_path: Path, name: str
) -> None:
    model = connected(families[name].make())
    agent = LlmAgent(name="reader", model=model)
    reads_all = name in ("gemini-3", "unknown")
    async with served(agent, tmp_path) as http:
        page = Page(http)
        for data, kind, title in (SOUND, FILM, PICTURE, PAPER):
            response = await http.post(
                f"/api/chats/{page.chat_id}/files",
                params={"filename": title},
                content=data,
                headers={"content-type": kind},
            )
            assert response.status_code == 201
            is_read = reads_all or (data, kind, title) in (PICTURE, PAPER)
            reason = f"this model does not read files of the type {kind}"
            notice = None if is_read else f'The model cannot read the file "{title}": {reason}.'
            assert response.json().get("notice") == notice
    await close(model)


async def test_a_stored_file_with_a_notice_is_sent_by_its_name(
    families: dict[str, Family], tmp_path: Path
) -> None:
    model = connected(families["openai"].make())
    async with served(LlmAgent(name="reader", model=model), tmp_path) as http:
        page = Page(http)
        response = await http.post(
            f"/api/chats/{page.chat_id}/files",
            params={"filename": "a.wav"},
            content=samples.WAV,
            headers={"content-type": "audio/wav"},
        )
        file: dict[str, Any] = {"type": "file", **response.json()}
        parts = [file, {"type": "text", "text": "look"}]
        page.messages.append({"id": "u1", "role": "user", "parts": parts})
        read = await page.post()
    await close(model)
    notices = [chunk["data"]["text"] for chunk in read if chunk["type"] == "data-notice"]
    reason = "this model does not read files of the type audio/wav"
    assert notices == [f'The model was not given the file "a.wav": {reason}.']
    assert words(page.messages[-1]) == "In all I see nothing."
