"""Chats that move between a live model and a text model, each of which refuses the other's work."""

from __future__ import annotations

import itertools
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.agents.llm_agent import LlmAgent
from google.adk.models.google_llm import Gemini
from pydantic import Field

from sluicegate.engine.chat_engine import ChatEngine
from sluicegate.engine.options import EngineOptions
from sluicegate.engine.timeouts_and_intervals import EngineTimings
from sluicegate.replay import ScriptedModel
from sluicegate.replay.scenario import parse_scenarios
from sluicegate.wire.live_frames import ReadyFrame
from tests.engine.stage import calls, words
from tests.engine.talk import Talk
from tests.live.caller import Caller, agree, calling, spoken_response
from tests.media.conftest import close, connected
from tests.media.making import maker
from tests.stores.builders import LIMIT, PATIENT

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from google.adk.models.base_llm_connection import BaseLlmConnection
    from google.adk.models.llm_request import LlmRequest

    from tests.media.families import Family

LIVE_ONLY = ["gemini-3.8-live", "gemini-2.5-flash-native-audio-preview-12-2025"]
SCRIPT = {
    "make": [calls(("make", {"kind": "string"})), spoken_response("Made.")],
    "": [spoken_response("I am back.")],
}


class LiveGemini(Gemini):
    """A Gemini whose turns go over HTTP, and whose live connections play a script."""

    script: ScriptedModel = Field(exclude=True)
    connected: list[tuple[str, str]] = Field(default_factory=list, exclude=True)
    """The name of the model of each connection, and the texts of its history."""

    @asynccontextmanager
    async def connect(self, llm_request: LlmRequest) -> AsyncIterator[BaseLlmConnection]:
        parts = [part for content in llm_request.contents for part in content.parts or []]
        texts = " / ".join(part.text for part in parts if part.text)
        self.connected.append((llm_request.model or "", texts))
        async with self.script.connect(llm_request) as connection:
            yield connection


def gemini(name: str, family: Family) -> LiveGemini:
    scenarios = [{"match": match, "responses": said} for match, said in SCRIPT.items()]
    model = LiveGemini(
        model=name,
        base_url=family.endpoint.url,
        client_kwargs={"api_key": "none"},
        script=ScriptedModel(scenarios=parse_scenarios({"scenarios": scenarios})),
    )
    connected(model)
    return model


@pytest.fixture
def family(families: dict[str, Family]) -> Any:
    """The endpoint of Gemini; a test leaves it without refusals."""
    found = families["gemini-3"]
    found.endpoint.refused.clear()
    yield found
    assert found.endpoint.refused == []


@asynccontextmanager
async def serving(own: LiveGemini, folder: Path, **options: Any) -> AsyncIterator[ChatEngine]:
    """An engine whose one agent has a gated tool."""
    sessions = f"sqlite+aiosqlite:///{folder}/sluicegate.db"
    chosen = EngineOptions(sessions=sessions, artifacts=f"file:{folder}/files", **options)
    agent = LlmAgent(name="maker", model=own, tools=[maker(gated=True)])
    timings = EngineTimings(decision=LIMIT, database=PATIENT)
    engine = await ChatEngine.open(agent, chosen, timings=timings)
    try:
        yield engine
    finally:
        await engine.close()
        await close(own)


@pytest.mark.parametrize("name", LIVE_ONLY)
async def test_a_text_message_to_a_live_only_model_is_answered_by_the_text_model(
    family: Family, folder: Path, name: str
) -> None:
    async with serving(gemini(name, family), folder) as engine:
        talk = Talk(engine, "progressive")
        await talk.say("make string")
        turn = await talk.approve()
        assert words(turn.message).startswith("I see words")
        assert turn.message["metadata"]["model"] == "gemini-3.5-flash"
        await agree(Caller(engine, "progressive", chat_id=talk.chat_id, messages=talk.messages))


@pytest.mark.parametrize(
    ("name", "via"),
    [
        *itertools.product(LIVE_ONLY, ["the page", "the inbox"]),
        (LIVE_ONLY[0], "another live chat"),
    ],
)
async def test_an_approval_after_the_live_chat_is_finished_by_the_text_model(
    family: Family, folder: Path, name: str, via: str
) -> None:
    model = gemini(name, family)
    async with serving(model, folder) as engine:
        caller = await left_with_a_card(engine)
        talk = Talk(engine, "progressive", chat_id=caller.chat_id, messages=caller.messages)
        if via == "the page":
            await talk.approve()
        elif via == "the inbox":
            approval = caller.pending()[0]["approval"]["id"]
            yes = {"approved": True}
            await engine.approvals.decide(approval, yes, user=talk.user, via="test")
            # It may have ended already.
            for turn in engine.resources.turns.running_turns():
                await turn.done.wait()
        else:
            async with calling(caller):
                await caller.approve()
        assert words(await talk.history()).startswith("I see words")
        assert model.connected[0][0] == name


async def test_a_live_chat_goes_on_with_what_the_text_model_has_said(
    family: Family, folder: Path
) -> None:
    model = gemini(LIVE_ONLY[0], family)
    async with serving(model, folder) as engine:
        caller = await left_with_a_card(engine)
        talk = Talk(engine, "progressive", chat_id=caller.chat_id, messages=caller.messages)
        await talk.approve()
        async with calling(caller) as again:
            await again.frame(ReadyFrame, 2)
            turn = await again.say("hello again")
            assert words(turn.message) == "I am back."
        assert "I see words" in model.connected[-1][1]


async def left_with_a_card(engine: ChatEngine) -> Caller:
    """The caller of a live chat that was left while its card waited."""
    caller = Caller(engine, "progressive")
    async with calling(caller):
        await caller.frame(ReadyFrame)
        await caller.say("make string")
        assert len(caller.pending()) == 1
    return caller


async def test_a_voice_chat_with_a_text_model_connects_to_the_live_model_of_its_backend(
    family: Family, folder: Path
) -> None:
    model = gemini("gemini-3.5-flash", family)
    async with serving(model, folder) as engine, calling(Caller(engine)) as caller:
        await caller.frame(ReadyFrame)
        assert [name for name, _ in model.connected] == ["gemini-3.8-live"]


CHOSEN = [
    ({"live_model": "gemini-3.1-flash-live-preview"}, "gemini-3.1-flash-live-preview"),
    ({"live_models": {"maker": "gemini-3.8-live-x"}, "live_model": "none"}, "gemini-3.8-live-x"),
    ({"model": "gemini-2.5-flash"}, "gemini-3.8-live"),
    ({"model": "gemini-2.5-flash-native-audio"}, "gemini-2.5-flash-native-audio"),
]


@pytest.mark.parametrize(("options", "name"), CHOSEN)
async def test_settings_choose_the_live_model(
    family: Family, folder: Path, options: dict[str, Any], name: str
) -> None:
    model = gemini("gemini-3.8-live", family)
    async with serving(model, folder, **options) as engine, calling(Caller(engine)) as caller:
        await caller.frame(ReadyFrame)
        assert [name for name, _ in model.connected] == [name]
