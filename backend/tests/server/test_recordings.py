"""Recordings of a served agent and its clients."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sluicegate import create_app
from sluicegate.engine.interface import Engine
from sluicegate.errors import ConfigurationError, RecordingError
from sluicegate.replay import load_recording
from sluicegate.replay.playback_engine import PlaybackEngine
from sluicegate.server.app import build
from sluicegate.server.settings import Settings
from sluicegate.wire.chunks import decode_chunk
from sluicegate.wire.reducer import reduce_chunks
from tests.agents.conformance_agent import root_agent
from tests.engine.talk import decide
from tests.patience import LEASE
from tests.server.exchange import chat_body, chunks, client, started

SECRET = "sk-very-secret"


async def test_a_served_chat_is_recorded_without_credentials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLUICEGATE_EFFECTS", str(tmp_path / "effects"))
    app = create_app(
        root_agent,
        sessions=f"sqlite+aiosqlite:///{tmp_path}/chats.db",
        artifacts=f"file:{tmp_path}/artifacts",
        lease_ttl=LEASE,
        record=str(tmp_path / "recordings"),
    )
    secrets = {"authorization": f"Bearer {SECRET}", "cookie": f"session={SECRET}"}
    body = {**chat_body("story:plain"), "token": SECRET}
    async with started(app), client(app, headers={**secrets, "x-ai-sdk": "7"}) as http:
        response = await http.post("/api/chat", json=body)
    (file,) = (tmp_path / "recordings").iterdir()
    (turn,) = load_recording(file).turns
    assert turn.chunks == chunks(response.text)
    headers = {"x-ai-sdk": "7"}
    assert turn.request == {"type": "send", "headers": headers, **chat_body("story:plain")}
    assert SECRET not in file.read_text()


async def test_a_replayed_response_equals_the_recorded_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLUICEGATE_EFFECTS", str(tmp_path / "effects"))
    app = create_app(
        root_agent,
        sessions=f"sqlite+aiosqlite:///{tmp_path}/chats.db",
        artifacts=f"file:{tmp_path}/artifacts",
        lease_ttl=LEASE,
        record=str(tmp_path / "recordings"),
    )
    posts = [chat_body("story:approval")]
    async with started(app), client(app, headers={"x-ai-sdk": "7"}) as http:
        first = await http.post("/api/chat", json=posts[0])
        message = reduce_chunks([decode_chunk(json.dumps(chunk)) for chunk in chunks(first.text)])
        (part,) = (part for part in message["parts"] if "approval" in part)
        decide(part, approved=True)
        posts.append({"id": "c1", "message": message, "messageId": message["id"]})
        second = await http.post("/api/chat", json=posts[1])
    (file,) = (tmp_path / "recordings").iterdir()
    engine = PlaybackEngine.from_file(file)

    async def open_engine() -> Engine:
        return engine

    replayed = build(open_engine, Settings(), suggestions=engine.suggestions).app
    async with client(replayed, headers={"x-ai-sdk": "7"}) as http:
        again = [await http.post("/api/chat", json=post) for post in posts]
        history = await http.get("/api/chats/c1")
        assert (await http.get("/api/approvals")).status_code == 404
    # A recording names no user.
    sent = [response.text.replace(',"decidedBy":"local"', "") for response in (first, second)]
    assert sent[1] != second.text
    assert [response.text for response in again] == sent
    assert [each["role"] for each in history.json()["messages"]] == ["user", "assistant"]


def test_an_unrecordable_configuration_is_refused_at_startup(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RecordingError, match="cannot be written to"):
        create_app(root_agent, record=str(tmp_path / "file"))
    with pytest.raises(ConfigurationError, match="redact takes fields out of recordings"):
        create_app(root_agent, redact=["iban"])
