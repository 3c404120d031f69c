"""A simulated user: decides approvals in some order, reloads, stops, sends text."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any, Literal

import pytest

from sluicegate.core.release.policies import ReleasePolicy
from sluicegate.engine.chat_engine import ChatEngine
from sluicegate.errors import AlreadyDecided, WouldForgetEffect
from sluicegate.testing.send_automatically_when import RULES
from sluicegate.wire.ui_messages import Part, UIMessage, is_tool_part, tool_name
from tests.engine.talk import decide
from tests.properties.client_tab import Tab, check_same
from tests.properties.example_agent import CLIENT, EFFECTS, HANGING
from tests.properties.random_scripts import Answers

Action = Literal[
    "answer", "again", "twice", "contradict", "reload", "stop", "text", "half, stop", "half, text"
]
ACTIONS: tuple[Action, ...] = (
    *("answer",) * 4,
    "again",
    "twice",
    "contradict",
    "reload",
    "stop",
    "text",
    "half, stop",
    "half, text",
)
Afterwards = Literal["nothing", "ask again", "regenerate"]


@dataclass(frozen=True)
class Habits:
    """How a user uses a client."""

    release: ReleasePolicy
    major: Literal[6, 7]
    other_major: Literal[6, 7]
    rule: str
    decisions: tuple[bool, ...]
    backwards: bool
    actions: tuple[Action, ...]
    afterwards: Afterwards = "nothing"


@dataclass
class SimulatedUser:
    """Has one conversation; every response is checked as it comes."""

    engine: ChatEngine
    habits: Habits
    text: str
    tab: Tab = field(init=False)
    answers: Answers = field(init=False)
    closed: Literal["no", "stop", "text"] = "no"
    automatic: int = 0
    cards: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        habits = self.habits
        self.tab = Tab(self.engine, habits.release, habits.major, habits.other_major)
        self.answers = Answers(defaultdict(list), {})
        self._decisions: Iterator[bool] = cycle(self.habits.decisions)
        self._actions: Iterator[Action] = iter(self.habits.actions)
        self._told: set[str] = set()

    @property
    def message(self) -> UIMessage:
        return self.tab.message

    @property
    def chat(self) -> str:
        return self.tab.talk.chat_id

    async def converse(self) -> None:
        """Send a text and continue until nothing is open or the user has left."""
        self.tab.talk.messages.append(_question("question", self.text))
        await self.tab.respond({"message": self.message})
        await self._continue()

    async def ask_again(self, *, is_over: bool) -> None:
        """Send the question again: an answer that is over is repeated, a cut one made anew."""
        answer = self.tab.talk.messages.pop()
        effects = list(EFFECTS[self.chat])
        if not is_over:
            await self._begin_again({"message": self.message}, answer)
            return
        await self.tab.respond({"message": self.message}, is_repeat=True)
        assert self.message["id"] == answer["id"]
        check_same(answer, self.message, major=self.habits.major, resumed=self.habits.major == 6)
        assert EFFECTS[self.chat] == effects

    async def regenerate(self) -> None:
        """Regenerate the answer."""
        answer = self.tab.talk.messages.pop()
        await self._begin_again({"message": self.message, "trigger": "regenerate-message"}, answer)

    async def _begin_again(self, body: dict[str, Any], answer: UIMessage) -> None:
        effects = EFFECTS.pop(self.chat, [])
        if any(tool in ("pay", "pay_slowly", "breaks") for tool, _ in effects):
            with pytest.raises(WouldForgetEffect):
                await self.tab.talk.start(body)
            EFFECTS[self.chat] = effects
            self.tab.talk.messages.append(answer)
            return
        for text, number in [key for key in HANGING if key[0] == self.text]:
            HANGING[text, number] = asyncio.Event()
        try:
            await self.tab.respond(body)
        except WouldForgetEffect:
            # A call of ``maybe`` or ``asks`` that a user had allowed.
            EFFECTS[self.chat] = effects
            self.tab.talk.messages.append(answer)
            return
        assert self.message["id"] != answer["id"]
        self.answers = Answers(defaultdict(list), {})
        self.closed, self.automatic, self.cards = "no", 0, set()
        await self._continue()

    async def _continue(self) -> None:
        while self._open() and self.closed == "no":
            await self._do(next(self._actions, "answer"))

    async def _do(self, action: Action) -> None:
        match action:
            case "stop":
                await self._interrupt()
            case "text":
                await self._interrupt(by_text=True)
            case "half, stop" | "half, text":
                await self._answer(self._open()[:1])
                if self._open():
                    await self._interrupt(by_text=action.endswith("text"))
            case "contradict":
                await self._answer(self._open())
                await self._contradict()
            case "reload":
                stored = await self.tab.talk.history()
                assert stored["id"] == self.message["id"]
                self.tab.talk.messages[-1] = stored
                await self._answer(self._open())
            case "again" | "twice" | "answer":
                await self._answer(self._open(), then=action)

    def _open(self) -> list[Part]:
        parts = [part for part in self.message["parts"] if is_tool_part(part)]
        found = [part for part in parts if part["state"] == "approval-requested"]
        found.extend(part for part in parts if self._is_browsers(part))
        return found[::-1] if self.habits.backwards else found

    def _is_browsers(self, part: Part) -> bool:
        """A call the browser may run; a gated one only after its approval reached the server."""
        if tool_name(part) not in CLIENT or part.get("providerExecuted"):
            return False
        approval = part.get("approval", {})
        is_approved = part["state"] == "approval-responded" and approval.get("approved") is True
        return part["state"] == "input-available" or (is_approved and approval["id"] in self._told)

    async def _answer(self, parts: list[Part], then: Action = "answer") -> None:
        """Act on approvals and calls in turn; send when the client's rule applies or at the end."""
        names = [part["toolCallId"] for part in parts]
        unsent = False
        for name in names:
            part = next((p for p in self.message["parts"] if p.get("toolCallId") == name), None)
            if part is None or part["state"].startswith("output-"):
                continue
            self.cards.add(f"{name} {part['state']}")
            if part["state"] == "approval-requested":
                decide(part, approved=next(self._decisions), reason="for a reason")
            else:
                self._give_output(part)
            unsent = not (self.habits.rule == "each" or self._wants())
            if not unsent:
                await self._send(then, automatic=self.habits.rule != "each")
        if unsent:
            await self._send(then)

    def _wants(self) -> bool:
        rule = RULES.get(self.habits.rule)
        return rule is not None and rule(self.message)

    def _give_output(self, part: Part) -> None:
        n = int(part["input"]["n"])
        output = ({"at": n}, f"place {n}", None)[n % 3]
        self.answers.outputs[tool_name(part), n] = output
        if output is None:
            part["state"], part["errorText"] = "output-error", "no place"
        else:
            part["state"], part["output"] = "output-available", output

    async def _send(self, then: Action = "answer", *, automatic: bool = False) -> None:
        before = deepcopy(self.message)
        self.automatic += automatic
        self._note_decisions()
        body = {"message": before, "messageId": before["id"]}
        if then == "twice":
            turn = await self.tab.respond_twice(body)
        else:
            turn = await self.tab.respond(body)
        if then == "again" and not turn.failed:
            await self.tab.repeat(before)
        if not turn.failed and self._wants():
            await self._send(automatic=True)

    def _note_decisions(self) -> None:
        for part in self.message["parts"]:
            approval = part.get("approval")
            if approval is None or "approved" not in approval or approval["id"] in self._told:
                continue
            self._told.add(approval["id"])
            self.answers.said[_requested_call(part)].append(approval["approved"])

    async def _contradict(self) -> None:
        decided = [p for p in self.message["parts"] if "approved" in p.get("approval", {})]
        if not decided:
            return
        stored = await self.tab.talk.history()
        contradiction = deepcopy(self.message)
        part = next(
            p for p in contradiction["parts"] if p.get("toolCallId") == decided[0]["toolCallId"]
        )
        part["state"] = "approval-responded"
        part["approval"]["approved"] = not part["approval"]["approved"]
        with pytest.raises(AlreadyDecided):
            await self.tab.talk.start({"message": contradiction, "messageId": contradiction["id"]})
        assert await self.tab.talk.history() == stored

    async def _interrupt(self, *, by_text: bool = False) -> None:
        if not by_text:
            self.closed = "stop"
            await self.engine.stop(self.chat, user=self.tab.talk.user)
            return
        self.closed = "text"
        self.tab.talk.messages.append(_question("question-2", "another"))
        await self.tab.respond({"message": self.message})


def _question(name: str, text: str) -> UIMessage:
    return {"id": name, "role": "user", "parts": [{"type": "text", "text": text}]}


def _requested_call(part: Part) -> tuple[str, int]:
    """Tool and number of the call of an approval request."""
    if tool_name(part) == "adk_request_confirmation":
        original = part["input"]["originalFunctionCall"]
        return original["name"], int(original["args"]["n"])
    return tool_name(part), int(part["input"]["n"])
