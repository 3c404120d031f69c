"""A model that replays recorded responses, under the real engine."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest
from google.adk.agents import LlmAgent
from google.adk.events.event import Event
from google.genai import types

from sluicegate.core.chat_and_turn_keys import ChatKey
from sluicegate.errors import RecordingError
from sluicegate.replay import FileRecorder, ScriptedModel, load_recording
from sluicegate.replay.normalized import normalized
from tests.agents.conformance_agent import root_agent
from tests.engine.talk import Talk
from tests.replay.live_runs import silence, summary_of, talk, tone
from tests.replay.recorded_engine import open_recording_engine


async def yes(talk: Talk) -> object:
    return await talk.approve()


async def no(talk: Talk) -> object:
    return await talk.answer(approved=False, reason="not now")


def says(text: str) -> Callable[[Talk], Awaitable[object]]:
    async def say(talk: Talk) -> object:
        return await talk.say(text, message_id=f"user-{len(talk.turns)}")

    return say


Steps = Sequence[Callable[[Talk], Awaitable[object]]]

CHATS: dict[str, Steps] = {
    "plain": [says("story:plain")],
    "thoughts": [says("story:reasoning")],
    "yes": [says("story:approval"), yes],
    "two at once": [says("story:two_in_one_step"), no],
    "one after the other": [says("story:two_in_sequence"), yes, no],
    "beside a free one": [says("story:gated_beside_ungated"), yes],
    "texts around": [says("story:text_around"), yes, yes],
    "several messages": [says("story:plain"), says("story:approval"), no, says("story:plain")],
    "the same message twice": [says("story:approval"), yes, says("story:approval"), no],
    "a failing tool": [says("story:tool_fails"), yes],
    "a failing model": [says("story:model_fails_later"), yes],
    "streamed arguments": [says("story:streamed_arguments")],
    "sources": [says("story:sources")],
    "a picture": [says("story:image")],
    "code": [says("story:code")],
}


async def played(folder: Path, steps: Steps, model: ScriptedModel | None = None) -> Path:
    agent = root_agent if model is None else root_agent.clone(update={"model": model})
    async with open_recording_engine(folder, agent) as taped:
        talk = taped.talk(chat_id="c1")
        for step in steps:
            await step(talk)
        return taped.path(talk)


@pytest.mark.parametrize("chat", CHATS)
async def test_the_same_decisions_produce_the_same_recording(chat: str, tmp_path: Path) -> None:
    first = await played(tmp_path / "first", CHATS[chat])
    model = ScriptedModel.from_recording(first)
    second = await played(tmp_path / "second", CHATS[chat], model)
    summary_of, again = (normalized(load_recording(each)).text() for each in (first, second))
    assert again == summary_of
    assert first.read_text() != second.read_text()


def price(item: str) -> dict[str, int]:
    """Ask for a price."""
    return {"price": len(item)}


LIVE = {
    "scenarios": [
        {
            "match": "440",
            "responses": [
                {
                    "parts": [
                        {"heard": "What is tea?"},
                        {"thought": "Hm."},
                        {"text": "One moment, please."},
                        {"call": {"name": "price", "args": {"item": "tea"}}},
                    ]
                },
                {"parts": [{"transcript": {"role": "model", "text": "Three."}}]},
            ],
        },
        {"match": "bye", "responses": [{"parts": [{"text": "Bye."}], "interrupted": True}]},
    ]
}


async def spoken(model: ScriptedModel, recorder: FileRecorder) -> list[str]:
    """A spoken message, whose answer calls a tool, and a typed one."""
    agent = LlmAgent(name="helper", model=model, tools=[price])
    key = ChatKey("talks", "user", "chat")
    async with talk(agent) as chat:
        chat.speak(tone(440) + silence(0.5))
        await chat.turn()
        await chat.turn()
        recorder.request(key, {"type": "send"})
        for event in chat.events:
            recorder.event(key, event)
        chat.say("bye")
        typed = types.Content(role="user", parts=[types.Part(text="bye")])
        recorder.event(key, Event(author="user", content=typed))
        for event in await chat.turn():
            recorder.event(key, event)
    recorder.flush(key)
    return [word for word in summary_of(chat.events) if not word.endswith("…")]


async def test_a_live_recording_is_repeated_live(tmp_path: Path) -> None:
    recorder = FileRecorder(tmp_path)
    first = await spoken(ScriptedModel.from_data(LIVE), recorder)
    model = ScriptedModel.from_recording(recorder.path(ChatKey("talks", "user", "chat")))
    assert await spoken(model, FileRecorder(tmp_path / "again")) == first
    assert first == [
        *("you: What is tea?", "(Hm.)", "One moment, please.", "usage", "call price"),
        *("result price", "complete", "me: Three.", "usage", "complete"),
        *("Bye.!", "usage", "complete"),
    ]


async def test_another_message_has_no_recorded_response(tmp_path: Path) -> None:
    model = ScriptedModel.from_recording(await played(tmp_path / "first", [says("story:plain")]))
    async with open_recording_engine(tmp_path, LlmAgent(name="conformance", model=model)) as taped:
        talk = taped.talk()
        for text in ("something else", "story:plain", "story:plain"):
            await talk.say(text)
    words = ["".join(p.get("text", "") for p in turn.message["parts"]) for turn in talk.turns]
    unknown = "The script has no scenario in which conformance answers this message."
    assert words[0] == words[2] == unknown
    assert words[1] != unknown


async def test_a_recording_without_a_model_response_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "empty.jsonl"
    file.write_text(
        '{"format":"sluicegate-recording","version":1,"created":"","redaction":[],'
        '"app":"demo","chat":"c1"}\n'
    )
    with pytest.raises(RecordingError, match="chat c1 holds nothing that a model said"):
        ScriptedModel.from_recording(file)
