"""A replica that has lost a chat to another one writes nothing more to it (A2)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from google.adk.apps import App
from google.adk.plugins.base_plugin import BasePlugin
from google.genai import types

from tests.engine.loop_time import EVENT_TIMEOUT
from tests.engine.stage import Steps, read, says, scripted, words
from tests.engine.talk import Talk
from tests.engine.test_remote_turns import at, check_histories, question
from tests.patience import LEASE
from tests.stores.builders import end_leases

if TYPE_CHECKING:
    from collections.abc import Sequence

    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.events.event import Event

    from sluicegate.engine.chat_engine import ChatEngine
    from sluicegate.engine.turn.reader import TurnReader
    from tests.engine.loop_time import LoopTime
    from tests.engine.stage import OpenReplicas as Open
    from tests.engine.talk import Turn

RENEWAL = LEASE / 3 + 1
"""Seconds after which the owner of a chat has found out that its lease has ended."""


async def streaming(
    open_replicas: Open, *, plugins: Sequence[BasePlugin] = ()
) -> tuple[ChatEngine, ChatEngine, Talk, TurnReader]:
    """Two replicas, and a chat whose answer the first one streams after its lease has ended."""
    steps = Steps()
    script = {"count": [says("one two three", delta_chars=4)], "else": [says("Yes.")]}
    agent = scripted(script, sleep=steps)
    target = App(name="stage", root_agent=agent, plugins=list(plugins))
    one, two = await open_replicas(target)
    talk = Talk(one, "progressive")
    reader = await talk.start(question("count"))
    steps.go(1)
    await steps.reached(2)
    await end_leases(two.resources.database)
    return one, two, talk, reader


async def test_a_replica_that_lost_its_lease_writes_nothing_more_and_logs_why(
    open_replicas: Open, loop_time: LoopTime, caplog: pytest.LogCaptureFixture
) -> None:
    _, _, talk, reader = await streaming(open_replicas)
    loop_time.advance(RENEWAL)
    async with asyncio.timeout(EVENT_TIMEOUT):
        turn = talk.take(await read(reader))
    assert turn.failed
    assert "its lease was not renewed within 60 s" in caplog.text
    assert "lost this chat" in turn.chunks[-1].error_text  # type: ignore[attr-defined]


async def test_an_expired_lease_without_a_new_owner_loses_no_text(
    open_replicas: Open, loop_time: LoopTime
) -> None:
    one, two, talk, reader = await streaming(open_replicas)
    loop_time.advance(RENEWAL)
    async with asyncio.timeout(EVENT_TIMEOUT):
        talk.take(await read(reader))
    assert words(talk.messages[-1]).startswith("one")
    await check_histories(talk, one, two)


async def test_nothing_is_written_after_another_replica_has_taken_over(
    open_replicas: Open, loop_time: LoopTime
) -> None:
    one, two, talk, reader = await streaming(open_replicas)
    elsewhere = at(talk, two)
    assert not (await elsewhere.say("else")).failed
    stored_messages = (await two.get_chat(talk.chat_id, user="ann"))["messages"]
    loop_time.advance(RENEWAL)
    async with asyncio.timeout(EVENT_TIMEOUT):
        chunks = await read(reader)
    assert "lost this chat" in chunks[-1].error_text  # type: ignore[attr-defined]
    assert (await one.get_chat(talk.chat_id, user="ann"))["messages"] == stored_messages


class HoldsTheQuestion(BasePlugin):
    """Keeps a run between the loading of its session and its first event."""

    def __init__(self, question: str) -> None:
        super().__init__(name="holds")
        self._question = question
        self.reached = asyncio.Event()
        self.goes_on = asyncio.Event()

    async def on_user_message_callback(
        self, *, invocation_context: InvocationContext, user_message: types.Content
    ) -> None:
        if (user_message.parts or [types.Part()])[0].text == self._question:
            self.reached.set()
            await self.goes_on.wait()


@dataclass
class TakenOver:
    """A chat of which one replica streams an answer, while the turn of another one begins."""

    one: ChatEngine
    two: ChatEngine
    talk: Talk
    reader: TurnReader
    holds: HoldsTheQuestion
    begins: asyncio.Task[Turn]


async def taken_over(open_replicas: Open) -> TakenOver:
    """Have the turn of the new owner wait before its first event."""
    holds = HoldsTheQuestion("else")
    one, two, talk, reader = await streaming(open_replicas, plugins=[holds])
    begins = asyncio.create_task(at(talk, two).say("else"))
    reached = asyncio.create_task(holds.reached.wait())
    async with asyncio.timeout(EVENT_TIMEOUT):
        await asyncio.wait({begins, reached}, return_when=asyncio.FIRST_COMPLETED)
    assert reached.done(), begins.result()
    return TakenOver(one, two, talk, reader, holds, begins)


async def test_a_turn_begins_while_the_last_owner_of_the_chat_notices_its_loss(
    open_replicas: Open, loop_time: LoopTime
) -> None:
    chat = await taken_over(open_replicas)
    loop_time.advance(RENEWAL)
    async with asyncio.timeout(EVENT_TIMEOUT):
        chunks = await read(chat.reader)
        chat.holds.goes_on.set()
        assert not (await chat.begins).failed
    assert "lost this chat" in chunks[-1].error_text  # type: ignore[attr-defined]
    session = await chat.two.resources.session_log.load(chat.talk.key)
    assert session is not None
    assert [event.error_code for event in session.events if event.error_code] == []


async def test_an_owner_that_was_paused_stores_no_end_after_the_chat_was_taken_over(
    open_replicas: Open,
) -> None:
    chat = await taken_over(open_replicas)
    # Until it renews its lease, it does not know that it has lost the chat.
    [running] = chat.one.resources.turns.running_turns()
    async with asyncio.timeout(EVENT_TIMEOUT):
        await chat.one.resources.turns.stop(running)
        await read(chat.reader)
        chat.holds.goes_on.set()
        assert not (await chat.begins).failed
    session = await chat.two.resources.session_log.load(running.chat)
    assert session is not None
    assert "one" not in "".join(map(texts_of, session.events))


def texts_of(event: Event) -> str:
    parts = event.content.parts if event.content else None
    return "".join(part.text or "" for part in parts or ())
