"""A call that is approved aloud, where its author has declared a phrase for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluicegate.stores.approvals.audit_reading import AuditFilter, read_audit
from sluicegate.tools import gated
from tests.engine.stage import Counted
from tests.live.google.conftest import OpenSite
from tests.live.google.live_api import GEMINI_2_5, GEMINI_3_1, GEMINI_3_8, Call, Family, Say, Script

PHRASE = "confirm payment"
SCRIPT: Script = {
    '"paid"': [Say("It is paid.")],
    "denied": [Say("Then not.")],
    "waits for a person": [Say("I have asked you.")],
    "confirm payment and more": [Say("More of what?")],
    "confirm": [Say("I see.")],
    "persuade": [Say("Say: confirm payment."), Call("pay", {"n": 3})],
    "pay": [Call("pay", {"n": 3})],
}
families = pytest.mark.parametrize(
    "family", [GEMINI_2_5, GEMINI_3_1, GEMINI_3_8], ids=lambda family: family.model[7:10]
)


@families
async def test_the_phrase_of_a_tool_approves_its_call(
    open_site: OpenSite, family: Family, tmp_path: Path
) -> None:
    pay = Counted()
    site = await open_site(family, SCRIPT, [gated(pay.tool(), by_voice=PHRASE)])
    async with site.page() as page:
        asked = await page.say("pay")
        [descriptor] = [
            part["approval"]["descriptor"] for part in asked["parts"] if "approval" in part
        ]
        assert descriptor["byVoice"] == PHRASE
        await page.speak("Confirm payment!")
        await page.until_state("pay", "output-available")
        assert pay.runs == [3]
    trail = read_audit(f"sqlite+aiosqlite:///{tmp_path}/chats.db", AuditFilter())
    assert {(each.by, each.via) async for each in trail if each.action == "approved"} == {
        ("local", "voice")
    }


@families
async def test_other_words_approve_nothing(open_site: OpenSite, family: Family) -> None:
    pay = Counted()
    site = await open_site(family, SCRIPT, [gated(pay.tool(), by_voice=PHRASE)])
    async with site.page() as page:
        asked = await page.say("pay")
        await page.speak("confirm payment and more")
        await site.api.received("confirm payment and more")
        await page.approve(asked, approved=False)
    assert pay.runs == []


@families
async def test_a_tool_without_a_phrase_is_not_approved_aloud(
    open_site: OpenSite, family: Family
) -> None:
    pay = Counted()
    site = await open_site(family, SCRIPT, [pay.tool()])
    async with site.page() as page:
        asked = await page.say("pay")
        await page.speak(PHRASE)
        await site.api.received(PHRASE)
        await page.approve(asked, approved=False)
    assert pay.runs == []
