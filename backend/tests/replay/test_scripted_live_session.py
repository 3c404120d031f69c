"""Live conversations with a script under the real Runner."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig
from google.adk.events.event import Event
from google.adk.flows.llm_flows.context._contents import _get_contents
from google.adk.models.llm_request import LlmRequest
from google.adk.sessions.database_session_service import DatabaseSessionService
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.genai import errors, types

from sluicegate.replay.script_position import read_position
from tests.replay.live_runs import APP, Talk, silence, summary_of, talk, tone
from tests.replay.live_scripts import (
    BEGUN,
    GEMINI_3,
    PAUSE,
    STORY,
    TEXT,
    Counter,
    Part,
    Pause,
    agent,
    call,
    price,
    scenario,
    script,
    sentences,
    text,
)


async def test_each_text_selects_its_response() -> None:
    model = script(scenario("tea", [text("Three.")]), scenario("bye", [text("Bye.")]))
    async with talk(agent(model), TEXT) as chat:
        for said, answer in (("tea?", "Three."), ("bye", "Bye."), ("more tea", "Three.")):
            chat.say(said)
            assert sentences(await chat.turn()) == [answer]


async def test_missing_scenarios_and_responses_are_reported_in_the_conversation() -> None:
    async with talk(
        agent(script(scenario("tea", [call("price", item="tea")])), price), TEXT
    ) as chat:
        chat.say("milk")
        answer = "The script has no scenario in which helper answers this message."
        assert sentences(await chat.turn()) == [answer]
        chat.say("tea")
        await chat.turn()
        answer = "The script has no response 2 of helper to this message."
        assert sentences(await chat.turn()) == [answer]


async def test_the_pitch_of_the_audio_selects_the_response() -> None:
    model = script(scenario("440 Hz", [text("An A.")]), scenario("523 Hz", [text("A C.")]))
    async with talk(agent(model), TEXT) as chat:
        chat.speak(tone(440) + PAUSE)
        events = await chat.turn()
        assert summary_of(events)[:3] == [
            "you: a tone o…",
            "you: f 440 Hz…",
            "you: a tone of 440 Hz",
        ]
        assert {event.author for event in events if event.input_transcription} == {"user"}
        assert sentences(events) == ["An A."]
        chat.speak(tone(523) + PAUSE)
        assert sentences(await chat.turn()) == ["A C."]


async def test_the_script_can_set_the_transcript() -> None:
    model = script(
        scenario("880 Hz", [{"heard": "Stop it"}, text("Stopped.")]),
        scenario(
            "invoice", [{"heard": "Pay the invoice"}, call("price", item="tea")], [text("Paid.")]
        ),
    )
    async with talk(agent(model, price), TEXT) as chat:
        chat.speak(tone(440) + PAUSE)
        assert "you: Pay the invoice" in summary_of(await chat.turn())
        assert sentences(await chat.turn()) == ["Paid."]
        chat.speak(tone(880) + PAUSE)
        events = await chat.turn()
        assert "you: Stop it" in summary_of(events)
        assert sentences(events) == ["Stopped."]
        chat.say("the invoice")
        await chat.turn()
        assert sentences(await chat.turn()) == ["Paid."]


async def test_marks_of_activity_and_the_end_of_the_stream_end_speech() -> None:
    model = script(scenario("440 Hz", [text("An A.")]))
    async with talk(agent(model), TEXT) as chat:
        chat.queue.send_activity_start()
        chat.speak(tone(440) + silence(2) + tone(440))
        chat.queue.send_activity_end()
        assert sentences(await chat.turn()) == ["An A."]
        chat.speak(tone(440))
        chat.queue.send_audio_stream_end()
        assert sentences(await chat.turn()) == ["An A."]


async def test_images_are_counted_in_the_transcript() -> None:
    model = script(scenario("and 2 pictures", [text("Nice.")]))
    async with talk(agent(model), TEXT) as chat:
        for _ in range(2):
            chat.queue.send_realtime(types.Blob(data=b"PNG", mime_type="image/png"))
        chat.speak(tone(440) + PAUSE)
        assert sentences(await chat.turn()) == ["Nice."]


async def test_speech_activity_is_reported_on_request() -> None:
    config = RunConfig(response_modalities=[types.Modality.TEXT], explicit_vad_signal=True)
    async with talk(agent(script(scenario("440", [text("An A.")]))), config) as chat:
        chat.speak(tone(440) + PAUSE)
        events = [event for event in await chat.turn() if event.voice_activity]
    kinds = [event.voice_activity and event.voice_activity.voice_activity_type for event in events]
    assert kinds == [
        types.VoiceActivityType.ACTIVITY_START,
        types.VoiceActivityType.ACTIVITY_END,
    ]


async def test_after_a_transfer_the_sub_agent_answers_the_users_text() -> None:
    model = script(
        scenario("pay", [text("One moment."), call("transfer_to_agent", agent_name="child")]),
        scenario("pay", [text("Paid.")], agent="child"),
    )
    child = LlmAgent(name="child", model=model, description="Pays.")
    async with talk(LlmAgent(name="boss", model=model, sub_agents=[child]), TEXT) as chat:
        chat.say("pay")
        events = await chat.until(lambda event: "Paid." in summary_of([event]))
    assert sentences(events) == ["One moment.", "Paid."]


def send_speech(chat: Talk) -> None:
    chat.speak(tone(440, seconds=0.1))


def send_text(chat: Talk) -> None:
    chat.say("stop")


def send_mark(chat: Talk) -> None:
    chat.queue.send_activity_start()


@pytest.mark.parametrize("interrupt", [send_speech, send_text, send_mark])
@pytest.mark.parametrize(
    "story", [STORY, scenario("story", [text("Once upo")], hang=True)], ids=["pausing", "hanging"]
)
async def test_the_user_interrupts_the_model(
    interrupt: Callable[[Talk], None], story: Part
) -> None:
    model = Pause().model(story, scenario("stop|440", [text("Stopped.")]))
    async with talk(agent(model), TEXT) as chat:
        chat.say("a story")
        await chat.until(lambda event: BEGUN in summary_of([event]))
        interrupt(chat)
        assert summary_of(await chat.turn()) == ["Once upo!", "usage", "complete"]
        if interrupt is not send_text:
            chat.say("stop")
        assert "Stopped." in summary_of(await chat.turn())


async def test_without_barge_in_speech_does_not_interrupt_the_model() -> None:
    realtime = types.RealtimeInputConfig(activity_handling=types.ActivityHandling.NO_INTERRUPTION)
    config = RunConfig(response_modalities=[types.Modality.TEXT], realtime_input_config=realtime)
    breath = Pause()
    model = breath.model(STORY, scenario("440", [text("An A.")]))
    async with talk(agent(model), config) as chat:
        chat.say("a story")
        await chat.until(lambda event: BEGUN in summary_of([event]))
        chat.speak(tone(440) + PAUSE)
        breath.over.set()
        assert sentences(await chat.turn()) == ["Once upon a time there was"]
        assert sentences(await chat.turn()) == ["An A."]


async def test_a_scripted_error_ends_the_run_as_a_providers_error_does() -> None:
    model = script(scenario("", [text("Well")], error={"code": 503, "message": "No room."}))
    async with talk(agent(model), TEXT) as chat:
        chat.say("go")
        with pytest.raises(errors.APIError) as caught:
            await chat.flush()
    assert (caught.value.code, caught.value.message) == (503, "No room.")


async def test_closing_the_queue_ends_the_run() -> None:
    async with talk(agent(script(scenario("", [text("Hi.")]))), TEXT) as chat:
        chat.say("go")
        await chat.turn()
        chat.queue.close()
        assert await chat.flush() == []


SPOKEN = {"transcript": {"role": "model", "text": "Hm"}}
SHOPPING = scenario(
    "tea",
    [text("One moment."), call("price", item="tea"), SPOKEN],
    [call("price", item="milk"), call("price", item="rum")],
    [text("Three.")],
)


async def test_a_new_connection_continues_with_the_history(tmp_path: Path) -> None:
    pitch = scenario("440", [{"heard": "Sing"}, {"transcript": {"role": "model", "text": "La."}}])
    helper = agent(script(pitch, SHOPPING), price)
    asked: list[object] = []
    for connection in range(3):
        sessions = DatabaseSessionService(f"sqlite+aiosqlite:///{tmp_path / 'talks.db'}")
        async with talk(helper, RunConfig(), sessions=sessions) as chat:
            if not connection:
                chat.speak(tone(440) + PAUSE)
                await chat.turn()
                chat.say("tea?")
            # The later connections answer a history that ends with a result.
            events = await chat.until(
                lambda event: event.get_function_responses() or event.turn_complete
            )
        await sessions.close()
        asked += [call.args for event in events for call in event.get_function_calls()]
    assert asked == [{"item": "tea"}, {"item": "milk"}, {"item": "rum"}]
    assert sentences(events) == ["Three."]


@pytest.mark.parametrize("name", ["scripted", GEMINI_3])
async def test_a_run_without_audio_continues_after_a_live_run(name: str) -> None:
    sessions = InMemorySessionService()
    helper = agent(script(SHOPPING, name=name), price)
    async with talk(helper, sessions=sessions) as chat:
        chat.say("tea?")
        await chat.until(lambda event: event.get_function_responses())
    session = await sessions.get_session(app_name=APP, user_id="user", session_id="chat")
    assert session is not None
    request = await prompt_of(helper, session.events)
    position = read_position(request)
    assert position.text == "tea?"
    (response,) = [
        response async for response in helper.canonical_model.generate_content_async(request)
    ]
    assert [call.args for call in response.get_function_calls()] == [
        {"item": "milk"},
        {"item": "rum"},
    ]


async def prompt_of(helper: LlmAgent, events: list[Event]) -> LlmRequest:
    """The contents that ADK builds from events for a request that is not live."""
    config = types.GenerateContentConfig(labels={"adk_agent_name": helper.name})
    return LlmRequest(contents=_get_contents(None, events, helper.name), config=config)


async def test_a_connection_that_goes_away_is_resumed_without_its_history() -> None:
    resumption = types.SessionResumptionConfig()
    config = RunConfig(response_modalities=[types.Modality.TEXT], session_resumption=resumption)
    counter = Counter()
    model = script(
        scenario("fetch", [call("fetch", item="a")], [text("Fetched.")], go_away=True),
    )
    async with talk(agent(model, counter.tool()), config) as chat:
        chat.say("fetch it")
        await chat.until(lambda event: event.live_session_resumption_update)
        counter.open["a"].set()
        assert "Fetched." in summary_of(
            await chat.until(lambda event: "Fetched." in summary_of([event]))
        )


async def test_an_invalid_resumption_handle_is_refused() -> None:
    resumption = types.SessionResumptionConfig(handle="something else")
    config = RunConfig(response_modalities=[types.Modality.TEXT], session_resumption=resumption)
    async with talk(agent(script(scenario("", [text("Hi.")]))), config) as chat:
        chat.say("go")
        with pytest.raises(errors.ClientError, match="not a script's"):
            await chat.flush()
