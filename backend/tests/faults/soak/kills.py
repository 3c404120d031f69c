"""Processes that are killed at a point of an approval, and one that continues (F1)."""

from __future__ import annotations

import asyncio
import json
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sluicegate.engine.chat_engine import ChatEngine
from sluicegate.errors import HeldByAnotherOwner
from sluicegate.testing.message_comparison import comparable
from sluicegate.wire.ui_messages import is_tool_part
from tests.engine.talk import Talk, Turn, decide
from tests.faults.kill_points import POINTS
from tests.faults.promises import DoubleEffect, LostDecision
from tests.faults.soak.child import Child, ChildError
from tests.faults.soak.paying import Effects, card_of, payer, row_of, stored
from tests.faults.soak.stores import LEFT, Databases, opened, when_released
from tests.faults.soak.tally import Tally, failure
from tests.stores.builders import end_leases

PATIENCE: Final = 120.0
ROUND: Final = 16
"""Processes that die before one continues the chats of all of them."""

AT_ONCE: Final = 4
"""Processes that run in parallel."""

ENDINGS: Final = {
    "P0": (1, "output-available", "executed"),
    "P1": (1, "output-available", "executed"),
    "P2": (0, "output-error", "unknown"),
    "P3": (1, "output-error", "unknown"),
    "P4": (1, "output-available", "executed"),
    "P5": (1, "output-available", "executed"),
    "P6": (1, "output-available", "executed"),
    "P7": (1, "output-available", "executed"),
}
"""Final effects, the final states of the call and of its ledger row."""

_DONE_BY_DEATH: Final = ("P3", "P4", "P5", "P6", "P7")


@dataclass(frozen=True)
class Run:
    """One process that dies, and its chat."""

    point: str
    chat: str
    url: str
    folder: Path

    @property
    def page(self) -> Path:
        """The file with the client's messages when the process dies."""
        return self.folder / f"{self.chat}.json"

    def talk(self, engine: ChatEngine) -> Talk:
        """Return a client with those messages."""
        messages = json.loads(self.page.read_text()) if self.page.exists() else []
        return Talk(engine, user=self.chat, chat_id=self.chat, messages=messages)


def kill(databases: Databases, point: str, count: int) -> Tally:
    """Kill that many processes at the point and continue after each of them."""
    tally = Tally(f"kill {point}, {databases.kind}")
    while tally.runs < count:
        names = [f"chat-{secrets.token_hex(6)}" for _ in range(min(ROUND, count - tally.runs))]
        runs = [Run(point, name, databases.url(name), databases.folder) for name in names]
        tally.add(_round(databases, runs), runs=len(runs))
        for name in names if databases.is_alone else ():
            databases.drop(name)
    return tally


def _round(databases: Databases, runs: list[Run]) -> list[tuple[str, str]]:
    failures = []
    for begin in range(0, len(runs), AT_ONCE):
        for child in [Child(_kill_during_turn, run) for run in runs[begin : begin + AT_ONCE]]:
            try:
                child.wait_for_death(PATIENCE)
            except ChildError as error:
                failures.append(failure(error, runs[0].point))
    try:
        failures += Child(_continue, runs, databases.is_alone).result(PATIENCE)
    except ChildError as error:
        failures.append(failure(error, runs[0].point))
    return failures


def _effects(folder: Path) -> Effects:
    return Effects(folder / "effects")


async def _kill_during_turn(run: Run) -> None:
    plant = POINTS[run.point]
    async with opened(run.url, payer(_effects(run.folder)), run.folder) as engine:
        talk = run.talk(engine)
        if run.point not in ENDINGS:
            plant()
        await talk.say("pay")
        decide(talk.pending()[0], approved=True)
        run.page.write_text(json.dumps(talk.messages))
        plant()
        await talk.post_last()


async def _continue(runs: list[Run], is_alone: bool) -> list[tuple[str, str]]:
    if not is_alone:
        async with opened(runs[0].url, payer(_effects(runs[0].folder)), runs[0].folder) as engine:
            await end_leases(engine.resources.database, after=LEFT)
            tried = await asyncio.gather(*(_try(engine, run) for run in runs))
            return [failed for failures in tried for failed in failures]
    failures = []
    for run in runs:
        async with opened(run.url, payer(_effects(run.folder)), run.folder) as engine:
            failures += await _try(engine, run)
    return failures


async def _try(engine: ChatEngine, run: Run) -> list[tuple[str, str]]:
    try:
        await (
            _check_decided(engine, run) if run.point in ENDINGS else _check_undecided(engine, run)
        )
    except Exception as error:  # noqa: BLE001 - whatever it is, it is counted
        return [failure(error, f"{run.point} in {run.chat}")]
    return []


async def _check_decided(engine: ChatEngine, run: Run) -> None:
    """The client sends its decision again."""
    effects, talk = _effects(run.folder), run.talk(engine)
    expected, state, ledger = ENDINGS[run.point]
    if effects.counts()[run.chat] != (run.point in _DONE_BY_DEATH):
        raise DoubleEffect(f"{effects.counts()[run.chat]} effects at death")
    turn = await talk.post_last()
    count = effects.counts()[run.chat]
    if count > expected:
        raise DoubleEffect(f"{count} effects instead of {expected}")
    row, card = await row_of(talk), card_of(turn.message)
    if count < expected or row.state != ledger or card is None or card["state"] != state:
        raise LostDecision(f"{count} effects, the row is {row.state}, the card {card}")
    assert not turn.failed, "the answer ends in an error"
    if not any(part["type"] == "text" for part in turn.message["parts"]):
        raise LostDecision("the answer does not continue after the call")
    await _check_history(engine, talk, effects)


async def _check_undecided(engine: ChatEngine, run: Run) -> None:
    """The client has no approval yet; it loads the chat and decides what is pending."""
    effects, talk = _effects(run.folder), run.talk(engine)
    talk.messages = await stored(engine, talk)
    pending = talk.pending()
    for part in pending:
        decide(part, approved=True)
    if pending:
        assert not (await talk.post_last()).failed, "the answer ends in an error"
    count = effects.counts()[run.chat]
    if count > bool(pending):
        raise DoubleEffect(f"{count} effects of a call that nobody approved")
    if count < bool(pending):
        raise LostDecision("a card was answered and nothing ran")
    await _check_history(engine, talk, effects)


async def _check_history(engine: ChatEngine, talk: Talk, effects: Effects) -> None:
    """The chat continues, and its earlier messages are unchanged."""
    count, was_answered = effects.counts()[talk.chat_id], bool(talk.turns)
    assert not (await when_released(lambda: _go_on(talk))).failed, "the chat does not go on"
    messages = await stored(engine, talk)
    assert len(messages) == 4, f"{len(messages)} messages"
    if was_answered:
        assert comparable(messages[1]) == comparable(talk.messages[1]), "the history differs"
    still_open = [
        part for part in messages[1]["parts"] if is_tool_part(part) and not _has_ended(part)
    ]
    assert not still_open, f"still open: {still_open}"
    if effects.counts()[talk.chat_id] != count:
        raise DoubleEffect("an effect after the end")


async def _go_on(talk: Talk) -> Turn:
    try:
        return await talk.say("go on")
    except HeldByAnotherOwner:
        talk.messages.pop()
        raise


def _has_ended(part: Any) -> bool:
    return part["state"] in ("output-available", "output-error", "output-denied")
