"""Connections to the database that break at a commit, with an unknown result (F11)."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from sluicegate.engine.chat_engine import ChatEngine
from sluicegate.engine.options import EngineOptions
from sluicegate.engine.timeouts_and_intervals import EngineTimings
from sluicegate.errors import RequestError, StoreError
from sluicegate.wire.ui_messages import Part
from tests.engine.stage import Counted, calls, says, scripted
from tests.engine.talk import Talk, decide
from tests.faults.chaos import Chaos, Direction, Weather, chaos_before
from tests.real_stores.databases import fresh_database
from tests.real_stores.postgres import Postgres
from tests.stores.builders import PATIENT, end_leases

ENDED = ("output-available", "output-error", "output-denied")
Judge = Callable[[Direction, bytes], bool]


def at_commit(number: int, way: Direction) -> Judge:
    """Whether a piece is the commit of that number, on its way to the database or back."""
    seen = 0

    def is_it(goes: Direction, piece: bytes) -> bool:
        nonlocal seen
        seen += goes == way and b"COMMIT" in piece
        return goes == way and b"COMMIT" in piece and seen == number

    return is_it


def broken(fault: str, number: int) -> Weather:
    if fault == "swallowed reply":
        return Weather(swallows=at_commit(number, "down"))
    is_it = at_commit(number, "up" if fault == "lost commit" else "down")
    return Weather(spares=lambda way, piece: not is_it(way, piece))


class Moves:
    """Our single-statement transactions, recognized by their SQL.

    The first bytes of a connection have to be seen, since a statement is named only once.
    """

    def __init__(self) -> None:
        self._names: set[bytes] = set()
        self._lost: int | None = None
        self._way: Direction = "up"
        self.seen = 0
        self._is_due = False

    def lose(self, number: int, way: Direction) -> None:
        """Break the connection at the next transition of that number, or at its reply."""
        self._lost, self._way = number, way

    def __call__(self, goes: Direction, piece: bytes) -> bool:
        """Whether a piece is forwarded."""
        if goes == "down":
            is_reply = self._is_due and piece.startswith(_BOUND)
            self._is_due = self._is_due and not is_reply
            return not is_reply
        for name, sql in _NAMED.findall(piece):
            if sql.startswith((b"WITH moved", b"INSERT INTO sluicegate_leases")):
                self._names.add(name)
        if self._lost is None or not any(name in self._names for name in _USED.findall(piece)):
            return True
        self.seen += 1
        is_it = self.seen == self._lost
        self._is_due = is_it and self._way == "down"
        return not (is_it and self._way == "up")


_BOUND = b"2\x00\x00\x00\x04"
_NAMED = re.compile(rb"P.{4}(__asyncpg_stmt_\w+__)\x00(.*?)\x00", re.DOTALL)
_USED = re.compile(rb"B.{4}\x00(__asyncpg_stmt_\w+__)\x00", re.DOTALL)


async def decide_until_done(talk: Talk, chaos: Chaos) -> Part:
    """Decide again, from the stored messages, until the call has ended."""
    for _ in range(8):
        with contextlib.suppress(RequestError, StoreError):
            await talk.post_last()
        chaos.weather = Weather()
        # A lease whose reply was lost has an owner who does not know of it; the client waits.
        await end_leases(talk.engine.resources.database, after=5.0)
        chat = await talk.engine.get_chat(talk.chat_id, user=talk.user)
        talk.messages = chat["messages"]
        [card] = [part for part in talk.messages[-1]["parts"] if "approval" in part]
        if card["state"] in ENDED:
            return card
        for part in talk.pending():
            decide(part, approved=True)
    pytest.fail("the exchange never ends")


CASES = [
    *(("lost commit", number) for number in range(1, 9)),
    *(("lost reply", number) for number in range(1, 9)),
    *(("swallowed reply", number) for number in (1, 3)),
    # Decision, lease, claim, outcome.
    *(("lost move", number) for number in range(1, 5)),
    *(("lost reply of a move", number) for number in range(1, 5)),
]


@pytest.mark.parametrize(("fault", "number"), CASES)
async def test_f11_nothing_runs_twice_when_any_commit_is_lost(
    postgres: Postgres, tmp_path: Any, fault: str, number: int
) -> None:
    counted = Counted()
    script = {"pay": [calls(("pay", {"n": 1})), says("Done.")], "go on": [says("I go on.")]}
    agent = scripted(script, [counted.tool()])
    async with fresh_database(postgres) as url, chaos_before(postgres.port) as chaos:
        moves = Moves()
        chaos.weather = Weather(spares=moves)
        through = url.replace(f":{postgres.port}/", f":{chaos.port}/")
        # A busy machine renews its leases in time.
        options = EngineOptions(
            sessions=through, artifacts=f"file:{tmp_path}/files", lease_ttl=60.0
        )
        # Only a reply that never comes is noticed by a limit.
        noticing = replace(PATIENT, command=10.0, response=10.0)
        database = noticing if fault == "swallowed reply" else PATIENT
        engine = await ChatEngine.open(agent, options, timings=EngineTimings(database=database))
        try:
            talk = Talk(engine)
            await talk.say("pay")
            decide(talk.pending()[0], approved=True)
            if "move" in fault:
                moves.lose(number, "down" if "reply" in fault else "up")
            else:
                chaos.weather = broken(fault, number)
            card = await decide_until_done(talk, chaos)
            assert "move" not in fault or moves.seen >= number
            runs = list(counted.runs)
            # An interrupted answer may stay without its end, but the chat continues.
            assert not (await talk.say("go on")).failed
        finally:
            await engine.close()
    assert counted.runs == runs
    if card["state"] == "output-available":
        assert runs == [1]
    elif "Not run" in card["errorText"]:
        assert runs == []
    else:
        assert "unknown" in card["errorText"]
        assert len(runs) <= 1
