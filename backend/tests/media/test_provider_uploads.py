"""Files that are too large for a request, uploaded to the provider by its own client."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.artifacts.file_artifact_service import FileArtifactService
from google.genai import types

from sluicegate.core.chat_and_turn_keys import ChatKey
from sluicegate.engine.current_guard import CURRENT_GUARD
from sluicegate.engine.options import EngineOptions
from sluicegate.media.chat_files import artifact_scope
from sluicegate.testing.providers.google_files import GoogleFiles
from sluicegate.wire.chunks import DataChunk
from sluicegate.wire.requests import parse_chat_request
from tests.engine.stage import words
from tests.engine.talk import Talk, Turn
from tests.media import samples
from tests.media.conftest import close, connected
from tests.media.history import CHAT, Server, said
from tests.media.test_large_files import MIB, traced

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sluicegate.engine.chat_engine import ChatEngine
    from tests.media.conftest import Open
    from tests.media.families import Family

# aiohttp, which Google's client sends by, prefers streams to bytes of more than a megabyte.
pytestmark = pytest.mark.filterwarnings("ignore:Sending a large body directly:ResourceWarning")

LARGE = samples.PDF + bytes(16 * MIB - len(samples.PDF))
DIGEST = sha256(LARGE).hexdigest()


@pytest.fixture
def google(families: dict[str, Family]) -> Iterator[GoogleFiles]:
    """The files at Google, none at first."""
    endpoint = families["gemini-3"].endpoint
    files = endpoint.files = GoogleFiles()
    endpoint.refused.clear()
    yield files
    assert endpoint.refused == []


async def attach(engine: ChatEngine, chat: str = "c1", data: bytes = LARGE) -> Turn:
    """Upload a large file, and ask about it."""
    talk = Talk(engine, "progressive", chat_id=chat)
    part = await engine.save_file(chat, data, "application/pdf", title="large.pdf", user=talk.user)
    file = {"type": "file", "url": part["url"], "mediaType": "application/pdf"}
    parts = [file, {"type": "text", "text": "look"}]
    body: dict[str, Any] = {
        "id": chat,
        "trigger": "submit-message",
        "message": {"id": "u1", "role": "user", "parts": parts},
    }
    options = EngineOptions()
    request = parse_chat_request(body, options.request_limits, own_files=options.files_url)
    return await talk.read(await engine.start(request, user=talk.user, client=talk.client))


async def look(engine: ChatEngine, chat: str = "c1") -> str:
    return words((await Talk(engine, "progressive", chat_id=chat).say("look")).message)


SEEN = "In all I see application/pdf by its address."


@pytest.mark.parametrize("name", ["gemini-3", "gemini-2"])
async def test_a_file_beyond_the_inline_limit_is_uploaded_once_and_deleted_with_its_chat(
    families: dict[str, Family], google: GoogleFiles, open_with: Open, name: str
) -> None:
    google.polls = 1
    async with open_with(families[name].make()) as engine:
        assert words((await attach(engine)).message) == SEEN
        assert await look(engine) == SEEN
    async with open_with(families[name].make()) as engine:
        assert await look(engine) == SEEN
        assert google.digests == [DIGEST]
        assert google.deleted == []
        await engine.delete_chat("c1", user=Talk(engine).user)
    assert google.deleted == ["files/f0"]


async def test_a_record_that_names_no_pages_is_of_a_copy_that_is_there(
    families: dict[str, Family], google: GoogleFiles, open_with: Open
) -> None:
    """A record that was stored before pages were counted has three fields."""
    async with open_with(families["gemini-3"].make()) as engine:
        await attach(engine)
        scope = artifact_scope(ChatKey(engine.resources.app, Talk(engine).user, "c1"))
        service = engine.resources.files.service
        keys = await service.list_artifact_keys(**scope)
        [record] = [key for key in keys if key.endswith(".genai")]
        stored: Any = await service.load_artifact(**scope, filename=record)
        now = json.loads(stored.inline_data.data)
        before = json.dumps({key: now[key] for key in ("name", "uri", "expires")}).encode()
        assert before != stored.inline_data.data
        part = types.Part(inline_data=types.Blob(data=before, mime_type="application/json"))
        await service.save_artifact(**scope, filename=record, artifact=part)
    async with open_with(families["gemini-3"].make()) as engine:
        assert await look(engine) == SEEN
        assert google.digests == [DIGEST]
        await engine.delete_chat("c1", user=Talk(engine).user)
    assert google.deleted == ["files/f0"]


async def test_a_copy_that_expires_soon_is_uploaded_again(
    families: dict[str, Family], google: GoogleFiles, open_with: Open
) -> None:
    google.lifetime = 0.1
    async with open_with(families["gemini-3"].make()) as engine:
        await attach(engine)
        google.lifetime = 48
        assert await look(engine) == SEEN
        assert await look(engine) == SEEN
    assert google.digests == [DIGEST, DIGEST]


REASONS = [
    ("gemini-3", "it could not be uploaded to the provider of the model"),
    ("vertex-3", "it is larger than the 15,000,000 bytes that a request to this model carries"),
]


@pytest.mark.parametrize(("name", "reason"), REASONS)
async def test_the_user_reads_why_a_large_file_is_left_out(
    families: dict[str, Family], google: GoogleFiles, open_with: Open, name: str, reason: str
) -> None:
    google.fails = True
    async with open_with(families[name].make()) as engine:
        turn = await attach(engine)
    notices = [chunk.data for chunk in turn.chunks if isinstance(chunk, DataChunk)]
    assert {"text": f'The model was not given the file "large.pdf": {reason}.'} in notices
    assert words(turn.message) == "In all I see nothing."


@pytest.mark.parametrize("fits", [True, False])
async def test_files_that_exceed_a_request_together_are_uploaded_as_well(
    families: dict[str, Family], google: GoogleFiles, fits: bool
) -> None:
    model = connected(families["gemini-3"].make())
    server = Server()
    size = 7 * MIB if fits else 8 * MIB
    files = [
        await server.files.store(CHAT, samples.PDF + bytes([n]) * size, "application/pdf")
        for n in range(2)
    ]
    data = [types.FileData(file_uri=file.uri, mime_type=file.media_type) for file in files]
    seen = await server.ask(model, [said(*(types.Part(file_data=one) for one in data), "look")])
    await close(model)
    assert google.digests == ([] if fits else [files[0].digest])
    assert seen.count("application/pdf") == 2


async def test_an_upload_is_streamed_from_the_store_to_the_provider(
    families: dict[str, Family], google: GoogleFiles, folder: Path
) -> None:
    """A file of 20 MiB needs at most 1.3 times the largest chunk and 8 MiB (S4-R42)."""
    model: Any = connected(families["gemini-3"].make())
    server = Server(FileArtifactService(str(folder)))
    data = samples.PDF + bytes(20 * MIB - len(samples.PDF))
    file = await server.files.store(CHAT, data, "application/pdf")
    del data
    data_of = types.FileData(file_uri=file.uri, mime_type=file.media_type)
    asked = said("look", types.Part(file_data=data_of))
    token = CURRENT_GUARD.set(server.turn)
    with traced() as peak:
        shaped = await server.models.shape([asked], model, model.model)
        most = peak()
    CURRENT_GUARD.reset(token)
    await close(model)
    assert google.digests == [file.digest]
    [part] = [part for part in shaped.contents[0].parts or [] if part.file_data]
    assert str(part.file_data and part.file_data.file_uri).startswith("https://")
    assert most <= 1.3 * google.largest_chunk + 8 * MIB
