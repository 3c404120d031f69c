"""Connections that end while the model speaks, works or waits: no words and no results are lost."""

from __future__ import annotations

import pytest

from sluicegate.live.model_content_sender import GO_ON
from tests.engine.stage import Counted, HeldTool
from tests.live.google.conftest import OpenSite
from tests.live.google.live_api import (
    GEMINI_2_5,
    GEMINI_3_1,
    GEMINI_3_8,
    Call,
    Connection,
    Family,
    Pause,
    Say,
    Script,
)
from tests.live.google.page import words

SCRIPT: Script = {
    "Go on": [Say("upon a time.")],
    '"paid"': [Say("It is paid.")],
    '"held"': [Say("It is held.")],
    "waits for a person": [Say("I have asked you.")],
    "pay": [Call("pay", {"n": 3})],
    "hold": [Call("hold", {"n": 3})],
    "time": [Say("It is ten.")],
    "hello": [Say("Good morning.")],
}
SOUND = Say("")
INTERIM = {GEMINI_3_1: "I have asked you."}
families = pytest.mark.parametrize(
    "family", [GEMINI_2_5, GEMINI_3_1, GEMINI_3_8], ids=lambda family: family.model[7:10]
)
ends = pytest.mark.parametrize("end", ["go away", "1006", "1011"])
handles = pytest.mark.parametrize("handles", [True, False], ids=["handle", "no handle"])


async def end_connection(connection: Connection, end: str) -> None:
    """End a connection at once."""
    if end == "go away":
        await connection.go_away("5s")
    else:
        await connection.drop(int(end))


def lines(connection: Connection, text: str) -> list[str]:
    """The lines of a model's context that hold a text."""
    return [line for line in connection.context if text in line]


@families
async def test_an_answer_is_finished_before_a_connection_that_ends_later(
    open_site: OpenSite, family: Family
) -> None:
    pause = Pause()
    script = {"story": [Say("Once "), pause, Say("upon a time.")], **SCRIPT}
    site = await open_site(family, script)
    api = site.api
    async with site.page() as page:
        await page.speak("a story")
        await pause.reached.wait()
        await api.last.go_away("600s")
        pause.may_go_on.set()
        await page.until_texts("a story", "Once upon a time.")
        await api.until(lambda: len(api.connections) == 2 and api.last.setup)
        assert api.last.context == ["user: a story", "model: Once ", "model: upon a time."]
        assert words(await page.say_when_settled("What time is it?")) == "It is ten."


@ends
@families
async def test_an_answer_that_is_cut_goes_on_where_it_was(
    open_site: OpenSite, family: Family, end: str
) -> None:
    pause = Pause()
    script = {"story": [Say("Once "), SOUND, pause, Say("never")], **SCRIPT}
    site = await open_site(family, script)
    api = site.api
    async with site.page() as page:
        await page.say("hello")
        await page.speak("a story")
        await page.heard("Good", "morning.", "Once", "", "")
        await end_connection(api.last, end)
        await page.until_texts("hello", "Good morning.", "a story", "Once upon a time.")
        assert len(lines(api.last, "a story")) == len(lines(api.last, "Once")) == 1
        assert lines(api.last, "hello") == ["user: hello"]
        assert words(await page.say_when_settled("What time is it?")) == "It is ten."
    assert sum(GO_ON in each for each in api.inputs) == 1


@families
@ends
async def test_a_question_without_an_answer_is_asked_again(
    open_site: OpenSite, family: Family, end: str
) -> None:
    pause = Pause()
    site = await open_site(family, {"story": [pause, Say("Once")], **SCRIPT})
    api = site.api
    async with site.page() as page:
        await page.say("hello")
        await page.speak("a story")
        await pause.reached.wait()
        await page.stored()
        pause.may_go_on.clear()
        await end_connection(api.last, end)
        await api.until(lambda: len(api.connections) == 2)
        pause.may_go_on.set()
        await page.until_texts("hello", "Good morning.", "a story", "Once")
        assert len(lines(api.last, "a story")) == 1


@handles
@families
async def test_what_was_said_while_a_call_waits_is_known_on_the_next_connection(
    open_site: OpenSite, family: Family, *, handles: bool
) -> None:
    pay = Counted()
    site = await open_site(family, SCRIPT, [pay.tool()])
    api = site.api
    async with site.page() as page:
        await page.say("hello")
        api.sends_handles = handles
        asked = await page.say("pay")
        await page.speak("What time is it?")
        await api.until(lambda: lines(api.last, "It is ten."))
        await page.stored()
        await api.last.drop(1006)
        await api.until(lambda: len(api.connections) == 2 and lines(api.last, "It is ten."))
        assert len(lines(api.last, "What time is it?")) == 1
        assert any("call" in line and "pay" in line for line in api.last.context)
        await page.approve(asked)
        heard = INTERIM.get(family, "")
        await page.until_texts(
            *("hello", "Good morning."),
            *("pay", f"{heard}It is paid."),
            *("What time is it?", "It is ten."),
        )
    assert pay.runs == [3]
    assert sum('{"paid": 3}' in each for each in api.inputs) == 1


@ends
@families
async def test_a_result_that_was_not_answered_is_sent_again(
    open_site: OpenSite, family: Family, end: str
) -> None:
    pay, pause = Counted(), Pause()
    site = await open_site(family, {**SCRIPT, '"paid"': [pause, Say("Paid.")]}, [pay.tool()])
    api = site.api
    async with site.page() as page:
        await page.say("hello")
        asked = await page.say("pay")
        assert (await page.decide(asked)).status_code == 202
        await pause.reached.wait()
        await end_connection(api.last, end)
        await api.until(lambda: len(api.connections) == 2)
        pause.may_go_on.set()
        heard = INTERIM.get(family, "")
        await page.until_texts("hello", "Good morning.", "pay", f"{heard}Paid.")
        assert len(lines(api.last, '{"paid": 3}')) == 1
    assert pay.runs == [3]


@ends
@families
async def test_the_result_of_a_call_that_outlives_its_connection_is_sent_once(
    open_site: OpenSite, family: Family, end: str
) -> None:
    hold = HeldTool()
    site = await open_site(family, SCRIPT, [hold.tool(require_confirmation=True)])
    api = site.api
    async with site.page() as page:
        await page.say("hello")
        asked = await page.say("hold")
        assert (await page.decide(asked)).status_code == 202
        await hold.began.wait()
        await end_connection(api.last, end)
        await api.until(lambda: len(api.connections) == 2 and api.last.setup)
        hold.may_end.set()
        heard = INTERIM.get(family, "")
        await page.until_texts("hello", "Good morning.", "hold", f"{heard}It is held.")
    assert sum('{"held": 3}' in each for each in api.inputs) == 1
