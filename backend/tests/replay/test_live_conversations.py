"""What is said and heard live, with a script under the real Runner."""

from __future__ import annotations

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig
from google.genai import types

from tests.replay.live_scripts import (
    PAUSE,
    TEXT,
    agent,
    call,
    price,
    scenario,
    script,
    sentences,
    text,
)
from tests.replay.talking import silence, talk, told, tone


async def test_each_text_gets_its_own_answer() -> None:
    model = script(scenario("tea", [text("Three.")]), scenario("bye", [text("Bye.")]))
    async with talk(agent(model), TEXT) as chat:
        for said, answer in (("tea?", "Three."), ("bye", "Bye."), ("more tea", "Three.")):
            chat.say(said)
            assert sentences(await chat.turn()) == [answer]


async def test_what_a_script_lacks_is_said_in_the_conversation() -> None:
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


async def test_the_microphone_arrives_and_its_pitch_chooses_the_answer() -> None:
    model = script(scenario("440 Hz", [text("An A.")]), scenario("523 Hz", [text("A C.")]))
    async with talk(agent(model), TEXT) as chat:
        chat.speak(tone(440) + PAUSE)
        events = await chat.turn()
        assert told(events)[:3] == ["you: a tone o…", "you: f 440 Hz…", "you: a tone of 440 Hz"]
        assert {event.author for event in events if event.input_transcription} == {"user"}
        assert sentences(events) == ["An A."]
        chat.speak(tone(523) + PAUSE)
        assert sentences(await chat.turn()) == ["A C."]


async def test_the_script_can_say_what_was_heard() -> None:
    model = script(
        scenario("880 Hz", [{"heard": "Stop it"}, text("Stopped.")]),
        scenario(
            "invoice", [{"heard": "Pay the invoice"}, call("price", item="tea")], [text("Paid.")]
        ),
    )
    async with talk(agent(model, price), TEXT) as chat:
        chat.speak(tone(440) + PAUSE)
        assert "you: Pay the invoice" in told(await chat.turn())
        assert sentences(await chat.turn()) == ["Paid."]
        chat.speak(tone(880) + PAUSE)
        events = await chat.turn()
        assert "you: Stop it" in told(events)
        assert sentences(events) == ["Stopped."]
        chat.say("the invoice")
        await chat.turn()
        assert sentences(await chat.turn()) == ["Paid."]


async def test_activity_marks_and_the_end_of_the_stream_end_what_is_said_at_once() -> None:
    model = script(scenario("440 Hz", [text("An A.")]))
    async with talk(agent(model), TEXT) as chat:
        chat.queue.send_activity_start()
        chat.speak(tone(440) + silence(2) + tone(440))
        chat.queue.send_activity_end()
        assert sentences(await chat.turn()) == ["An A."]
        chat.speak(tone(440))
        chat.queue.send_audio_stream_end()
        assert sentences(await chat.turn()) == ["An A."]


async def test_pictures_are_counted_with_what_is_said() -> None:
    model = script(scenario("and 2 pictures", [text("Nice.")]))
    async with talk(agent(model), TEXT) as chat:
        for _ in range(2):
            chat.queue.send_realtime(types.Blob(data=b"PNG", mime_type="image/png"))
        chat.speak(tone(440) + PAUSE)
        assert sentences(await chat.turn()) == ["Nice."]


async def test_speech_is_announced_to_who_asks_for_it() -> None:
    config = RunConfig(response_modalities=[types.Modality.TEXT], explicit_vad_signal=True)
    async with talk(agent(script(scenario("440", [text("An A.")]))), config) as chat:
        chat.speak(tone(440) + PAUSE)
        events = [event for event in await chat.turn() if event.voice_activity]
    kinds = [event.voice_activity and event.voice_activity.voice_activity_type for event in events]
    assert kinds == [
        types.VoiceActivityType.ACTIVITY_START,
        types.VoiceActivityType.ACTIVITY_END,
    ]


async def test_after_a_transfer_the_child_answers_the_users_own_text() -> None:
    model = script(
        scenario("pay", [text("One moment."), call("transfer_to_agent", agent_name="child")]),
        scenario("pay", [text("Paid.")], agent="child"),
    )
    child = LlmAgent(name="child", model=model, description="Pays.")
    async with talk(LlmAgent(name="boss", model=model, sub_agents=[child]), TEXT) as chat:
        chat.say("pay")
        events = await chat.until(lambda event: "Paid." in told([event]))
    assert sentences(events) == ["One moment.", "Paid."]
