"""The events of a live response, as ADK builds them from the provider's messages."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig
from google.adk.events.event import Event
from google.genai import types

from tests.replay.live_runs import Talk, summary_of, talk
from tests.replay.single_responses import scripted

AUDIO, TEXT = types.Modality.AUDIO, types.Modality.TEXT


async def spoken(*parts: Mapping[str, object], **more: object) -> list[Event]:
    return await _turn({"parts": [*parts], **more}, RunConfig(response_modalities=[AUDIO]))


async def written(*parts: Mapping[str, object], **more: object) -> list[Event]:
    return await _turn({"parts": [*parts], **more}, RunConfig(response_modalities=[TEXT]))


async def _turn(response: Mapping[str, object], config: RunConfig) -> list[Event]:
    agent = LlmAgent(name="helper", model=scripted(response))
    async with talk(agent, config) as chat:
        chat.say("go")
        return await chat.turn()


END = ["usage", "complete"]


async def test_text_arrives_in_deltas_and_then_complete() -> None:
    events = await written({"text": "Hello "}, {"text": "there"}, delta_chars=4)
    assert summary_of(events) == ["Hell…", "o …", "ther…", "e…", "usage", "Hello there", "complete"]
    assert len({event.id for event in events}) == len(events)


async def test_a_thought_is_complete_before_the_text_begins() -> None:
    events = await written({"thought": "Hmm."}, {"text": "Yes."})
    assert summary_of(events) == ["(Hmm.)…", "(Hmm.)", "Yes.…", "usage", "Yes.", "complete"]


async def test_audio_arrives_in_chunks_of_pcm_with_its_transcript() -> None:
    events = await spoken(
        {"audio": {"tone_hz": 500, "seconds": 0.1}},
        {"transcript": {"role": "model", "text": "Hello you"}},
    )
    expected = ["audio 40", "audio 40", "audio 20", "me: Hello yo…", "me: u…", "me: Hello you"]
    assert summary_of(events) == expected + END
    blobs = [
        part.inline_data
        for event in events
        for part in (event.content.parts if event.content else None) or []
    ]
    assert {blob.mime_type for blob in blobs if blob} == {"audio/pcm;rate=24000"}


async def test_a_text_connection_gets_transcripts_as_text_and_no_audio() -> None:
    audio = {"audio": {"tone_hz": 500, "seconds": 0.1}}
    events = await written(audio, {"transcript": {"role": "model", "text": "Hello"}})
    assert summary_of(events) == ["Hello…", "usage", "Hello", "complete"]


async def test_transcripts_are_sent_on_request_only() -> None:
    config = RunConfig(
        response_modalities=[AUDIO], output_audio_transcription=None, input_audio_transcription=None
    )
    words: list[Mapping[str, object]] = [
        {"transcript": {"role": role, "text": "Hello"}} for role in ("user", "model")
    ]
    assert summary_of(await _turn({"parts": words}, config)) == END


async def test_calls_arrive_at_the_end_of_their_turn_in_one_event() -> None:
    call = {"call": {"name": "adk_none", "args": {"n": 1}, "id": "one"}}
    other = {"call": {"name": "adk_none", "args": {"n": 2}}}
    agent = LlmAgent(name="helper", model=scripted({"parts": [call, {"text": "So."}, other]}))
    async with talk(agent, RunConfig(response_modalities=[TEXT])) as chat:
        chat.say("go")
        events = await chat.until(lambda event: event.get_function_calls())
    assert summary_of(events) == ["So.…", "So.", "usage", "call adk_none", "call adk_none"]
    first, second = events[-1].get_function_calls()
    assert (first.id, first.args, second.args) == ("one", {"n": 1}, {"n": 2})
    assert (second.id or "").startswith("call-")


async def test_images_code_and_sources_arrive_as_the_provider_sends_them() -> None:
    events = await written(
        {"image": {"media_type": "image/png", "base64": "aGk="}},
        {"code": {"code": "1 + 1", "result": "2"}},
        {"source": {"uri": "https://example.org", "title": "Example"}},
    )
    assert summary_of(events) == [
        "image/png",
        "code",
        "code",
        "sources",
        "usage",
        "sources",
        "complete",
    ]


async def test_usage_and_the_finish_reason_are_reported() -> None:
    usage = {"prompt": 12, "output": 9, "reasoning": 2, "cached": 5}
    events = await written({"text": "No."}, usage=usage, finish="SAFETY")
    (told_usage,) = [event.usage_metadata for event in events if event.usage_metadata]
    assert told_usage.prompt_token_count == 12
    assert told_usage.candidates_token_count == 9
    assert told_usage.thoughts_token_count == 2
    assert told_usage.cached_content_token_count == 5
    assert told_usage.total_token_count == 23
    reason = events[-1].turn_complete_reason
    assert reason is types.TurnCompleteReason.GENERATED_CONTENT_SAFETY


async def test_a_scripted_interruption_ends_the_turn_and_keeps_the_text() -> None:
    events = await written({"text": "Well, so"}, interrupted=True)
    assert summary_of(events) == ["Well, so…", "Well, so!", "usage", "complete"]


async def test_an_interruption_of_audio_is_an_event_of_its_own() -> None:
    audio = {"audio": {"tone_hz": 500, "seconds": 0.02}}
    assert summary_of(await spoken(audio, interrupted=True)) == ["audio 20", "interrupted", *END]


@pytest.mark.parametrize("name", ["scripted", "gemini-3.1-flash-live-preview"])
async def test_an_empty_response_is_a_turn(name: str) -> None:
    model = scripted({}).model_copy(update={"model": name})
    async with talk(LlmAgent(name="helper", model=model)) as chat:
        chat.say("go")
        assert summary_of([e for e in await chat.turn() if e.usage_metadata or e.turn_complete])[
            0
        ] == ("usage")


async def test_the_delays_precede_the_first_and_each_further_message() -> None:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    response = {"parts": [{"text": "abc"}], "delta_chars": 1, "wait_ms": 500, "delay_ms": 20}
    model = scripted(response).model_copy(update={"sleep": sleep})
    chat: Talk
    async with talk(LlmAgent(name="helper", model=model)) as chat:
        chat.say("go")
        await chat.turn()
    assert waited == [0.5, 0.02, 0.02, 0.02]
