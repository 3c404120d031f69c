"""Calls that wait for a person while the conversation with a live model goes on."""

from __future__ import annotations

import pytest
from google.adk.tools.agent_tool import AgentTool

from tests.engine.stage import Counted, HeldTool, calls, says, scripted
from tests.live.google.conftest import OpenSite
from tests.live.google.live_api import (
    GEMINI_2_5,
    GEMINI_3_1,
    GEMINI_3_8,
    BargeIn,
    Call,
    Family,
    Say,
    Script,
)
from tests.live.google.page import words

FAMILIES = [GEMINI_2_5, GEMINI_3_1, GEMINI_3_8]
SCRIPT: Script = {
    '"paid"': [Say("It is paid.")],
    "denied": [Say("Then not.")],
    "waits for a person": [Say("I have asked you.")],
    "pay": [Call("pay", {"n": 3})],
    '"held"': [Say("It is held.")],
    "hold": [Call("hold", {"n": 3})],
    "time": [Say("It is ten.")],
    "cashier": [Call("cashier", {"request": "Pay."})],
}
INTERIM = {GEMINI_3_1: "I have asked you."}
families = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.model[7:10])


@pytest.mark.parametrize("family", [GEMINI_2_5, GEMINI_3_8], ids=lambda family: family.model[7:10])
async def test_a_call_that_the_model_cancels_is_withdrawn(
    open_site: OpenSite, family: Family
) -> None:
    pay = Counted()
    site = await open_site(family, SCRIPT, [pay.tool()])
    async with site.page() as page:
        asked = await page.say("pay")
        await site.api.last.cancel_calls()
        assert (await page.client.live("approval"))["state"] == "superseded"
        withdrawn = await page.until_state("pay", "output-denied")
        await page.speak("What time is it?")
        await page.until_texts("pay", words(withdrawn), "What time is it?", "It is ten.")
        assert (await page.decide(asked)).status_code == 409
    assert pay.runs == []


@pytest.mark.parametrize(
    ("family", "barge_in"),
    [
        (GEMINI_2_5, "answer"),
        (GEMINI_2_5, "cancel"),
        (GEMINI_3_1, "queue"),
        (GEMINI_3_1, "cancel"),
        (GEMINI_3_8, "answer"),
        (GEMINI_3_8, "cancel"),
    ],
)
async def test_words_while_a_call_waits_are_answered_in_their_own_message(
    open_site: OpenSite, family: Family, barge_in: BargeIn
) -> None:
    pay = Counted()
    site = await open_site(family, SCRIPT, [pay.tool()], barge_in=barge_in)
    async with site.page() as page:
        asked = await page.say("pay")
        await page.speak("What time is it?")
        await site.api.received("What time is it?")
        before = words((await page.stored())["messages"][1])
        if barge_in == "cancel" and family is not GEMINI_3_1:
            await page.until_state("pay", "output-denied")
            await page.until_texts("pay", before, "What time is it?", "It is ten.")
            assert pay.runs == []
            return
        await page.approve(asked)
        heard = INTERIM.get(family, "")
        await page.until_texts("pay", f"{heard}It is paid.", "What time is it?", "It is ten.")
        assert pay.runs == [3]


@families
async def test_words_are_answered_while_a_call_of_a_called_agent_waits(
    open_site: OpenSite, family: Family
) -> None:
    pay = Counted()
    cashier = scripted([calls(("pay", {"n": 3})), says("paid")], [pay.tool()])
    cashier.name, cashier.description = "cashier", "Pays."
    site = await open_site(family, SCRIPT, [AgentTool(cashier)])
    async with site.page() as page:
        asked = await page.say("cashier")
        await page.speak("What time is it?")
        await page.heard(*[*INTERIM.get(family, "").split(), "It", "is", "ten."])
        assert pay.runs == []
        await page.approve(asked)
        heard = INTERIM.get(family, "")
        await page.until_texts("cashier", f"{heard}It is paid.", "What time is it?", "It is ten.")
    assert pay.runs == [3]


@families
async def test_the_model_says_that_a_call_waits_if_it_is_told_to(
    open_site: OpenSite, family: Family
) -> None:
    pay = Counted()
    settings = {"live_announce_approvals": True}
    site = await open_site(family, SCRIPT, [pay.tool()], settings=settings)
    async with site.page() as page:
        asked = await page.say("pay")
        await site.api.received("waits for a person")
        await page.approve(asked)
        await page.until_texts("pay", "I have asked you.It is paid.")
    assert pay.runs == [3]


@families
async def test_the_outcome_of_a_running_call_that_is_cancelled_is_reported(
    open_site: OpenSite, family: Family
) -> None:
    hold = HeldTool()
    site = await open_site(family, SCRIPT, [hold.tool(require_confirmation=True)])
    async with site.page() as page:
        asked = await page.say("hold")
        assert (await page.decide(asked)).status_code == 202
        await hold.began.wait()
        await site.api.last.cancel_calls()
        hold.may_end.set()
        await site.api.received('typed: Result of hold({"n": 3}): {"held": 3}')
        held = await page.until_state("hold", "output-available")
        await page.until_texts("hold", f"{INTERIM.get(family, '')}It is held.")
        assert words(held) != "denied"
