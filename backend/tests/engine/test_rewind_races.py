"""An edit or another answer at the moment of a claim: what runs stays in the chat (section 7)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from sluicegate.engine.turn.chat_leases import ChatLeases
from sluicegate.errors import RequestError, TurnRunning, WouldForgetEffect
from sluicegate.stores.approvals.ledger import Ledger
from tests.engine.loop_time import EVENT_TIMEOUT, within_limit
from tests.engine.stage import HeldTool, calls, part_of, read, says, scripted, words
from tests.engine.talk import Talk
from tests.engine.test_remote_turns import at
from tests.stores.builders import end_leases

if TYPE_CHECKING:
    from tests.engine.stage import Open, OpenReplicas

SCRIPT = {
    "hello": [says("Hello.")],
    "pay": [calls(("hold", {"n": 1})), says("Paid.")],
}


@dataclass
class HeldClaim:
    """A ledger's claim that begins and waits."""

    began: asyncio.Event = field(default_factory=asyncio.Event)
    may_end: asyncio.Event = field(default_factory=asyncio.Event)

    def install(self, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
        claim = ledger.claim

        async def held(*args: Any, **more: Any) -> Any:
            self.began.set()
            await self.may_end.wait()
            return await claim(*args, **more)

        monkeypatch.setattr(ledger, "claim", held)


def replacing(talk: Talk) -> list[dict[str, Any]]:
    """Bodies that replace the first exchange or a later one, as the AI SDK posts them."""
    questions = [message for message in talk.messages if message["role"] == "user"]
    answer = talk.messages[-1]["id"]
    other = [{"type": "text", "text": "hello"}]
    edits = [{"message": {**each, "parts": other}, "messageId": each["id"]} for each in questions]
    again = {"message": questions[-1], "trigger": "regenerate-message"}
    return [*edits, {**again, "messageId": answer}, {**again, "message": questions[0]}]


async def texts(talk: Talk) -> list[str]:
    chat = await talk.engine.get_chat(talk.chat_id, user=talk.user)
    return [words(message) for message in chat["messages"]]


async def approve(talk: Talk) -> asyncio.Task[Any]:
    [approval] = talk.asks()
    decide = talk.engine.approvals.decide
    return asyncio.create_task(decide(approval, {"approved": True}, user=talk.user, via="http"))


async def test_nothing_replaces_an_answer_while_its_call_is_claimed_and_runs(
    open_stage: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool, claim = HeldTool(), HeldClaim()
    talk = Talk(await open_stage(scripted(SCRIPT, [tool.tool(require_confirmation=True)])))
    claim.install(talk.engine.resources.ledger, monkeypatch)
    await talk.say("hello")
    await talk.say("pay")
    deciding = await approve(talk)
    for began, may_end in ((claim.began, claim.may_end), (tool.began, tool.may_end)):
        await within_limit(began)
        for body in replacing(talk):
            with pytest.raises(TurnRunning):
                await talk.start(body)
        running = talk.running
        may_end.set()
    await deciding
    await within_limit(running.done)
    assert tool.ended == 1
    for body in replacing(talk):
        with pytest.raises(WouldForgetEffect):
            await talk.start(body)
    assert await texts(talk) == ["hello", "Hello.", "pay", "Paid."]
    assert part_of(await talk.history(), "hold")["state"] == "output-available"


@pytest.mark.parametrize("moment", [(ChatLeases, "acquire"), (Ledger, "mark_unknown")])
async def test_nothing_replaces_an_answer_whose_call_is_claimed_after_its_lease_ran_out(
    open_replicas: OpenReplicas, monkeypatch: pytest.MonkeyPatch, moment: tuple[type, str]
) -> None:
    """A process that was suspended claims its call while another one replaces the answer."""
    tool, claim = HeldTool(), HeldClaim()
    agent = scripted(SCRIPT, [tool.tool(require_confirmation=True)])
    one, two = await open_replicas(agent, lease_ttl=600)
    claim.install(one.resources.ledger, monkeypatch)
    talk = Talk(one)
    await talk.say("pay")
    deciding = await approve(talk)
    await within_limit(claim.began)
    running = talk.running
    await end_leases(two.resources.database)
    owner, name = moment
    step = getattr(owner, name)

    async def with_claim(*args: Any, **more: Any) -> Any:
        result = await step(*args, **more)
        claim.may_end.set()
        await within_limit(tool.began)
        return result

    monkeypatch.setattr(owner, name, with_claim)
    body = replacing(talk)[0]
    with pytest.raises(WouldForgetEffect):
        await read(await at(talk, two).start(body))
    tool.may_end.set()
    async with asyncio.timeout(EVENT_TIMEOUT):
        await asyncio.gather(deciding, return_exceptions=True)
        await running.done.wait()
    assert tool.ended == 1
    chat = await two.get_chat(talk.chat_id, user=talk.user)
    assert words(chat["messages"][0]) == "pay"
    assert part_of(chat["messages"][1], "hold")["approval"]["approved"] is True
    with pytest.raises(RequestError):
        await at(talk, two).start(body)
