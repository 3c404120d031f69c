"""Conversations of a page with Google's own client, by model family."""

from __future__ import annotations

import pytest

from tests.engine.stage import Counted
from tests.live.google.conftest import OpenSite
from tests.live.google.live_api import GEMINI_2_5, GEMINI_3_1, GEMINI_3_8, Call, Family, Say
from tests.live.google.page import state_of, words

FAMILIES = [GEMINI_2_5, GEMINI_3_1, GEMINI_3_8]
SCRIPT = {
    "waiting": [Say("I have asked you to approve it.")],
    '"paid"': [Say("It is paid.")],
    "pay": [Call("pay", {"n": 3})],
    "hello": [Say("Good morning.")],
    "time": [Say("It is ten.")],
}
families = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.model[7:10])


@families
async def test_a_typed_text_is_answered(open_site: OpenSite, family: Family) -> None:
    site = await open_site(family, SCRIPT)
    async with site.page() as page:
        assert words(await page.say("hello")) == "Good morning."
        assert words(await page.say("What time is it?")) == "It is ten."


@families
async def test_an_utterance_is_answered(open_site: OpenSite, family: Family) -> None:
    site = await open_site(family, SCRIPT)
    async with site.page() as page:
        await page.speak("hello there")
        await page.until_texts("hello there", "Good morning.")


@families
async def test_an_approved_call_runs_once_and_its_result_is_reported(
    open_site: OpenSite, family: Family
) -> None:
    pay = Counted()
    site = await open_site(family, SCRIPT, [pay.tool()])
    async with site.page() as page:
        asked = await page.say("pay")
        assert state_of(asked, "pay") == "approval-requested"
        answered = await page.approve(asked)
        assert pay.runs == [3]
        assert "It is paid." in words(answered)
        assert state_of(answered, "pay") == "output-available"
