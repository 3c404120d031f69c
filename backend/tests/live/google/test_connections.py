"""Connections to a live model that end, and interruptions of the model."""

from __future__ import annotations

import base64

import pytest

from sluicegate.live.model_content_sender import ASKED, LISTENING
from tests.engine.stage import Counted
from tests.live.google.conftest import OpenSite
from tests.live.google.live_api import (
    GEMINI_2_5,
    GEMINI_3_1,
    GEMINI_3_8,
    SOUND,
    UNASKED,
    Call,
    Family,
    Pause,
    Say,
    Script,
)
from tests.live.google.page import state_of, words

FAMILIES = [GEMINI_2_5, GEMINI_3_1, GEMINI_3_8]
SCRIPT: Script = {
    '"paid"': [Say("It is paid.")],
    "waits for a person": [Say("I have asked you.")],
    "pay": [Call("pay", {"n": 3})],
    "time": [Say("It is ten.")],
    "hello": [Say("Good morning.")],
    "look": [Say("A cat.")],
}
PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
)
families = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.model[7:10])


@pytest.mark.parametrize("end", ["go away", "1006", "1011"])
@families
async def test_a_call_that_waits_outlives_its_connection(
    open_site: OpenSite, family: Family, end: str
) -> None:
    pay = Counted()
    site = await open_site(family, SCRIPT, [pay.tool()])
    api = site.api
    async with site.page() as page:
        await page.say("hello")
        asked = await page.say("pay")
        if end == "go away":
            await api.last.go_away()
        else:
            await api.last.drop(int(end))
        await api.until(lambda: len(api.connections) == 2 and api.last.context)
        assert api.last.context[:2] == ["user: hello", "model: Good morning."]
        answered = await page.approve(asked)
        assert pay.runs == [3]
        assert state_of(answered, "pay") == "output-available"
        assert words(answered).endswith("It is paid.")
        assert api.inputs[-1] == 'typed: Result of pay({"n": 3}): {"paid": 3}'


@families
async def test_without_a_handle_the_whole_conversation_is_sent_as_text(
    open_site: OpenSite, family: Family
) -> None:
    pay = Counted()
    site = await open_site(family, SCRIPT, [pay.tool()])
    api = site.api
    api.sends_handles = False
    async with site.page() as page:
        await page.say("hello")
        asked = await page.say("pay")
        await api.last.go_away()
        await api.until(lambda: len(api.connections) == 2 and api.last.context)
        assert api.last.context[:2] == ["user: hello", "model: Good morning."]
        assert any('[I called pay({"n": 3}).]' in line for line in api.last.context)
        assert words(await page.approve(asked)).endswith("It is paid.")
    assert pay.runs == [3]


@families
async def test_a_chat_that_is_opened_again_knows_what_became_of_its_calls(
    open_site: OpenSite, family: Family
) -> None:
    site = await open_site(family, SCRIPT, [Counted().tool()])
    async with site.page() as page:
        await page.approve(await page.say("pay"))
    async with site.page() as page:
        assert words(await page.say("hello")) == "Good morning."
        context = "\n".join(site.api.last.context)
        assert 'Result of pay: {"paid": 3}' in context
        assert ASKED not in context


@families
async def test_a_chat_that_is_opened_while_a_call_waits_says_so(
    open_site: OpenSite, family: Family
) -> None:
    site = await open_site(family, SCRIPT, [Counted().tool()])
    async with site.page() as page:
        await page.say("pay")
    async with site.page() as page:
        await page.speak("hello")
        await site.api.received("hello")
        context = "\n".join(site.api.last.context)
        assert LISTENING not in context
        assert (ASKED in context) is (family is GEMINI_3_8)


@families
async def test_a_session_is_resumable_and_its_context_is_compressed(
    open_site: OpenSite, family: Family
) -> None:
    site = await open_site(family, SCRIPT)
    site.api.context_limit = 20
    async with site.page() as page:
        for _ in range(6):
            assert words(await page.say("hello")) == "Good morning."
    assert site.api.last.setup.session_resumption is not None


@families
async def test_a_chat_does_not_resume_the_session_of_another(
    open_site: OpenSite, family: Family
) -> None:
    site = await open_site(family, SCRIPT)
    api = site.api
    async with site.page() as page:
        await page.say("hello")
        await api.last.go_away()
        await api.until(lambda: len(api.connections) == 2 and api.last.setup)
        assert api.last.setup.session_resumption.handle
    async with site.page(chat="c2") as page:
        assert words(await page.say("hello")) == "Good morning."
        assert not api.last.setup.session_resumption.handle


@families
async def test_an_interruption_ends_the_output_and_the_next_answer_is_heard(
    open_site: OpenSite, family: Family
) -> None:
    pause = Pause()
    site = await open_site(family, {"story": [Say("Once"), pause, Say("upon a time")], **SCRIPT})
    async with site.page() as page:
        await page.speak("a story")
        await pause.reached.wait()
        await page.interrupt()
        await page.client.live("interrupted")
        await page.until_texts("a story", "Once")
        pause.may_go_on.set()
        await page.speak("What time is it?")
        await page.until_texts("a story", "Once", "What time is it?", "It is ten.")


@families
async def test_a_call_after_an_interruption_gets_a_response(
    open_site: OpenSite, family: Family
) -> None:
    pause = Pause()
    script = {"story": [Say("Once"), pause, Call("pay", {"n": 3})], **SCRIPT}
    site = await open_site(family, script, [Counted().tool(gated=False)])
    async with site.page() as page:
        await page.speak("a story")
        await pause.reached.wait()
        await page.interrupt()
        await page.client.live("interrupted")
        pause.may_go_on.set()
        called = ["It is paid."] if family is GEMINI_3_1 else []
        await page.until_texts("a story", "Once", *called)
        await page.is_settled()
        await page.until_texts("a story", "Once", *called)
        assert words(await page.say("What time is it?")) == "It is ten."


@families
async def test_words_that_are_transcribed_late_stay_those_of_the_user(
    open_site: OpenSite, family: Family
) -> None:
    pause = Pause()
    site = await open_site(family, {"story": [Say("Once"), pause, Say("upon a time")], **SCRIPT})
    site.api.late_transcripts = True
    async with site.page() as page:
        await page.speak("a story")
        await pause.reached.wait()
        await page.interrupt()
        await page.client.live("interrupted")
        pause.may_go_on.set()
        await page.until_texts("a story", "Once")
        await page.is_settled()
        assert words(await page.say("What time is it?")) == "It is ten."
        await page.until_texts("a story", "Once", "What time is it?", "It is ten.")


@families
async def test_a_picture_beside_typed_text_is_seen(open_site: OpenSite, family: Family) -> None:
    site = await open_site(family, SCRIPT)
    async with site.page() as page:
        await page.say("hello")
        url = f"data:image/png;base64,{base64.b64encode(PICTURE).decode()}"
        picture = {"type": "file", "mediaType": "image/png", "url": url, "filename": "cat.png"}
        assert words(await page.say("look", picture)) == "A cat."
        assert any("image/png" in line for line in site.api.last.context)


@pytest.mark.parametrize("heard", ["typed", "spoken", "transcribed late", "interrupts"])
async def test_an_answer_to_the_history_is_not_heard(open_site: OpenSite, heard: str) -> None:
    pause = Pause()
    site = await open_site(GEMINI_2_5, SCRIPT)
    api = site.api
    async with site.page() as page:
        await page.say("hello")
    api.answers_history = heard != "transcribed late"
    api.unasked_pause = pause if heard == "interrupts" else None
    async with site.page() as page:
        if api.answers_history:
            await api.until(lambda: f"model: {UNASKED}" in api.last.context)
            # By then the server has the answer.
            await page.stored()
        api.late_transcripts = heard == "transcribed late"
        if heard == "typed":
            assert words(await page.say("What time is it?")) == "It is ten."
        else:
            await page.speak("What time is it?")
        await page.until_texts("hello", "Good morning.", "What time is it?", "It is ten.")
        await page.heard("It", "is", "ten.")
        assert page.client.audio == SOUND * 3


async def test_an_answer_to_the_history_of_a_new_session_is_not_heard(open_site: OpenSite) -> None:
    site = await open_site(GEMINI_2_5, SCRIPT, [Counted().tool()])
    api = site.api
    api.sends_handles, api.answers_history = False, True
    async with site.page() as page:
        await page.say("hello")
        asked = await page.say("pay")
        await api.last.go_away()
        await api.until(lambda: f"model: {UNASKED}" in api.last.context)
        await page.stored()
        assert words(await page.approve(asked)) == "It is paid."
        await page.until_texts("hello", "Good morning.", "pay", "It is paid.")


async def test_a_question_is_asked_again_after_an_answer_to_the_history(
    open_site: OpenSite,
) -> None:
    pause = Pause()
    site = await open_site(GEMINI_2_5, {"story": [pause, Say("Once")], **SCRIPT})
    api = site.api
    api.sends_handles, api.answers_history = False, True
    async with site.page() as page:
        await page.speak("a story")
        await pause.reached.wait()
        await page.stored()
        await api.last.go_away("5s")
        await api.until(lambda: len(api.connections) == 2)
        pause.may_go_on.set()
        await page.until_texts("a story", "Once")
