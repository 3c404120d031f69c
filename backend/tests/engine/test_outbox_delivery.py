"""The loop that reads the outbox while attempts run."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from sluicegate.stores.approvals.outbox import Outbox, QueuedEvent
from sluicegate.stores.approvals.sweep_queries import SweepQueries
from tests.engine.loop_time import LoopTime
from tests.engine.stage import Counted, Open, calls, says, scripted
from tests.engine.talk import Talk
from tests.server.webhook_receiver import LIMIT, Receiver, settings_of

PAY = [calls(("pay", {"n": 1})), says("done")]


async def test_an_event_that_is_accepted_while_the_outbox_is_read_is_delivered_once(
    open_stage: Open, tmp_path: Path, counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_answer, was_read = threading.Event(), asyncio.Event()
    receiver = Receiver(answer=lambda _: (204 if may_answer.wait(LIMIT) else 500, {}))
    due = Outbox.due

    async def due_before_the_answer(
        outbox: Outbox, endpoint: str, *, limit: int
    ) -> list[QueuedEvent]:
        found = await due(outbox, endpoint, limit=limit)
        if found and is_running and not was_read.is_set():
            may_answer.set()
            while (await queries.count_undelivered())[0]:
                pass
            # The task of the attempt ends a few steps of the loop later.
            for _ in range(20):
                await asyncio.sleep(0)
            was_read.set()
        is_running.extend(found)
        return found

    is_running: list[QueuedEvent] = []
    monkeypatch.setattr(Outbox, "due", due_before_the_answer)
    with receiver.running():
        engine = await open_stage(
            scripted(PAY, [counted.tool()]), **settings_of(receiver, tmp_path)
        )
        queries = SweepQueries(engine.resources.database, engine.resources.app)
        talk = Talk(engine)
        await talk.say("pay")
        async with asyncio.timeout(LIMIT):
            await was_read.wait()
        await talk.approve()
        events = await receiver.accepted(3)
        assert [each.data["state"] for each in events] == ["requested", "approved", "executed"]
        assert engine.resources.webhooks is not None
        await engine.resources.webhooks.aclose()
        assert receiver.is_idle


async def test_a_process_that_ends_lets_its_attempts_end(
    open_stage: Open, tmp_path: Path, counted: Counted, loop_time: LoopTime
) -> None:
    may_answer, asked = threading.Event(), threading.Event()

    def answer(_: object) -> tuple[int, dict[str, str]]:
        asked.set()
        return (204 if may_answer.wait(LIMIT) else 500), {}

    receiver = Receiver(answer=answer)
    with receiver.running():
        engine = await open_stage(
            scripted(PAY, [counted.tool()]), **settings_of(receiver, tmp_path)
        )
        await Talk(engine).say("pay")
        assert await asyncio.to_thread(asked.wait, LIMIT)
        loop_time.hold()
        assert engine.resources.webhooks is not None
        closing = asyncio.create_task(engine.resources.webhooks.aclose())
        # An attempt that is cut off is cancelled in the first steps.
        for _ in range(20):
            await asyncio.sleep(0)
        may_answer.set()
        await closing
        queries = SweepQueries(engine.resources.database, engine.resources.app)
        assert (await queries.count_undelivered())[0] == 0
