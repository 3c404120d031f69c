"""Files that were uploaded and never sent (S4-R55); the clock is the database's, handed in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from google.adk.artifacts.file_artifact_service import FileArtifactService
from google.adk.tools.function_tool import FunctionTool
from google.genai import types

from sluicegate import ToolResult
from sluicegate.engine.turn.session_log import SessionLog
from sluicegate.errors import Unknown
from sluicegate.wire.requests import parse_chat_request
from tests.engine.stage import calls, read, says, scripted
from tests.engine.talk import Talk
from tests.media import samples

if TYPE_CHECKING:
    from sluicegate.engine.chat_engine import ChatEngine
    from tests.engine.stage import Open
    from tests.stores.builders import Clock

TTL = 3600.0


@pytest.fixture
async def engine(open_stage: Open, clock: Clock) -> ChatEngine:
    def draw() -> ToolResult:
        """Draw."""
        return ToolResult([types.Blob(data=samples.PNG, mime_type="image/png")])

    agent = scripted([calls(("draw", {})), says("Nice.")], [FunctionTool(draw)])
    return await open_stage(agent, clock=clock, upload_ttl=TTL)


async def upload(engine: ChatEngine, talk: Talk, data: bytes = samples.PNG) -> str:
    """Upload a picture; its name."""
    kind = "image/png" if data is samples.PNG else "image/jpeg"
    stored = await engine.save_file(talk.chat_id, data, kind, title=None, user=talk.user)
    name: str = stored["name"]
    return name


async def is_there(engine: ChatEngine, talk: Talk, name: str) -> bool:
    try:
        await engine.get_file(talk.chat_id, name, user=talk.user)
    except Unknown:
        return False
    return True


async def test_an_unsent_file_is_deleted_with_a_later_upload(
    engine: ChatEngine, clock: Clock
) -> None:
    talk, other = Talk(engine), Talk(engine, user="bob")
    name = await upload(engine, talk)
    clock.ahead += TTL / 2
    await upload(engine, other, samples.JPEG)
    assert await is_there(engine, talk, name)
    clock.ahead += TTL / 2 + 1
    await upload(engine, other, samples.JPEG)
    assert not await is_there(engine, talk, name)


async def test_a_file_that_was_sent_is_kept(engine: ChatEngine, clock: Clock) -> None:
    talk = Talk(engine)
    name = await upload(engine, talk)
    unsent = await upload(engine, talk, samples.JPEG)
    url = f"/api/chats/{talk.chat_id}/files/{name}"
    file = {"type": "file", "url": url, "mediaType": "image/png"}
    parts = [file, {"type": "text", "text": "look"}]
    body: dict[str, Any] = {
        "id": talk.chat_id,
        "trigger": "submit-message",
        "message": {"id": "u1", "role": "user", "parts": parts},
    }
    request = parse_chat_request(body, own_files="/api/chats/{id}/files/")
    await read(await engine.start(request, user=talk.user, client=talk.client))
    clock.ahead += TTL + 1
    await upload(engine, Talk(engine))
    assert await is_there(engine, talk, name)
    assert not await is_there(engine, talk, unsent)


async def test_a_file_also_returned_by_a_tool_is_kept(engine: ChatEngine, clock: Clock) -> None:
    talk = Talk(engine)
    name = await upload(engine, talk)
    await talk.say("draw")
    clock.ahead += TTL + 1
    await upload(engine, Talk(engine))
    assert await is_there(engine, talk, name)


async def test_unsent_files_are_deleted_at_startup(open_stage: Open, clock: Clock) -> None:
    engine = await open_stage(scripted([says("Nice.")]), clock=clock, upload_ttl=TTL)
    talk = Talk(engine)
    name = await upload(engine, talk)
    await engine.close()
    clock.ahead += TTL + 1
    engine = await open_stage(scripted([says("Nice.")]), clock=clock, upload_ttl=TTL)
    assert not await is_there(engine, talk, name)


async def test_a_chat_with_a_lease_is_skipped(engine: ChatEngine, clock: Clock) -> None:
    talk, other = Talk(engine), Talk(engine)
    name = await upload(engine, talk)
    clock.ahead += TTL + 1
    async with engine.resources.leases.acquired(talk.key, after=None):
        await upload(engine, other)
        assert await is_there(engine, talk, name)
    await upload(engine, other)
    assert not await is_there(engine, talk, name)


async def test_an_unreadable_chat_is_skipped_and_delays_nothing(
    engine: ChatEngine,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def broken(*_args: Any, **_more: Any) -> None:
        raise ValueError("what is in the chat")

    talk, other = Talk(engine), Talk(engine)
    name = await upload(engine, talk)
    clock.ahead += TTL + 1
    with monkeypatch.context() as patch:
        patch.setattr(SessionLog, "load", broken)
        assert await is_there(engine, other, await upload(engine, other))
    assert f"an upload was not processed chat={talk.chat_id} ValueError" in caplog.text
    await upload(engine, other)
    assert await is_there(engine, talk, name)
    clock.ahead += TTL + 1
    await upload(engine, other)
    assert not await is_there(engine, talk, name)


async def test_a_failing_store_fails_no_upload(
    engine: ChatEngine, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_args: Any, **_more: Any) -> None:
        raise OSError

    talk, other = Talk(engine), Talk(engine)
    name = await upload(engine, talk)
    clock.ahead += TTL + 1
    with monkeypatch.context() as patch:
        patch.setattr(FileArtifactService, "delete_artifact", broken)
        assert await is_there(engine, other, await upload(engine, other))
    clock.ahead += TTL + 1
    await upload(engine, other)
    assert not await is_there(engine, talk, name)
