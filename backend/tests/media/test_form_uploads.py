"""Large files at Anthropic and OpenAI, uploaded by the clients of ADK's two classes."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest
from anthropic import AsyncAnthropicVertex
from google.adk.artifacts.file_artifact_service import FileArtifactService
from google.adk.models.anthropic_llm import Claude
from google.adk.models.lite_llm import LiteLlm
from google.genai import types

from sluicegate.engine.current_guard import CURRENT_GUARD
from sluicegate.media.model_client_libraries import route_of
from sluicegate.media.provider_files_api import files_api
from sluicegate.testing.providers.openai_anthropic_files import BETA, FormFiles
from sluicegate.wire.chunks import DataChunk
from tests.engine.stage import words
from tests.engine.talk import Talk
from tests.media import samples
from tests.media.conftest import close
from tests.media.history import CHAT, Server, said
from tests.media.test_large_files import MIB, traced
from tests.media.test_provider_uploads import attach, look

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sluicegate.media.chat_files import ChatFiles
    from sluicegate.testing.providers import Endpoint
    from sluicegate.wire.stored_files import StoredFile
    from tests.media.conftest import Open
    from tests.media.families import Family

LARGE = samples.PDF + bytes(21 * MIB - len(samples.PDF))
"""More than each provider takes within a request."""

DIGEST = sha256(LARGE).hexdigest()
SEEN = "In all I see application/pdf by its id."
NOT_UPLOADED = "it could not be uploaded to the provider of the model"
NAMES = ("claude", "claude-adk", "openai")


@pytest.fixture(params=NAMES)
def family(request: pytest.FixtureRequest, families: dict[str, Family]) -> Iterator[Family]:
    """A family whose provider has no files at first."""
    found = families[request.param]
    renew(found.endpoint)
    yield found
    assert [reason for reason in found.endpoint.refused if "file" not in reason.lower()] == []


def renew(endpoint: Endpoint) -> FormFiles:
    provider: Any = endpoint.provider
    files = FormFiles(provider.files.provider)
    endpoint.files = provider.files = files
    endpoint.refused.clear()
    return files


def files_of(family: Family) -> FormFiles:
    assert isinstance(family.endpoint.files, FormFiles)
    return family.endpoint.files


def opened(open_with: Open, family: Family) -> Any:
    return open_with(family.make(), max_file_bytes=32 * MIB)


async def test_a_large_file_is_uploaded_once_referred_to_and_deleted_with_its_chat(
    family: Family, open_with: Open
) -> None:
    files = files_of(family)
    async with opened(open_with, family) as engine:
        assert words((await attach(engine, data=LARGE)).message) == SEEN
        assert await look(engine) == SEEN
    async with opened(open_with, family) as engine:
        assert await look(engine) == SEEN
        assert files.digests == [DIGEST]
        assert files.names == ["large.pdf"]
        assert files.deleted == []
        if family.name != "openai":
            assert BETA in family.endpoint.headers["anthropic-beta"]
        await engine.delete_chat("c1", user=Talk(engine).user)
    assert len(files.deleted) == 1
    assert family.endpoint.refused == []


async def test_a_file_that_is_gone_is_uploaded_again_within_the_turn(
    family: Family, open_with: Open
) -> None:
    files = files_of(family)
    async with opened(open_with, family) as engine:
        await attach(engine, data=LARGE)
        files.lose()
        assert await look(engine) == SEEN
        assert await look(engine) == SEEN
    assert files.digests == [DIGEST, DIGEST]
    assert len(family.endpoint.refused) == 1


@pytest.mark.parametrize("family", ["claude-adk", "openai"], indirect=True)
async def test_a_copy_that_expires_soon_is_uploaded_again(family: Family, open_with: Open) -> None:
    """LiteLLM asks Anthropic for no expiry, so that such a file stays until it is deleted."""
    files = files_of(family)
    files.lifetime = 360
    async with opened(open_with, family) as engine:
        await attach(engine, data=LARGE)
        files.lifetime = 1e9
        assert await look(engine) == SEEN
        assert await look(engine) == SEEN
    assert files.digests == [DIGEST, DIGEST]
    assert family.endpoint.refused == []


async def test_the_user_reads_that_an_upload_failed(family: Family, open_with: Open) -> None:
    files_of(family).fails = True
    async with opened(open_with, family) as engine:
        turn = await attach(engine, data=LARGE)
    notices = [chunk.data for chunk in turn.chunks if isinstance(chunk, DataChunk)]
    text = f'The model was not given the file "large.pdf": {NOT_UPLOADED}.'
    assert {"text": text} in notices
    assert words(turn.message) == "In all I see nothing."


PAGES = b"/Type /Pages /Count 1001\n"
IMAGE = samples.PNG + bytes(6 * MIB)
LIMITS = [
    ("claude", samples.PDF + PAGES + bytes(6 * MIB), "it has more than the 100 pages allowed"),
    ("claude-adk", samples.PDF + PAGES + bytes(6 * MIB), "it has more than the 100 pages allowed"),
    ("openai", samples.PDF + PAGES + LARGE, "it has more than the 1,000 pages allowed"),
    ("claude-adk", IMAGE, "it is larger than the 5,000,000 bytes that this model reads"),
    (
        "openai",
        samples.PDF + bytes(51_000_000),
        "it is larger than the 50,000,000 bytes that this model reads",
    ),
]


@pytest.mark.parametrize(("name", "data", "reason"), LIMITS, ids=range(len(LIMITS)))
async def test_a_file_beyond_a_limit_of_uploads_is_left_out_with_the_reason(
    families: dict[str, Family], name: str, data: bytes, reason: str
) -> None:
    renew(families[name].endpoint)
    server = Server()
    kind = "image/png" if data is IMAGE else "application/pdf"
    file = await server.files.store(CHAT, data, kind)
    model = families[name].make()
    await server.ask(model, [said("look", part_of(file))])
    await close(model)
    assert server.notices.take() == [f"The model was not given a file ({kind}): {reason}."]


async def test_what_a_request_cannot_carry_beside_newer_files_is_uploaded(
    families: dict[str, Family],
) -> None:
    """To OpenAI a request may carry 35 MB, and refer to 50 MB in all."""
    files = renew(families["openai"].endpoint)
    server = Server()
    stored = [
        await server.files.store(CHAT, samples.PDF + bytes([n]) * size, "application/pdf")
        for n, size in enumerate([3 * MIB, 12 * MIB, 17 * MIB, 17 * MIB])
    ]
    model = families["openai"].make()
    seen = await server.ask(model, [said("look", *(part_of(file) for file in stored))])
    await close(model)
    assert files.digests == [stored[2].digest]
    assert seen.count("application/pdf") == 3
    assert seen.count("by its id") == 1
    [notice] = server.notices.take()
    assert notice.endswith("there are newer files, and the request would be too large.")


async def test_a_large_result_of_a_tool_follows_the_results_of_its_turn(
    family: Family,
) -> None:
    """A reference stands in a message of its own: LiteLLM sees it only there."""
    server = Server()
    contents = await server.answered([["pdf"]])
    response = (contents[-1].parts or [])[0].function_response
    assert response is not None
    file = await server.files.store(CHAT, LARGE, "application/pdf")
    reference = types.FunctionResponseFileData(file_uri=file.uri, mime_type=file.media_type)
    response.parts = [types.FunctionResponsePart(file_data=reference)]
    model = family.make()
    seen = await server.ask(model, contents)
    await close(model)
    assert seen.startswith("I see ")
    assert "file_id" in json.dumps(family.endpoint.last["messages"][-1])
    assert family.endpoint.refused == []


@pytest.mark.parametrize(
    ("name", "most"),
    [
        # Both clients read the file in pieces of 64 KiB.
        ("claude-adk", 1.3 * 64 * 1024 + 8 * MIB),
        ("openai", 1.3 * 64 * 1024 + 8 * MIB),
        # LiteLLM reads it whole, and writes it into a form.
        ("claude", 2.5 * 20 * MIB + 8 * MIB),
    ],
)
async def test_an_upload_needs_little_memory_where_the_client_streams(
    families: dict[str, Family], folder: Path, name: str, most: float
) -> None:
    """A file of 20 MiB needs at most 1.3 times the largest chunk and 8 MiB (S4-R42)."""
    files = renew(families[name].endpoint)
    server = Server(FileArtifactService(str(folder)))
    small = await stored_on_disk(server.files, 6 * MIB)
    large = await stored_on_disk(server.files, 20 * MIB + 1)
    model = server.models.wrap(families[name].make())
    api = files_api(model, route_of(model))
    assert api is not None
    token = CURRENT_GUARD.set(server.turn)
    # The first upload imports the client.
    with await server.files.open(CHAT, small.name) as content:
        await api.upload(small, content)
    with traced() as peak:
        shaped = await server.models.shape(
            [said("look", part_of(large))], model, model.model, hooked=True
        )
        reached = peak()
    CURRENT_GUARD.reset(token)
    await close(model)
    assert [file for file, _ in shaped.uploads] == [large]
    assert files.digests == [small.digest, large.digest]
    assert reached <= most


async def stored_on_disk(files: ChatFiles, size: int) -> StoredFile:
    return await files.store(CHAT, samples.PDF + bytes(size - len(samples.PDF)), "application/pdf")


def part_of(file: StoredFile) -> types.Part:
    """A part as a user's message refers to a file."""
    return types.Part(file_data=types.FileData(file_uri=file.uri, mime_type=file.media_type))


WITHOUT = [
    LiteLlm(model="bedrock/anthropic.claude-sonnet-4-5"),
    LiteLlm(model="azure/gpt-5"),
    LiteLlm(model="litellm_proxy/openai/gpt-5"),
    Claude(model="claude-sonnet-4-5"),
    Claude(
        model="claude-sonnet-4-5",
        client=AsyncAnthropicVertex(region="nowhere", project_id="none", access_token="none"),
    ),
]


@pytest.mark.parametrize(
    "model", WITHOUT, ids=lambda model: f"{type(model).__name__} {model.model}"
)
async def test_where_no_files_api_is_reached_the_notice_states_the_limit(model: Any) -> None:
    assert files_api(model, route_of(model)) is None
    server = Server()
    file = await stored_on_disk(server.files, 21 * MIB)
    token = CURRENT_GUARD.set(server.turn)
    await server.models.shape([said("look", part_of(file))], model, model.model, hooked=True)
    CURRENT_GUARD.reset(token)
    [notice] = server.notices.take()
    assert notice.endswith(" bytes that this model reads.")
