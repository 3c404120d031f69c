"""Recordings of what a served agent and its clients say."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluicegate import create_app
from sluicegate.errors import ConfigurationError, RecordingError
from sluicegate.replay import load_recording
from tests.agents.conformance_agent import root_agent
from tests.server.exchange import chat_body, chunks, client, living

SECRET = "sk-very-secret"


async def test_a_served_chat_is_recorded_without_what_it_was_authenticated_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLUICEGATE_EFFECTS", str(tmp_path / "effects"))
    app = create_app(
        root_agent,
        sessions=f"sqlite+aiosqlite:///{tmp_path}/chats.db",
        artifacts=f"file:{tmp_path}/artifacts",
        record=str(tmp_path / "recordings"),
    )
    secrets = {"authorization": f"Bearer {SECRET}", "cookie": f"session={SECRET}"}
    body = {**chat_body("story:plain"), "token": SECRET}
    async with living(app), client(app, headers={**secrets, "x-ai-sdk": "7"}) as http:
        response = await http.post("/api/chat", json=body)
    (file,) = (tmp_path / "recordings").iterdir()
    (turn,) = load_recording(file).turns
    assert turn.chunks == chunks(response.text)
    assert turn.asked == {"type": "send", "headers": {"x-ai-sdk": "7"}, **chat_body("story:plain")}
    assert SECRET not in file.read_text()


def test_what_cannot_be_recorded_is_refused_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RecordingError, match="cannot be written to"):
        create_app(root_agent, record=str(tmp_path / "file"))
    with pytest.raises(ConfigurationError, match="redact takes fields out of recordings"):
        create_app(root_agent, redact=["iban"])
