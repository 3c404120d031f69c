"""Turns whose last reader disconnects (section 7 and ``abort``)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.engine.loop_time import within_limit
from tests.engine.stage import stays_pending
from tests.engine.talk import Talk

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

    from sluicegate.engine.chat_engine import ChatEngine
    from sluicegate.engine.turn.reader import TurnReader
    from tests.engine.loop_time import LoopTime

    Open = Callable[..., AbstractAsyncContextManager[ChatEngine]]

SHORT, LONG = 60.0, 3600.0


async def begun(talk: Talk) -> TurnReader:
    """A reader of a turn that publishes some text and then hangs."""
    question = {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "story:stop"}]}
    return await talk.start({"message": question})


@pytest.mark.parametrize("aborted", [True, False])
async def test_a_turn_is_stopped_after_the_grace_period_of_its_last_reader(
    open_engine: Open, loop_time: LoopTime, *, aborted: bool
) -> None:
    graces = {"abort_grace": SHORT, "linger": LONG} if aborted else {"linger": SHORT}
    async with open_engine(**graces) as engine:
        talk = Talk(engine)
        reader = await begun(talk)
        running = talk.running
        await reader.aclose(aborted=aborted)
        loop_time.advance(SHORT)
        await within_limit(running.done)
        assert running.failure is None
        chat = await engine.get_chat(talk.chat_id, user=talk.user)
        assert chat["status"] == "ready"


async def test_an_abort_changes_nothing_while_another_reader_is_subscribed(
    open_engine: Open,
) -> None:
    async with open_engine(abort_grace=LONG, linger=LONG) as engine:
        talk = Talk(engine)
        reader = await begun(talk)
        other = await engine.resume(talk.chat_id, user=talk.user, client=talk.client)
        assert other is not None
        await reader.aclose(aborted=True)
        running = talk.running
        assert (running.readers, running.idle_timer) == (1, None)
        await other.aclose()
        assert running.idle_timer is not None


async def test_a_reader_that_returns_in_time_keeps_the_turn_running(
    open_engine: Open, loop_time: LoopTime
) -> None:
    async with open_engine(abort_grace=SHORT, linger=LONG) as engine:
        talk = Talk(engine)
        await (await begun(talk)).aclose(aborted=True)
        again = await engine.resume(talk.chat_id, user=talk.user, client=talk.client)
        assert again is not None
        running = talk.running
        loop_time.advance(SHORT)
        assert await stays_pending(asyncio.ensure_future(running.done.wait()))
        await again.aclose(aborted=True)
        loop_time.advance(SHORT)
        await within_limit(running.done)


async def test_a_reader_is_counted_once_when_it_is_closed_repeatedly(open_engine: Open) -> None:
    async with open_engine(abort_grace=LONG, linger=LONG) as engine:
        talk = Talk(engine)
        reader = await begun(talk)
        other = await engine.resume(talk.chat_id, user=talk.user, client=talk.client)
        assert other is not None
        await reader.aclose(aborted=True)
        await reader.aclose(aborted=True)
        assert talk.running.readers == 1
        await other.aclose()
