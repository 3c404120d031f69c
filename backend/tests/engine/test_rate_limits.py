"""Rate limits of messages and decisions per user."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sluicegate.engine.rate_limits import RateLimit
from sluicegate.errors import TooManyRequests
from tests.clock import Clock
from tests.engine.stage import Counted, calls, says, scripted
from tests.engine.talk import Talk

if TYPE_CHECKING:
    from tests.engine.stage import Open

PAY = [calls(("pay", {"n": 1})), says("done")]


def test_the_limit_applies_to_any_period_of_one_minute() -> None:
    clock = Clock()
    rate = RateLimit(3, "Wait.", clock=clock)
    for moment in (1_000.0, 1_010.0, 1_059.0):
        clock.now = moment
        rate.take("ann")
    with pytest.raises(TooManyRequests, match="Wait") as refused:
        rate.take("ann")
    assert refused.value.retry_after == 1
    rate.take("bob")
    clock.now = 1_060.0
    rate.take("ann")
    with pytest.raises(TooManyRequests) as refused:
        rate.take("ann")
    assert refused.value.retry_after == 10


def test_refused_requests_do_not_count() -> None:
    clock = Clock()
    rate = RateLimit(1, "Wait.", clock=clock)
    rate.take("ann")
    for _ in range(5):
        with pytest.raises(TooManyRequests) as refused:
            rate.take("ann")
        assert refused.value.retry_after == 60 - int(clock.now - 1_000)
        clock.now += 10.0
    clock.now = 1_060.0
    rate.take("ann")


def test_inactive_users_are_forgotten() -> None:
    clock = Clock()
    rate = RateLimit(1, "Wait.", clock=clock)
    for number in range(5_000):
        rate.take(f"user-{number}")
        clock.now += 0.1
    assert len(rate) < 2_000
    with pytest.raises(TooManyRequests):
        rate.take("user-4999")


async def test_turns_are_counted_by_user(open_stage: Open) -> None:
    engine = await open_stage(scripted([says("Hello.")]), max_turns_per_minute=3)
    talk = Talk(engine)
    for _ in range(3):
        assert (await talk.say("Hi")).finish_reason == "stop"
    with pytest.raises(TooManyRequests, match="too many answers in a minute") as refused:
        await talk.say("Hi")
    assert refused.value.retry_after is not None
    assert 1 <= refused.value.retry_after <= 60
    chat = await engine.get_chat(talk.chat_id, user="ann")
    assert len(chat["messages"]) == 6
    assert (await Talk(engine, user="bob").say("Hi")).finish_reason == "stop"


async def test_a_decision_above_the_limit_is_stored_and_runs_later(open_stage: Open) -> None:
    counted = Counted()
    engine = await open_stage(scripted(PAY, [counted.tool()]), max_turns_per_minute=1)
    talk = Talk(engine)
    await talk.say("pay")
    with pytest.raises(TooManyRequests):
        await talk.approve()
    [part] = (await talk.history())["parts"][-1:]
    assert (part["state"], counted.runs) == ("approval-responded", [])


async def test_messages_are_counted_by_user_regardless_of_their_outcome(open_stage: Open) -> None:
    engine = await open_stage(scripted([says("Hello.")]), max_messages_per_minute=3)
    talk = Talk(engine)
    question = {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "Hi"}]}
    for _ in range(3):
        await talk.read(await talk.start({"message": question}))
    with pytest.raises(TooManyRequests, match="too much in a minute"):
        await talk.start({"message": question})
    assert (await Talk(engine, user="bob").say("Hi")).finish_reason == "stop"
