from __future__ import annotations

import asyncio

import pytest
from google.genai import errors, types

from sluicegate.replay import ScriptedModel
from tests.replay.single_responses import played, request, scripted, words


@pytest.mark.parametrize(
    ("code", "kind", "status"),
    [
        (429, errors.ClientError, "RESOURCE_EXHAUSTED"),
        (503, errors.ServerError, "UNAVAILABLE"),
        (599, errors.ServerError, "UNKNOWN"),
    ],
)
async def test_an_error_is_the_providers_and_follows_the_parts(
    code: int, kind: type[errors.APIError], status: str
) -> None:
    model = scripted({"parts": [{"text": "On"}], "error": {"code": code, "message": "No room."}})
    answer = model.generate_content_async(request(), stream=True)
    only = await anext(answer)
    assert words([only]) == ["On"]
    assert only.finish_reason is None
    with pytest.raises(kind) as caught:
        await anext(answer)
    error = caught.value
    assert (error.code, error.status, error.message) == (code, status, "No room.")


async def test_a_hanging_response_sends_its_parts_and_can_be_cancelled() -> None:
    model = scripted({"parts": [{"text": "On"}], "hang": True})
    shown = asyncio.Event()

    async def listen() -> None:
        async for response in model.generate_content_async(request(), stream=True):
            assert words([response]) == ["On"]
            shown.set()

    task = asyncio.create_task(listen())
    await shown.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_the_delays_precede_the_first_and_each_further_delta() -> None:
    log: list[str | float] = []

    async def sleep(seconds: float) -> None:
        log.append(seconds)

    script = scripted(
        {"parts": [{"text": "abc"}], "delta_chars": 1, "wait_ms": 500, "delay_ms": 20}
    )
    model = script.model_copy(update={"sleep": sleep})
    async for response in model.generate_content_async(request(), stream=True):
        log.extend(words([response]))
    assert log == [0.5, "a", 0.02, "b", 0.02, "c", "abc"]


async def test_without_streaming_there_is_no_delay_between_deltas() -> None:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    script = scripted({"parts": [{"text": "abc"}], "delta_chars": 1, "wait_ms": 500, "delay_ms": 9})
    await played(script.model_copy(update={"sleep": sleep}), stream=False)
    assert waited == [0.5]


async def test_without_a_delay_other_tasks_run_between_deltas() -> None:
    log: list[str] = []

    async def other() -> None:
        for _ in range(3):
            log.append("other")
            await asyncio.sleep(0)

    model = scripted({"parts": [{"text": "abc"}], "delta_chars": 1})
    task = asyncio.create_task(other())
    async for response in model.generate_content_async(request(), stream=True):
        log.extend(words([response]))
    await task
    assert log == ["a", "other", "b", "other", "c", "abc", "other"]


async def test_a_long_response_is_generated_while_it_is_sent() -> None:
    model = scripted({"parts": [{"text": "x" * 10_000_000}], "delta_chars": 1})
    answer = model.generate_content_async(request(), stream=True)
    assert words([await anext(answer)]) == ["x"]
    await answer.aclose()


async def test_a_missing_scenario_is_reported_in_one_sentence() -> None:
    responses = await played(scripted({}, match="^stop$"), request("go"))
    sentence = "The script has no scenario in which helper answers this message."
    assert words([responses[-1]]) == [sentence]


async def test_a_missing_response_is_reported_in_one_sentence() -> None:
    call = types.Part(function_call=types.FunctionCall(name="pay", args={}))
    spoken = request()
    spoken.contents.append(types.Content(role="model", parts=[call]))
    responses = await played(scripted({"parts": [{"text": "First."}]}), spoken)
    sentence = "The script has no response 2 of helper to this message."
    assert words([responses[-1]]) == [sentence]


SCENARIOS = {
    "scenarios": [
        {"match": "^one$", "responses": [{"parts": [{"text": "first"}]}]},
        {"match": "one", "responses": [{"parts": [{"text": "second"}]}]},
        {"match": "one", "agent": "child", "responses": [{"parts": [{"text": "child"}]}]},
        {"match": "two", "agent": "boss", "responses": [{"parts": [{"text": "boss"}]}]},
    ]
}


@pytest.mark.parametrize(
    ("root", "agent", "text", "answer"),
    [
        ("boss", "boss", "one", "first"),
        ("boss", "boss", "one more", "second"),
        ("boss", "boss", "two", "boss"),
        ("boss", "child", "one", "child"),
        ("boss", "other", "one", "The script has no scenario in which other answers this message."),
        (None, "other", "one", "first"),
        (None, "child", "one", "child"),
        (None, "child", "two", "The script has no scenario in which child answers this message."),
    ],
)
async def test_the_first_matching_scenario_is_played(
    root: str | None, agent: str, text: str, answer: str
) -> None:
    model = ScriptedModel.from_data(SCENARIOS, root=root)
    assert words((await played(model, request(text, agent)))[-1:]) == [answer]
