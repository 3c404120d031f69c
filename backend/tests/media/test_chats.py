"""Complete chats with every family, in which the model changes."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.artifacts.file_artifact_service import FileArtifactService

from sluicegate.core.grammar import Grammar
from sluicegate.testing.message_comparison import comparable
from sluicegate.wire.chunks import DataChunk
from sluicegate.wire.ui_messages import is_tool_part
from tests.engine.stage import words
from tests.engine.talk import Talk, Turn, check
from tests.media import samples
from tests.media.families import NAMES, Family
from tests.parts import long_table

if TYPE_CHECKING:
    from sluicegate.engine.chat_engine import ChatEngine
    from sluicegate.wire.ui_messages import UIMessage
    from tests.media.conftest import Open

STORIES = [
    ("make green", "I see a green chart."),
    ("make green and red and blue", "I see a green chart; a red chart; a blue chart."),
    ("make red then blue", "I see a red chart; a blue chart."),
    ("make red and green then blue", "I see a red chart; a green chart; a blue chart."),
    ("make answer and mcp then blue", "I see application/pdf; image/jpeg; a blue chart."),
]


async def say(engine: ChatEngine, chat: str, text: str) -> str:
    """Say something in a chat; the words of the answer."""
    talk = Talk(engine, "progressive", chat_id=chat)
    return words((await talk.say(text)).message)


@pytest.fixture(autouse=True)
def no_refusals(families: dict[str, Family]) -> Any:
    """No provider has had to answer 400."""
    for family in families.values():
        family.endpoint.refused.clear()
    yield
    assert [family.endpoint.refused for family in families.values()] == [[]] * len(families)


@long_table
@pytest.mark.parametrize(("wish", "answer"), STORIES)
@pytest.mark.parametrize("name", NAMES)
async def test_a_model_sees_which_call_returned_each_file(
    families: dict[str, Family], open_with: Open, name: str, wish: str, answer: str
) -> None:
    async with open_with(families[name].make()) as engine:
        assert await say(engine, "c1", wish) == answer


@pytest.mark.parametrize("name", NAMES)
async def test_files_survive_a_restart(
    families: dict[str, Family], open_with: Open, folder: Path, name: str
) -> None:
    async with open_with(families[name].make()) as engine:
        await say(engine, "c1", "make green and red")
        fresh = await say(engine, "c1", "look")
    async with open_with(families[name].make()) as engine:
        assert await say(engine, "c1", "look") == fresh
    assert fresh == "In all I see a green chart; a red chart."
    database = stored(folder)
    for colour in ("green", "red"):
        picture = samples.chart(colour)
        assert picture[50:90] not in database
        assert base64.b64encode(picture)[40:80] not in database


async def test_a_chat_goes_through_all_families_and_back(
    families: dict[str, Family], open_with: Open
) -> None:
    seen: list[str] = []
    route = ["gemini-3", "gemini-2", "openai", "claude", "gemini-3"]
    colours = ["red", "blue", "green", "purple", "orange"]
    for name, colour in zip(route, colours, strict=True):
        seen.append(f"a {colour} chart")
        async with open_with(families[name].make()) as engine:
            wish = f"make {colour} and jpeg"
            assert await say(engine, "c1", wish) == f"I see a {colour} chart; image/jpeg."
            seen.append("image/jpeg")
            assert await say(engine, "c1", "look") == f"In all I see {'; '.join(seen)}."


@pytest.mark.parametrize(
    ("asked_by", "finished_by"),
    [*zip(NAMES, NAMES, strict=True), *zip(NAMES, [*NAMES[1:], NAMES[0]], strict=True)],
)
async def test_an_open_approval_is_decided_under_another_model(
    families: dict[str, Family], open_with: Open, asked_by: str, finished_by: str
) -> None:
    async with open_with(families[asked_by].make(), gated=True) as engine:
        talk = Talk(engine)
        await talk.say("make green and red")
        assert len(talk.pending()) == 2
    async with open_with(families[finished_by].make(), gated=True) as engine:
        talk.engine = engine
        turn = await talk.approve()
    assert words(turn.message) == "I see a green chart; a red chart."
    assert [part["type"] for part in turn.message["parts"]].count("file") == 2


def file_part(data: bytes, media_type: str, name: str) -> dict[str, Any]:
    """A file as a stock client posts it."""
    encoded = base64.b64encode(data).decode()
    url = f"data:{media_type};base64,{encoded}"
    return {"type": "file", "url": url, "mediaType": media_type, "filename": name}


async def attach(engine: ChatEngine, *files: dict[str, Any], text: str = "look") -> Turn:
    """Send files with a text, if any."""
    talk = Talk(engine, "progressive", chat_id="c1")
    parts = [*files, *([{"type": "text", "text": text}] if text else [])]
    return await talk.post({"message": {"id": "u1", "role": "user", "parts": parts}})


GREEN = file_part(samples.chart("green"), "image/png", "green.png")
REPORT = file_part(samples.PDF, "application/pdf", "report.pdf")
SOUND = file_part(samples.WAV, "audio/wav", "hello.wav")
NOTES = file_part(samples.TEXT, "text/plain", "notes.txt")


@pytest.mark.parametrize("name", NAMES)
async def test_an_attachment_is_sent_to_the_model_and_stored_once(
    families: dict[str, Family], open_with: Open, folder: Path, name: str
) -> None:
    async with open_with(families[name].make()) as engine:
        turn = await attach(engine, GREEN, REPORT, GREEN)
        chat = await engine.get_chat("c1", user="ann")
    assert words(turn.message) == "In all I see a green chart; application/pdf; a green chart."
    shown = [part for part in chat["messages"][0]["parts"] if part["type"] == "file"]
    assert [part["filename"] for part in shown] == ["green.png", "report.pdf", "green.png"]
    assert shown[0]["url"] == shown[2]["url"]
    assert len([path for path in (folder / "artifacts").rglob("*.png") if path.is_file()]) == 1
    database = stored(folder)
    assert base64.b64decode(GREEN["url"].partition(",")[2])[:40] not in database
    assert GREEN["url"][30:90].encode() not in database


def stored(folder: Path) -> bytes:
    """Everything in the database."""
    return b"".join(path.read_bytes() for path in folder.glob("sluicegate.db*"))


@pytest.mark.parametrize("name", NAMES)
async def test_a_text_file_is_sent_to_every_model(
    families: dict[str, Family], open_with: Open, name: str
) -> None:
    async with open_with(families[name].make()) as engine:
        await attach(engine, NOTES)
    sent = json.dumps(families[name].endpoint.last, ensure_ascii=False)
    assert "naïve text" in sent
    assert "notes.txt" in sent


@pytest.mark.parametrize("name", NAMES)
async def test_a_message_may_consist_of_files(
    families: dict[str, Family], open_with: Open, name: str
) -> None:
    async with open_with(families[name].make()) as engine:
        await say(engine, "c1", "look")
        turn = await attach(engine, GREEN, text="")
        bare = await attach(engine, SOUND, text="")
    assert words(turn.message) == "In all I see a green chart."
    assert words(bare.message).startswith("In all I see a green chart")


async def test_model_and_user_are_informed_of_a_file_that_is_left_out(
    families: dict[str, Family], open_with: Open
) -> None:
    async with open_with(families["claude"].make()) as engine:
        turn = await attach(engine, SOUND, GREEN)
    sentence = "this model does not read files of the type audio/wav"
    assert words(turn.message) == "In all I see a green chart."
    assert sentence in json.dumps(families["claude"].endpoint.last)
    notices = [c for c in turn.chunks if isinstance(c, DataChunk) and c.type == "data-notice"]
    assert [notice.data for notice in notices] == [
        {"text": f'The model was not given the file "hello.wav": {sentence}.'}
    ]
    assert all(notice.transient for notice in notices)
    assert not any(part["type"].startswith("data-") for part in turn.message["parts"])


@pytest.mark.parametrize("name", ["gemini-3", "claude"])
async def test_files_of_tools_are_in_the_results_and_in_the_history(
    families: dict[str, Family], open_with: Open, name: str
) -> None:
    async with open_with(families[name].make(), gated=True) as engine:
        talk = Talk(engine, "deferred")
        first = await talk.say("make green then red")
        second = await talk.approve()
        last = await talk.approve()
        assert "file" not in first.types + second.types
        assert last.types.count("file") == 2
        outputs = [index for index, kind in enumerate(last.types) if "output" in kind]
        assert last.types.index("file") > max(outputs)
        check(last.chunks, Grammar({p["toolCallId"]: p["state"] for p in tools(second.message)}))
    async with open_with(families[name].make(), gated=True) as engine:
        chat = await engine.get_chat(talk.chat_id, user="ann")
        assert comparable(chat["messages"][-1]) == comparable(last.message)
        for part in chat["messages"][-1]["parts"]:
            if part["type"] == "file":
                stored = await engine.get_file(
                    talk.chat_id, part["url"].rpartition("/")[2], user="ann"
                )
                assert stored[1] == part["mediaType"] == "image/png"


def tools(message: UIMessage) -> list[dict[str, Any]]:
    """The tool parts of a message."""
    return [part for part in message["parts"] if is_tool_part(part)]


async def test_a_file_is_read_once_per_turn(
    families: dict[str, Family], open_with: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    original = FileArtifactService.load_artifact

    async def counting(self: FileArtifactService, **more: Any) -> Any:
        read.append(more["filename"])
        return await original(self, **more)

    monkeypatch.setattr(FileArtifactService, "load_artifact", counting)
    async with open_with(families["gemini-3"].make()) as engine:
        await say(engine, "c1", "make green then red then blue then green")
        await say(engine, "c1", "look")
    assert len(read) == len(set(read)) == 3
