"""The connection to the database breaks at a commit, and nobody knows whether it counts (F11)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest

from sluicegate.engine.chat_engine import ChatEngine
from sluicegate.engine.options import EngineOptions
from sluicegate.errors import RequestError, StoreError
from sluicegate.wire.messages import Part
from tests.engine.stage import Counted, calls, says, scripted
from tests.engine.talk import Talk, decide
from tests.faults.chaos import Chaos, Direction, Weather, chaos_before
from tests.real_stores.databases import fresh_database
from tests.real_stores.postgres import Postgres

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


async def insist(talk: Talk, chaos: Chaos) -> Part:
    """Answer again and again, from what the server tells, until the card has ended."""
    for _ in range(8):
        with contextlib.suppress(RequestError, StoreError):
            await talk.post_last()
        chaos.weather = Weather()
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
]


@pytest.mark.parametrize(("fault", "number"), CASES)
async def test_f11_whichever_commit_is_lost_nothing_runs_twice(
    postgres: Postgres, tmp_path: Any, fault: str, number: int
) -> None:
    counted = Counted()
    script = {"pay": [calls(("pay", {"n": 1})), says("Done.")], "go on": [says("I go on.")]}
    agent = scripted(script, [counted.tool()])
    async with fresh_database(postgres) as url, chaos_before(postgres.port) as chaos:
        through = url.replace(f":{postgres.port}/", f":{chaos.port}/")
        options = EngineOptions(sessions=through, artifacts=f"file:{tmp_path}/files", lease_ttl=1.0)
        engine = await ChatEngine.open(agent, options)
        try:
            talk = Talk(engine)
            await talk.say("pay")
            decide(talk.pending()[0], approved=True)
            chaos.weather = broken(fault, number)
            card = await insist(talk, chaos)
            runs = list(counted.runs)
            # An answer that was cut may stay without its end, but the chat goes on.
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
