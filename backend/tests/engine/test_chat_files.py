"""The files of a chat: stored once, found by their owner alone, gone with the chat."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.artifacts.file_artifact_service import FileArtifactService
from google.adk.artifacts.in_memory_artifact_service import InMemoryArtifactService
from google.genai import types

from sluicegate import ToolResult
from sluicegate.core.chat_and_turn_keys import ChatKey
from sluicegate.engine.options import EngineOptions
from sluicegate.errors import RequestError, TooLarge, Unavailable, Unknown, UnsupportedMediaType
from sluicegate.media.chat_files import ChatFiles
from sluicegate.stores.open_artifacts import open_artifacts
from sluicegate.tools import gated
from sluicegate.wire.requests import parse_chat_request
from tests.engine.stage import Prompts, calls, part_of, says, scripted, words
from tests.engine.talk import Talk, decide
from tests.media import samples

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluicegate.engine.chat_engine import ChatEngine
    from tests.engine.stage import Open

CHAT = ChatKey("app", "ann", "c1")
ACCEPTED = ("image/png", "text/*")


def files(**more: Any) -> ChatFiles:
    return ChatFiles(InMemoryArtifactService(), ACCEPTED, more.pop("max_bytes", 1_000), **more)


async def attach(engine: ChatEngine, talk: Talk, data: bytes = samples.PNG) -> dict[str, Any]:
    return await engine.save_file(
        talk.chat_id, data, "image/png", title="chart.png", user=talk.user
    )


def message(*files: dict[str, Any], text: str = "look") -> dict[str, Any]:
    parts = [{"type": "file", **file} for file in files]
    return {"id": "u1", "role": "user", "parts": [*parts, {"type": "text", "text": text}]}


@pytest.fixture(params=["memory", "file"])
def service_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return "memory://" if request.param == "memory" else f"file:{tmp_path}/artifacts"


@pytest.mark.parametrize("user", ["ann", "ann@example.com", "../ann", "a/b", ".", "x y", "%2E"])
@pytest.mark.parametrize("chat", ["c1", "user", "c:1"])
async def test_a_file_is_stored_once_and_read_back(service_url: str, user: str, chat: str) -> None:
    stored = ChatFiles(open_artifacts(service_url), ACCEPTED, 10_000)
    key = ChatKey("app", user, chat)
    first = await stored.attach(key, samples.PNG, "image/png", "chart.png")
    again = await stored.attach(key, samples.PNG, "image/png", "other.png")
    assert first.name == again.name
    assert await stored.read(key, first.name) == (samples.PNG, "image/png")
    assert await stored.find(key, first.name) == first
    for other in (ChatKey("app", "eve", chat), ChatKey("app", user, "c2"), key._replace(app="b")):
        with pytest.raises(Unknown):
            await stored.read(other, first.name)
        with pytest.raises(Unknown):
            await stored.find(other, first.name)


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../secret", "a/b", "user:x", "metadata.json", "0" * 32 + ".png"]
)
async def test_names_of_files_of_other_chats_are_unknown(service_url: str, name: str) -> None:
    stored = ChatFiles(open_artifacts(service_url), ACCEPTED, 1_000)
    with pytest.raises(Unknown):
        await stored.read(CHAT, name)
    with pytest.raises(Unknown):
        await stored.find(CHAT, name)


async def test_a_symbolic_link_out_of_the_store_is_not_followed(tmp_path: Path) -> None:
    """Write access to the folder does not give read access to other folders."""
    stored = ChatFiles(open_artifacts(f"file:{tmp_path}/artifacts"), ACCEPTED, 1_000)
    file = await stored.attach(CHAT, samples.TEXT, "text/plain", None)
    secret = tmp_path / "secret"
    secret.mkdir()
    folder = next(path for path in (tmp_path / "artifacts").rglob(file.name) if path.is_dir())
    folder.rename(secret / file.name)
    folder.symlink_to(secret / file.name)
    with pytest.raises((Unknown, ValueError)):
        await stored.read(CHAT, file.name)


REFUSED: list[tuple[str, bytes, str, type[RequestError]]] = [
    ("one byte too many", samples.TEXT[:1] * 101, "text/plain", TooLarge),
    ("a lie about its type", samples.JPEG, "image/png", UnsupportedMediaType),
    ("a type that is not accepted", samples.BMP, "image/bmp", UnsupportedMediaType),
    ("a type nobody knows", b"\1\2", "", UnsupportedMediaType),
    ("a page", samples.HTML, "text/html", UnsupportedMediaType),
    ("a page without a type", samples.HTML, "", UnsupportedMediaType),
    ("a drawing with scripts", samples.SVG, "image/svg+xml", UnsupportedMediaType),
    ("nothing", b"", "text/plain", UnsupportedMediaType),
]


@pytest.mark.parametrize(
    ("data", "media_type", "error"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
async def test_an_invalid_attachment_is_refused_in_one_sentence(
    data: bytes, media_type: str, error: type[RequestError]
) -> None:
    stored = files(max_bytes=100)
    with pytest.raises(error, match=r"\.$"):
        await stored.attach(CHAT, data, media_type, None)
    assert await stored.service.list_artifact_keys(app_name="app", user_id="ann") == []


@pytest.mark.parametrize("size", [99, 100])
async def test_a_file_up_to_the_limit_is_accepted(size: int) -> None:
    assert (await files(max_bytes=100).attach(CHAT, b"a" * size, "text/plain", None)).size == size


@pytest.mark.parametrize("more", [-1, 0, 1])
async def test_a_file_has_at_most_20_mib_unless_configured(more: int) -> None:
    stored = files(max_bytes=EngineOptions().max_file_bytes)
    data = samples.TEXT.ljust(20 * 2**20 + more, b"\n")
    if more > 0:
        with pytest.raises(TooLarge):
            await stored.attach(CHAT, data, "text/plain", None)
    else:
        assert (await stored.attach(CHAT, data, "text/plain", None)).size == len(data)


@pytest.mark.parametrize("failing", ["save_artifact", "get_artifact_version"])
async def test_a_failing_store_raises_a_retryable_error(
    monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    stored = files()

    async def fails(_: object, **__: Any) -> int:
        raise OSError("disk-is-full")

    monkeypatch.setattr(InMemoryArtifactService, failing, fails)
    with pytest.raises(Unavailable) as caught:
        await stored.attach(CHAT, b"text", "text/plain", None)
    assert "disk" not in str(caught.value)


@pytest.mark.parametrize("failing", ["save_artifact", "get_artifact_version"])
async def test_an_effect_keeps_its_outcome_when_its_file_cannot_be_stored(
    open_stage: Open, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    runs: list[str] = []

    def draw() -> ToolResult:
        """Draw."""
        runs.append("drawn")
        return ToolResult(["It is drawn.", types.Blob(data=samples.PNG, mime_type="image/png")])

    async def fails(_: object, **__: Any) -> int:
        raise OSError("disk-is-full")

    engine = await open_stage(scripted([calls(("draw", {})), says("Done.")], [gated(draw)]))
    talk = Talk(engine)
    await talk.say("draw")
    monkeypatch.setattr(FileArtifactService, failing, fails)
    decide(part_of(talk.messages[-1], "draw"), approved=True)
    turn = await talk.post_last()

    part = part_of(turn.message, "draw")
    assert part["state"] == "output-available"
    assert "It is drawn." in str(part["output"])
    assert "could not be stored" in str(part["output"])
    assert (runs, words(turn.message)) == (["drawn"], "Done.")


async def test_an_attachment_is_sent_to_the_model_and_stays_in_history(open_stage: Open) -> None:
    prompts = Prompts()
    engine = await open_stage(scripted([says("Nice.")], before_model_callback=prompts))
    talk = Talk(engine)
    stored = await attach(engine, talk)
    shown = {key: stored[key] for key in ("url", "mediaType", "filename")}
    await talk.read(await start(engine, talk, message(shown)))
    chat = await engine.get_chat(talk.chat_id, user=talk.user)
    [file] = [part for part in chat["messages"][0]["parts"] if part["type"] == "file"]
    assert (file["url"], file["mediaType"]) == (stored["url"], "image/png")
    assert await engine.get_file(talk.chat_id, stored["name"], user="ann") == (
        samples.PNG,
        "image/png",
    )
    with pytest.raises(Unknown):
        await engine.get_file(talk.chat_id, stored["name"], user="eve")


async def test_a_file_of_another_chat_or_user_cannot_be_attached(open_stage: Open) -> None:
    engine = await open_stage(scripted([says("Nice.")]))
    theirs, mine = Talk(engine), Talk(engine)
    stored = await attach(engine, theirs)
    url = stored["url"].replace(theirs.chat_id, mine.chat_id)
    with pytest.raises(Unknown):
        await start(engine, mine, message({"url": url, "mediaType": "image/png"}))
    mallory = Talk(engine, user="mallory", chat_id=theirs.chat_id)
    with pytest.raises(Unknown):
        await start(engine, mallory, message({"url": stored["url"], "mediaType": "image/png"}))
    with pytest.raises(Unknown):
        await engine.get_chat(mine.chat_id, user="ann")


def data_url(data: bytes, media_type: str = "image/png") -> dict[str, str]:
    encoded = base64.b64encode(data).decode()
    return {"url": f"data:{media_type};base64,{encoded}", "mediaType": media_type}


async def test_a_message_is_validated_completely_before_any_of_its_files_is_stored(
    open_stage: Open, find_stored: Callable[[], list[str]]
) -> None:
    engine = await open_stage(scripted([says("Nice.")]))
    talk = Talk(engine)
    with pytest.raises(UnsupportedMediaType):
        await start(engine, talk, message(data_url(samples.PNG), data_url(samples.JPEG)))
    assert find_stored() == []
    with pytest.raises(Unknown):
        await engine.get_chat(talk.chat_id, user="ann")


async def test_files_are_deleted_with_their_chat(
    open_stage: Open, find_stored: Callable[[], list[str]]
) -> None:
    engine = await open_stage(scripted([says("Nice.")]))
    talk, other = Talk(engine), Talk(engine)
    stored = await attach(engine, talk)
    kept = await attach(engine, other)
    await talk.say("hello")
    await engine.delete_chat(talk.chat_id, user="ann")
    with pytest.raises(Unknown):
        await engine.get_file(talk.chat_id, stored["name"], user="ann")
    assert (await engine.get_file(other.chat_id, kept["name"], user="ann"))[0] == samples.PNG
    assert len(find_stored()) == 1


@pytest.fixture
def find_stored(folder: Path) -> Callable[[], list[str]]:
    """Finds the content of files in the folder of the artifact store."""
    return lambda: [
        str(path)
        for path in (folder / "artifacts").rglob("*.png")
        if path.is_file() and path.read_bytes() == samples.PNG
    ]


async def start(engine: ChatEngine, talk: Talk, said: dict[str, Any]) -> Any:
    """Send a message with files, as the page does."""
    body: dict[str, Any] = {"id": talk.chat_id, "trigger": "submit-message", "message": said}
    request = parse_chat_request(body, own_files="/api/chats/{id}/files/")
    return await engine.start(request, user=talk.user, client=talk.client)
