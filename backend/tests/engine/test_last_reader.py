"""What becomes of a turn when its last reader leaves (section 7 and ``abort``)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.engine.talk import Talk

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

    from sluicegate.engine.chat_engine import ChatEngine
    from sluicegate.engine.turn.reader import TurnReader
    from sluicegate.engine.turn.runner import RunningTurn

    Open = Callable[..., AbstractAsyncContextManager[ChatEngine]]

SOON, NEVER = 0.01, 3600.0
PATIENCE = 10.0


async def begun(talk: Talk) -> TurnReader:
    """A reader of a turn that speaks and then hangs for ever."""
    question = {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "story:stop"}]}
    return await talk.start({"message": question})


def turn_of(talk: Talk) -> RunningTurn:
    running = talk.engine._parts.turns.running(talk.engine._key(talk.user, talk.chat_id))
    assert running is not None
    return running


@pytest.mark.parametrize("aborted", [True, False])
async def test_a_turn_is_stopped_after_the_time_that_its_last_reader_leaves_it(
    open_engine: Open, *, aborted: bool
) -> None:
    times = {"abort_grace": SOON, "linger": NEVER} if aborted else {"linger": SOON}
    async with open_engine(**times) as engine:
        talk = Talk(engine)
        reader = await begun(talk)
        running = turn_of(talk)
        await reader.aclose(aborted=aborted)
        async with asyncio.timeout(PATIENCE):
            await running.done.wait()
        assert running.failure is None
        chat = await engine.get_chat(talk.chat_id, user=talk.user)
        assert chat["status"] == "ready"


async def test_an_abort_is_nothing_while_somebody_else_reads(open_engine: Open) -> None:
    async with open_engine(abort_grace=SOON, linger=NEVER) as engine:
        talk = Talk(engine)
        reader = await begun(talk)
        other = await engine.resume(talk.chat_id, user=talk.user, client=talk.client)
        assert other is not None
        await reader.aclose(aborted=True)
        running = turn_of(talk)
        assert (running.readers, running.lingering) == (1, None)
        await other.aclose()
        assert running.lingering is not None


async def test_who_comes_back_in_time_keeps_the_turn(open_engine: Open) -> None:
    async with open_engine(abort_grace=0.05, linger=NEVER) as engine:
        talk = Talk(engine)
        await (await begun(talk)).aclose(aborted=True)
        again = await engine.resume(talk.chat_id, user=talk.user, client=talk.client)
        assert again is not None
        running = turn_of(talk)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await running.done.wait()
        await again.aclose(aborted=True)
        async with asyncio.timeout(PATIENCE):
            await running.done.wait()


async def test_a_reader_leaves_once(open_engine: Open) -> None:
    async with open_engine(abort_grace=SOON, linger=NEVER) as engine:
        talk = Talk(engine)
        reader = await begun(talk)
        other = await engine.resume(talk.chat_id, user=talk.user, client=talk.client)
        assert other is not None
        await reader.aclose(aborted=True)
        await reader.aclose(aborted=True)
        running = turn_of(talk)
        assert running.readers == 1
        await other.aclose()
