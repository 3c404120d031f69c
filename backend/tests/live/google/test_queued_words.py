"""Words that a live model keeps waiting: each answer stands in the message of its own words."""

from __future__ import annotations

import asyncio

import pytest
from google.adk.agents.run_config import RunConfig
from google.genai import types

from tests.engine.stage import Counted, HeldTool
from tests.live.google.conftest import OpenSite
from tests.live.google.live_api import (
    GEMINI_2_5,
    GEMINI_3_1,
    GEMINI_3_8,
    LIMIT,
    Call,
    Family,
    Pause,
    Say,
    Script,
)

SCRIPT: Script = {
    '"paid"': [Say("It is paid.")],
    '"held"': [Say("It is held.")],
    "pay": [Call("pay", {"n": 3})],
    "hold": [Call("hold", {"n": 3})],
    "time": [Say("It is ten.")],
    "day": [Say("It is Monday.")],
}
NO_INTERRUPTION = RunConfig(
    realtime_input_config=types.RealtimeInputConfig(
        activity_handling=types.ActivityHandling.NO_INTERRUPTION
    )
)
asynchronous = pytest.mark.parametrize(
    "family", [GEMINI_2_5, GEMINI_3_8], ids=lambda family: family.model[7:10]
)


@asynchronous
async def test_words_that_wait_for_the_result_of_a_call_are_answered_after_it(
    open_site: OpenSite, family: Family
) -> None:
    pay = Counted()
    site = await open_site(family, SCRIPT, [pay.tool()], barge_in="queue")
    async with site.page() as page:
        for _ in range(2):
            asked = await page.say_when_settled("pay")
            count = len(site.api.inputs)
            await page.speak("What time is it?")
            await site.api.until(lambda count=count: len(site.api.inputs) > count)
            await page.approve(asked)
        once = ["pay", "It is paid.", "What time is it?", "It is ten."]
        await page.until_texts(*once, *once)
    assert pay.runs == [3, 3]


@asynchronous
async def test_words_that_wait_while_a_call_runs_are_answered_after_its_result(
    open_site: OpenSite, family: Family
) -> None:
    hold = HeldTool()
    site = await open_site(family, SCRIPT, [hold.tool(), Counted().tool()], barge_in="queue")
    async with site.page() as page:
        await page.speak("hold")
        await hold.began.wait()
        await page.speak("What time is it?")
        await site.api.received("What time is it?")
        # By then the server has the transcript.
        await page.stored()
        hold.may_end.set()
        await page.until_texts("hold", "It is held.", "What time is it?", "It is ten.")


async def test_words_are_one_message_if_the_result_of_a_call_comes_in_the_middle_of_them(
    open_site: OpenSite,
) -> None:
    pay, pause = Counted(), Pause()
    site = await open_site(GEMINI_2_5, SCRIPT, [pay.tool()], barge_in="queue")
    async with site.page() as page:
        asked = await page.say("pay")
        site.api.transcript_pause = pause
        await page.speak("What time is it?")
        await pause.reached.wait()
        await page.decide(asked)
        async with asyncio.timeout(LIMIT):
            while not pay.runs:
                await page.stored()
        # By then the server has the result, which it sends after the words.
        await page.stored()
        pause.may_go_on.set()
        await page.until_texts("pay", "It is paid.", "What time is it?", "It is ten.")


@pytest.mark.parametrize("family", [GEMINI_3_1, GEMINI_3_8], ids=lambda family: family.model[7:10])
async def test_utterances_during_an_answer_that_goes_on_are_answered_one_by_one(
    open_site: OpenSite, family: Family
) -> None:
    pause = Pause()
    script = {"story": [Say("Once"), pause, Say("upon a time.")], **SCRIPT}
    site = await open_site(family, script, live=NO_INTERRUPTION)
    async with site.page() as page:
        await page.speak("a story")
        await pause.reached.wait()
        await page.speak("What time is it?")
        await page.speak("What day is it?")
        await site.api.received("What day is it?")
        pause.may_go_on.set()
        await page.until_texts(
            *("a story", "Onceupon a time."),
            *("What time is it?", "It is ten."),
            *("What day is it?", "It is Monday."),
        )
