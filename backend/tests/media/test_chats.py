"""Whole chats with every family: what a tool made is seen by the model, whoever it is then."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.engine.stage import words
from tests.engine.talk import Talk
from tests.media.families import NAMES, Family

if TYPE_CHECKING:
    from sluicegate.engine.chat_engine import ChatEngine
    from tests.media.conftest import Open

STORIES = [
    ("make green", "I see a green chart."),
    ("make green and red and blue", "I see a green chart; a red chart; a blue chart."),
    ("make red then blue", "I see a red chart; a blue chart."),
    ("make red and green then blue", "I see a red chart; a green chart; a blue chart."),
]


async def say(engine: ChatEngine, chat: str, text: str) -> str:
    """Say something in a chat; the words of the answer."""
    talk = Talk(engine, "progressive", chat_id=chat)
    return words((await talk.say(text)).message)


@pytest.fixture(autouse=True)
def nothing_is_refused(families: dict[str, Family]) -> Any:
    """No provider has had to answer 400."""
    for family in families.values():
        family.endpoint.refused.clear()
    yield
    assert [family.endpoint.refused for family in families.values()] == [[]] * len(families)


@pytest.mark.parametrize(("wish", "answer"), STORIES)
@pytest.mark.parametrize("name", NAMES)
async def test_a_model_sees_which_call_made_what(
    families: dict[str, Family], open_with: Open, name: str, wish: str, answer: str
) -> None:
    async with open_with(families[name].make()) as engine:
        assert await say(engine, "c1", wish) == answer


@pytest.mark.parametrize("name", NAMES)
async def test_files_are_there_after_a_restart(
    families: dict[str, Family], open_with: Open, name: str
) -> None:
    async with open_with(families[name].make()) as engine:
        await say(engine, "c1", "make green and red")
        fresh = await say(engine, "c1", "look")
    async with open_with(families[name].make()) as engine:
        assert await say(engine, "c1", "look") == fresh
    assert fresh == "In all I see a green chart; a red chart."


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


@pytest.mark.parametrize("asked_by", NAMES)
@pytest.mark.parametrize("finished_by", NAMES)
async def test_an_approval_that_waits_is_answered_under_another_model(
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
