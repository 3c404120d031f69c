"""Two processes that act on the same chat at once (F3, F4, F5)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import socket
from collections.abc import Coroutine
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, Literal

from sluicegate.engine.chat_engine import ChatEngine
from sluicegate.errors import (
    AlreadyDecided,
    HeldByAnotherOwner,
    RequestError,
    Superseded,
    TurnRunning,
)
from sluicegate.testing.message_comparison import comparable
from tests.engine.talk import Talk, decide
from tests.faults.promises import DoubleEffect, LostDecision
from tests.faults.soak.child import Child, ChildError
from tests.faults.soak.paying import Effects, card_of, payer, row_of, stored
from tests.faults.soak.stores import Databases, opened
from tests.faults.soak.tally import Tally, failure

PATIENCE: Final = 120.0
"""Seconds that a race may take, besides those for each chat."""

PATIENCE_FOR_EACH: Final = 10.0
AT_ONCE: Final = 6
"""Chats in which the two processes race concurrently."""

TOOL_SECONDS: Final = 0.3

Rival = Literal["approve", "deny", "new text"]
"""The action of the second process while the first one approves."""

TITLES: Final[dict[Rival, str]] = {
    "approve": "two approvals",
    "deny": "approve and deny",
    "new text": "approve and new text",
}


@dataclass
class Answer:
    """The result of one side: the name of an error, or the message and whether it failed."""

    error: str = ""
    failed: bool = False
    message: Any = None

    @property
    def went_on(self) -> bool:
        """Whether the request was accepted and the answer completed."""
        return not self.error and not self.failed


def race(databases: Databases, rival: Rival, delay: float, count: int) -> Tally:
    """Let two processes act, the second one that many seconds after the first."""
    tally = Tally(f"{TITLES[rival]}, {delay * 1000:.0f} ms, {databases.kind}")
    left, right = socket.socketpair()
    url = databases.url(f"race-{secrets.token_hex(4)}")
    sides = [
        Child(_first, (left, right), databases, url, _Plan(rival, delay, count)),
        Child(_second, (right, left), databases, url),
    ]
    left.close()
    right.close()
    try:
        tally.add(sides[0].result(PATIENCE + PATIENCE_FOR_EACH * count), runs=count)
        sides[1].result(60)
    except ChildError as error:
        tally.add([failure(error, tally.case)], runs=count)
    return tally


@dataclass(frozen=True)
class _Plan:
    rival: Rival
    delay: float
    count: int


@dataclass
class _Other:
    """The other process, as seen by the first one."""

    writer: asyncio.StreamWriter
    answers: dict[str, asyncio.Future[Answer]] = field(default_factory=dict)

    def ask(self, talk: Talk, rival: Rival, at: float) -> asyncio.Future[Answer]:
        said = {"chat": talk.chat_id, "messages": talk.messages, "rival": rival, "at": at}
        self.writer.write(json.dumps(said).encode() + b"\n")
        return self.answers.setdefault(talk.chat_id, asyncio.get_running_loop().create_future())

    async def listen(self, reader: asyncio.StreamReader) -> None:
        async for line in reader:
            said = json.loads(line)
            self.answers[said.pop("chat")].set_result(Answer(**said))


async def _first(
    pipe: tuple[socket.socket, socket.socket], databases: Databases, url: str, plan: _Plan
) -> list[tuple[str, str]]:
    effects = Effects(databases.folder / "effects")
    agent = payer(effects, seconds=TOOL_SECONDS)
    reader, writer = await _connected(*pipe)
    other = _Other(writer)
    ready = other.answers["ready"] = asyncio.get_running_loop().create_future()
    listening = asyncio.create_task(other.listen(reader))
    places = asyncio.Semaphore(AT_ONCE)
    async with opened(url, agent, databases.folder, shared=True) as engine:
        # The other one opens its engine now: at once, without the lock, one would find the file
        # locked in which the other makes its tables.
        writer.write(b"\n")
        await ready

        async def one() -> list[tuple[str, str]]:
            async with places:
                return await _try(engine, other, plan, effects)

        raced = await asyncio.gather(*(one() for _ in range(plan.count)))
        writer.close()
        listening.cancel()
    return [failed for failures in raced for failed in failures]


async def _connected(
    own: socket.socket, other: socket.socket
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    # A fork holds both ends; as long as it holds the other one too it never sees it closed.
    other.close()
    return await asyncio.open_unix_connection(sock=own, limit=2**24)


async def _try(
    engine: ChatEngine, other: _Other, plan: _Plan, effects: Effects
) -> list[tuple[str, str]]:
    name = f"chat-{secrets.token_hex(6)}"
    talk = Talk(engine, user=name, chat_id=name)
    try:
        await talk.say("pay")
        at = asyncio.get_running_loop().time() + 0.02
        theirs = other.ask(talk, plan.rival, at + plan.delay)
        mine = await _answer(replace(talk, messages=deepcopy(talk.messages)), "approve", at)
        await _check_race(talk, plan.rival, mine, await theirs, effects)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is counted
        return [failure(error, name)]
    return []


async def _second(
    pipe: tuple[socket.socket, socket.socket], databases: Databases, url: str
) -> None:
    agent = payer(Effects(databases.folder / "effects"), seconds=TOOL_SECONDS)
    reader, writer = await _connected(*pipe)
    tasks = set()
    await reader.readline()
    async with opened(url, agent, databases.folder, shared=True) as engine:
        writer.write(json.dumps({"chat": "ready"}).encode() + b"\n")

        async def follow(said: dict[str, Any]) -> None:
            talk = Talk(engine, user=said["chat"], chat_id=said["chat"], messages=said["messages"])
            answer = await _answer(talk, said["rival"], said["at"])
            writer.write(json.dumps({"chat": said["chat"], **vars(answer)}).encode() + b"\n")

        with contextlib.suppress(ConnectionError):
            async for line in reader:
                task = asyncio.create_task(follow(json.loads(line)))
                tasks.add(task)
                task.add_done_callback(tasks.discard)


async def _answer(talk: Talk, rival: Rival, at: float) -> Answer:
    """Act at a time of the clock that both processes share."""
    for part in talk.pending():
        decide(part, approved=rival == "approve")
    doing = partial(talk.say, "go on") if rival == "new text" else talk.post_last
    # Two processes cannot wait for one event.
    await asyncio.sleep(at - asyncio.get_running_loop().time())
    return await _told(doing())


async def _told(doing: Coroutine[Any, Any, Any]) -> Answer:
    try:
        turn = await doing
    except RequestError as error:
        return Answer(error=type(error).__name__)
    return Answer(failed=turn.failed, message=turn.message)


async def _check_race(
    talk: Talk, rival: Rival, mine: Answer, theirs: Answer, effects: Effects
) -> None:
    """Check for at most one effect, one decision, and a history that both sides agree with."""
    count = effects.counts()[talk.chat_id]
    row, messages = await row_of(talk), await stored(talk.engine, talk)
    if count > 1 or (count and row.answer is not True):
        raise DoubleEffect(f"{count} effects, the row is {row.state} and answered {row.answer}")
    card = card_of(messages[1])
    assert card is not None
    match rival:
        case "approve":
            _both_approved(count, row.state, card)
            assert mine.went_on, f"the first one got {mine}"
            assert theirs.went_on, f"the second one got {theirs}"
            assert comparable(theirs.message) == comparable(messages[1]), (
                "the second process received another message"
            )
        case "deny":
            won = mine if row.answer else theirs
            lost = theirs if row.answer else mine
            assert won.went_on, f"who won got {won}"
            assert lost.error == AlreadyDecided.__name__, f"who lost got {lost}"
            state = "executed" if row.answer else "denied"
            if (row.state, count) != (state, int(bool(row.answer))):
                raise LostDecision(f"{count} effects, the row is {row.state}")
        case "new text":
            closed = (Superseded.__name__, AlreadyDecided.__name__)
            refused = (TurnRunning.__name__, HeldByAnotherOwner.__name__)
            assert mine.error in ("", *closed), f"who approved got {mine}"
            assert theirs.error in ("", *refused), f"who wrote got {theirs}"
            if row.state not in ("executed", "superseded") or count != (row.state == "executed"):
                raise LostDecision(f"{count} effects, the row is {row.state}")
            ended = ("output-available", "output-denied", "output-error")
            assert card["state"] in ended, f"the card is {card['state']}"


def _both_approved(count: int, state: str, card: Any) -> None:
    if (count, state, card["state"]) != (1, "executed", "output-available"):
        raise LostDecision(f"{count} effects, the row is {state}, the card {card['state']}")
