"""Every family in every state of its connection, at every event: nothing is lost, nothing twice.

After each cell the chat goes on, a call that was approved has run once, the model knows its result,
no part is left running, and each stored message is the one that a page is sent.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from sluicegate.testing.message_comparison import comparable
from sluicegate.wire.ui_messages import UIMessage
from tests.engine.stage import HeldTool
from tests.live.google.certificates import Certificates
from tests.live.google.live_api import (
    GEMINI_2_5,
    GEMINI_3_1,
    GEMINI_3_8,
    LIMIT,
    Call,
    Family,
    LiveApi,
    Pause,
    Say,
    Script,
    Step,
    serving_live_api,
)
from tests.live.google.page import Page, Site, opened_page, serving_agent, words
from tests.live.settled import running_parts
from tests.parts import long_table

SOUND: Final = Say("")
ASKED: Final = "What time is it?"
ANSWER: Final = "It is ten."
RESULT: Final = '{"held": 3}'
SCRIPT: Final[Script] = {
    "What time": [Say(ANSWER)],
    "Go on": [Say("upon a time.")],
    "denied": [Say("Then not.")],
    '"held"': [Say("It is held.")],
    "waits for a person": [Say("I have asked you.")],
    "hold": [Call("hold", {"n": 3})],
    "hello": [Say("Good morning.")],
}

STATES: Final = (
    "before setup",
    "idle",
    "model speaking",
    "tool held",
    "tool running",
    "reconnecting",
)
EVENTS: Final = (
    "goAway",
    "cut",
    "cancellation",
    "user interrupts",
    "yes",
    "no",
    "new text",
    "stop",
    "take-over",
    "server stop",
)
LEAVES: Final = ("take-over", "server stop")
"""Events that leave the rest of an answer to the model for turns, which no test serves."""

ENDS_OUTPUT: Final = ("user interrupts", "stop", *LEAVES)
"""Events after which the model need not finish what it says."""

OF_A_SESSION: Final = ("goAway", "cancellation")
"""Messages of the model, which come after the setup."""

CELLS: Final = [
    pytest.param(family, state, event, id=f"{family.model[7:10]}-{state}-{event}")
    for family, state, event in itertools.product(
        (GEMINI_2_5, GEMINI_3_1, GEMINI_3_8), STATES, EVENTS
    )
    if not (state in ("before setup", "reconnecting") and event in OF_A_SESSION)
]


@dataclass
class Cell:
    """A chat that is open live, and what a test holds back of the model and the tool."""

    api: LiveApi
    certificates: Certificates
    folder: Path
    stack: contextlib.AsyncExitStack
    hold: HeldTool = field(default_factory=HeldTool)
    pause: Pause = field(default_factory=Pause)
    page: Page | None = None
    asked: UIMessage | None = None
    """The message with the card."""
    stopping: asyncio.Task[httpx.Response] | None = None
    """A request to stop, which lasts as long as a call that executes."""
    _serving: contextlib.AsyncExitStack | None = None
    _site: Site | None = None

    async def serve(self) -> None:
        """Start the server."""
        self._serving = await self.stack.enter_async_context(contextlib.AsyncExitStack())
        tool = self.hold.tool(require_confirmation=True)
        serving = serving_agent(self.api, [tool], self.folder)
        self._site = await self._serving.enter_async_context(serving)

    async def open(self, *, ready: bool = True) -> Page:
        """Open the chat, in place of an earlier page."""
        assert self._serving is not None
        assert self._site is not None
        opened = opened_page(self._site, ready=ready)
        self.page = await self._serving.enter_async_context(opened)
        return self.page

    async def restart(self) -> None:
        """Stop the server, whose calls end, and start it again."""
        assert self._serving is not None
        stopping = asyncio.create_task(self._serving.aclose())
        await asyncio.sleep(0)
        self.release()
        await stopping
        await self.serve()

    def release(self) -> None:
        """Let the model and the tool go on."""
        self.api.may_set_up.set()
        self.pause.may_go_on.set()
        self.hold.may_end.set()


@contextlib.asynccontextmanager
async def cell_of(family: Family, certificates: Certificates, folder: Path) -> AsyncIterator[Cell]:
    """A cell without a page."""
    pause = Pause()
    story: list[Step] = [Say("Once "), SOUND, pause, Say("upon a time.")]
    api = LiveApi(family, {"story": story, **SCRIPT})
    async with contextlib.AsyncExitStack() as stack:
        await stack.enter_async_context(serving_live_api(api, certificates))
        cell = Cell(api, certificates, folder, stack, pause=pause)
        await cell.serve()
        yield cell
    assert api.violations == []


async def enter(cell: Cell, state: str) -> None:
    """Bring a chat into a state."""
    api = cell.api
    if state == "before setup":
        api.may_set_up.clear()
        await cell.open(ready=False)
        await api.until(lambda: api.connections and api.last.setup)
        return
    page = await cell.open()
    assert words(await page.say("hello")) == "Good morning."
    if state == "model speaking":
        await page.speak("a story")
        await cell.pause.reached.wait()
        await page.heard("Good", "morning.", "Once", "", "")
    elif state != "idle":
        cell.asked = await page.say("hold")
        if not api.family.non_blocking:
            # A cancellation and the interim response would cross.
            await api.received("waits for a person")
    if state == "tool running":
        await decide(cell, approved=True)
        await cell.hold.began.wait()
    elif state == "reconnecting":
        api.may_set_up.clear()
        await api.last.drop(1006)
        await api.until(lambda: len(api.connections) == 2 and api.last.setup)


async def happen(cell: Cell, state: str, event: str) -> None:
    """Let an event happen."""
    page, last = cell.page, cell.api.last
    assert page is not None
    match event:
        case "goAway":
            await last.go_away("5s")
        case "cut":
            await last.drop(1006)
        case "cancellation":
            await last.cancel_calls()
        case "user interrupts":
            await page.interrupt()
        case "yes" | "no":
            await decide(cell, approved=event == "yes")
        case "new text":
            await page.try_to_say(ASKED)
        case "stop":
            stop = page.http.post(f"/api/chat/{page.chat}/stop")
            cell.stopping = asyncio.create_task(stop)
            await asyncio.wait([cell.stopping], timeout=0 if state == "tool running" else None)
        case "take-over":
            await cell.open(ready=False)
        case "server stop":
            await cell.restart()


async def decide(cell: Cell, *, approved: bool) -> None:
    """Decide the card, or an approval that there is not."""
    page = cell.page
    assert page is not None
    if cell.asked is not None:
        response = await page.decide(cell.asked, approved=approved)
        assert response.status_code in (202, 409)
    else:
        path = "/api/approvals/none"
        assert (await page.http.post(path, json={"approved": approved})).status_code == 404


def runs_of(family: Family, state: str, event: str) -> int:
    """How often the tool runs when everything that waits is approved in the end."""
    if state == "tool running":
        return 1
    if state not in ("tool held", "reconnecting") or event in ("no", "new text", "stop"):
        return 0
    is_cancelled = event == "cancellation" and family is not GEMINI_3_1
    return 0 if is_cancelled else 1


@long_table
@pytest.mark.parametrize(("family", "state", "event"), CELLS)
async def test_a_chat_goes_on(
    certificates: Certificates,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    family: Family,
    state: str,
    event: str,
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates.authority))
    monkeypatch.setenv("NO_PROXY", "localhost,127.0.0.1")
    async with asyncio.timeout(LIMIT), cell_of(family, certificates, tmp_path) as cell:
        await enter(cell, state)
        await happen(cell, state, event)
        cell.release()
        if cell.stopping is not None:
            assert (await cell.stopping).status_code == 204
        if event == "server stop" or (state, event) == ("before setup", "cut"):
            await cell.open()
        page = cell.page
        assert page is not None
        await page.is_ready()
        await page.is_decided()
        assert words(await page.say_when_settled(ASKED)).endswith(ANSWER)
        assert cell.hold.ended == runs_of(family, state, event)
        chat = await page.stored()
        assert running_parts(chat) == []
        assert [each["id"] for each in chat["messages"]] == list(
            dict.fromkeys(each["id"] for each in chat["messages"])
        )
        for message in chat["messages"]:
            if message["role"] == "assistant":
                assert comparable(await page.resumed(message["id"])) == comparable(message)
        ran = cell.hold.ended == 1
        check_result(cell, chat, ran=ran)
        if event not in LEAVES:
            answers = "".join(words(message) for message in chat["messages"])
            assert answers.count("It is held.") == int(ran), answers
        if state == "model speaking":
            check_answer(chat, event)


def check_result(cell: Cell, chat: dict[str, Any], *, ran: bool) -> None:
    """The card and the model have the result of a call that ran, and of no other."""
    parts = [
        part["state"]
        for message in chat["messages"]
        for part in message["parts"]
        if part["type"] == "tool-hold"
    ]
    assert parts == ([] if cell.asked is None else ["output-available" if ran else "output-denied"])
    told = [line for line in cell.api.last.context if RESULT in line]
    assert len(told) == int(ran), told


def check_answer(chat: dict[str, Any], event: str) -> None:
    """An answer that was begun has its question, and its end unless the user has ended it."""
    texts = [words(message) for message in chat["messages"]]
    assert texts.count("a story") == 1
    answer = texts[texts.index("a story") + 1]
    if event in ENDS_OUTPUT:
        assert answer in ("Once ", "Once upon a time.")
    else:
        assert answer == "Once upon a time."
