"""What a grant covers, through a running server: one story for each promise, on every transport."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from google.adk.agents.llm_agent import LlmAgent
from google.adk.tools.function_tool import FunctionTool

from sluicegate.replay import ScriptedModel
from sluicegate.replay.scenario import parse_scenarios
from sluicegate.tools import gated
from tests.engine.stage import calls, says
from tests.transports.conversation import TRANSPORTS, Refused, Transport, conversation

Payment = tuple[str, int]
every_transport = pytest.mark.parametrize("transport", TRANSPORTS)
every_request = pytest.mark.parametrize("transport", ["sse", "socket"])


class Bank:
    """Makes the tool pay, and holds the payments of all of them."""

    def __init__(self) -> None:
        self.paid: list[Payment] = []

    def pay(self, description: str = "Pay an amount in euros.", **terms: Any) -> Any:
        async def pay(recipient: str, amount: int) -> dict[str, Any]:
            self.paid.append((recipient, amount))
            return {"paid": amount}

        pay.__doc__ = description
        return gated(pay, **terms) if terms else FunctionTool(pay, require_confirmation=True)


@pytest.fixture
def bank() -> Bank:
    return Bank()


def payments(*each: Payment) -> dict[str, Any]:
    """A model response that pays each."""
    return calls(*(("pay", {"recipient": to, "amount": amount}) for to, amount in each))


def shop(tools: list[Any], name: str = "shop", **more: Any) -> LlmAgent:
    """An agent that pays what a message names: ``ann 1, bob 2`` one after the other."""
    said = [
        "ann 1",
        "ann 2",
        "bob 1",
        "ann 1, ann 2",
        "ann 1, bob 1",
        "eve 2, ann 1",
        "ann 1+bob 1",
    ]
    scenarios: list[dict[str, Any]] = [
        {
            "match": "^to billing",
            "agent": name,
            "responses": [calls(("transfer_to_agent", {"agent_name": "billing"})), says("ok")],
        }
    ]
    for text in said:
        together = [[parsed(each) for each in group.split("+")] for group in text.split(", ")]
        responses = [payments(*group) for group in together]
        match = text.replace("+", "[+]")
        scenarios.append(
            {"match": f"^{match}$", "agent": name, "responses": [*responses, says("done")]}
        )
    scenarios.append({"match": ".", "agent": name, "responses": [says("Hello.")]})
    model = ScriptedModel(scenarios=parse_scenarios({"scenarios": scenarios}))
    return LlmAgent(name=name, model=model, tools=tools, **more)


def parsed(text: str) -> Payment:
    recipient, amount = text.split(" ")
    return recipient, int(amount)


@every_transport
async def test_a_grant_covers_the_values_of_the_chosen_arguments(
    tmp_path: Path, bank: Bank, transport: Transport
) -> None:
    async with conversation(shop([bank.pay()]), tmp_path, transport) as chat:
        await chat.say("ann 1, ann 2")
        [card] = await chat.inbox()
        await chat.answer(remember={"where": ["recipient"], "ttl": 3600})
        assert (bank.paid, chat.pending()) == ([("ann", 1), ("ann", 2)], [])
        await chat.say("bob 1")
        assert len(bank.paid) == 2
        assert chat.card()["agent"] == "shop"
        [grant] = await chat.grants()
        assert (grant["tool"], grant["agent"], grant["where"]) == (
            "pay",
            "shop",
            {"recipient": "ann"},
        )
        assert grant["approvalId"] == card["approvalId"]
        given, until = map(datetime.fromisoformat, (grant["grantedAt"], grant["expiresAt"]))
        assert (until - given).total_seconds() == pytest.approx(3600, abs=0.01)


@every_transport
async def test_a_grant_covers_the_values_that_ran_after_the_edit(
    tmp_path: Path, bank: Bank, transport: Transport
) -> None:
    async with conversation(shop([bank.pay()]), tmp_path, transport) as chat:
        await chat.say("ann 1")
        edits = {"recipient": "eve", "amount": 1}
        await chat.answer(edits=edits, remember={"where": ["recipient"]})
        assert [grant["where"] for grant in await chat.grants()] == [{"recipient": "eve"}]
        await chat.say("eve 2, ann 1")
        assert bank.paid == [("eve", 1), ("eve", 2)]
        assert chat.pending()[0]["input"] == {"recipient": "ann", "amount": 1}


@every_transport
async def test_a_changed_tool_asks_again_and_the_card_says_what_changed(
    tmp_path: Path, bank: Bank, transport: Transport
) -> None:
    async with conversation(shop([bank.pay()]), tmp_path, transport) as chat:
        await chat.say("ann 1")
        assert "changed" not in chat.card()
        await chat.answer(remember="chat")
    async with conversation(shop([bank.pay("Pay, twice.")]), tmp_path, transport) as chat:
        await chat.say("ann 2")
        assert bank.paid == [("ann", 1)]
        changed = {"description": ["Pay an amount in euros.", "Pay, twice."]}
        assert chat.card()["changed"] == changed
        [card] = await chat.inbox()
        assert card["changed"] == changed
        stored = (await chat.http.get("/api/chats/c1")).json()["messages"][-1]
        assert stored["metadata"]["approvals"][card["approvalId"]]["changed"] == changed
        [shown] = [p for p in stored["parts"] if p.get("state") == "approval-requested"]
        assert shown["approval"]["descriptor"]["changed"] == changed
        await chat.answer()
        assert bank.paid == [("ann", 1), ("ann", 2)]
        # A yes for one call is none for the changed tool.
        await chat.say("bob 1")
        assert chat.card()["changed"] == changed
        await chat.answer(remember="chat")
        await chat.say("ann 1")
        assert chat.pending() == []
    async with conversation(shop([bank.pay()]), tmp_path, transport) as chat:
        await chat.say("ann 2")
        assert chat.pending() == []
    assert len(bank.paid) == 5


@every_transport
async def test_a_tool_that_changes_between_card_and_run_does_not_run(
    tmp_path: Path, bank: Bank, transport: Transport
) -> None:
    async with conversation(shop([bank.pay()]), tmp_path, transport) as chat:
        await chat.say("ann 1")
        messages = chat.messages
    async with conversation(shop([bank.pay("Pay, twice.")]), tmp_path, transport) as chat:
        chat.messages = messages
        message = await chat.answer(remember="chat")
        assert "the tool has changed" in str(message["parts"])
        assert (bank.paid, await chat.grants()) == ([], [])


@every_transport
async def test_two_tools_of_one_name_in_different_agents_are_two_tools(
    tmp_path: Path, bank: Bank, transport: Transport
) -> None:
    other = Bank()
    agent = shop([bank.pay()], sub_agents=[shop([other.pay()], "billing")])
    async with conversation(agent, tmp_path, transport) as chat:
        await chat.say("ann 1")
        assert (chat.card()["agent"], "toolMetadata" in chat.pending()[0]) == ("shop", False)
        await chat.answer(remember="chat")
        await chat.say("to billing")
        await chat.say("ann 1")
        assert (bank.paid, other.paid) == ([("ann", 1)], [])
        assert chat.card()["agent"] == "shop/billing"
        assert chat.pending()[0]["toolMetadata"] == {"agent": "shop/billing"}
        [card] = await chat.inbox()
        assert (card["tool"], card["agent"]) == ("pay", "shop/billing")
        await chat.answer(remember="chat")
        assert other.paid == [("ann", 1)]
        grants = await chat.grants()
        assert [grant["agent"] for grant in grants] == ["shop", "shop/billing"]
        assert len({grant["id"] for grant in grants}) == 2


@every_transport
@pytest.mark.parametrize("close", ["message", "stop"])
async def test_a_decision_that_was_superseded_leaves_no_grant(
    tmp_path: Path, bank: Bank, transport: Transport, close: str
) -> None:
    mail = FunctionTool(send, require_confirmation=True)
    model = [calls(("pay", {"recipient": "ann", "amount": 1}), ("send", {})), says("done")]
    scenarios = [
        {"match": "both", "responses": model},
        {"match": ".", "responses": [payments(("ann", 2)), says("done")]},
    ]
    plays = ScriptedModel(scenarios=parse_scenarios({"scenarios": scenarios}))
    agent = LlmAgent(name="shop", model=plays, tools=[bank.pay(), mail])
    async with conversation(agent, tmp_path, transport) as chat:
        await chat.say("both")
        # The decision waits for the other one (A3).
        await chat.answer(only="pay", remember="chat")
        assert await chat.grants() == []
        if close == "stop":
            assert (await chat.http.post("/api/chat/c1/stop")).status_code == 204
        await chat.say("ann 2")
        assert (bank.paid, await chat.grants()) == ([], [])
        assert len(chat.pending()) == 1


@every_transport
async def test_a_denial_refuses_the_same_call_of_the_same_agent_alone(
    tmp_path: Path, bank: Bank, transport: Transport
) -> None:
    other = Bank()
    asks = payments(("ann", 1))
    to_billing = calls(("transfer_to_agent", {"agent_name": "billing"}))
    agent = LlmAgent(
        name="shop",
        model=playing([asks, asks, to_billing], agent="shop"),
        tools=[bank.pay()],
        sub_agents=[
            LlmAgent(
                name="billing",
                model=playing([asks, says("done")], agent="billing"),
                tools=[other.pay()],
            )
        ],
    )
    async with conversation(agent, tmp_path, transport) as chat:
        await chat.say("pay")
        await chat.answer(approved=False)
        assert chat.card()["agent"] == "shop/billing"
        message = await chat.answer()
        assert "denied the same call before" in str(message["parts"])
        assert (bank.paid, other.paid) == ([], [("ann", 1)])


def playing(responses: list[dict[str, Any]], *, agent: str) -> ScriptedModel:
    scenarios = [{"match": ".", "agent": agent, "responses": responses}]
    return ScriptedModel(scenarios=parse_scenarios({"scenarios": scenarios}))


async def send() -> str:
    """Send a mail."""
    return "sent"


@every_transport
async def test_a_grant_is_revoked_by_its_id(
    tmp_path: Path, bank: Bank, transport: Transport
) -> None:
    async with conversation(shop([bank.pay()]), tmp_path, transport) as chat:
        await chat.say("ann 1")
        await chat.answer(remember={"where": ["recipient"]})
        await chat.say("bob 1")
        await chat.answer(remember={"where": ["recipient"]})
        one, _ = await chat.grants()
        for path, status in ((one["id"], 204), (one["id"], 404), ("pay", 404)):
            response = await chat.http.delete(f"/api/chats/c1/grants/{path}")
            assert response.status_code == status
        await chat.say("bob 1")
        assert chat.pending() == []
        await chat.say("ann 1")
        assert len(chat.pending()) == 1


@every_request
@pytest.mark.parametrize(
    ("remember", "said"),
    [
        ({"where": ["to"]}, "none of this call of pay"),
        ({"where": ["__proto__"]}, "none of this call of pay"),
        ({"where": "recipient"}, "a list of different names"),
        ({"where": {"recipient": "bob"}}, "a list of different names"),
        ({"ttl": 61}, "at most 60 seconds"),
        ({"ttl": 0}, "seconds from 1 on"),
        ("forever", "for its chat alone"),
    ],
)
async def test_a_scope_that_no_grant_can_have_changes_nothing(
    tmp_path: Path, bank: Bank, transport: Transport, remember: Any, said: str
) -> None:
    async with conversation(shop([bank.pay()]), tmp_path, transport, grant_ttl=60) as chat:
        await chat.say("ann 1")
        assert chat.card()["grantTtl"] == 60
        with pytest.raises(Refused, match=said) as refused:
            await chat.answer(remember=remember)
        assert refused.value.code == "malformed"
        assert (bank.paid, len(await chat.inbox())) == ([], 1)


@every_request
async def test_a_tool_whose_author_allows_no_grant_asks_each_time(
    tmp_path: Path, bank: Bank, transport: Transport
) -> None:
    async with conversation(shop([bank.pay(rememberable=False)]), tmp_path, transport) as chat:
        await chat.say("ann 1, ann 2")
        assert chat.card()["rememberable"] is False
        with pytest.raises(Refused, match="cannot be remembered"):
            await chat.answer(remember={"where": ["recipient"]})
        await chat.post()
        assert (bank.paid, len(chat.pending())) == ([("ann", 1)], 1)


@every_transport
async def test_a_second_yes_with_other_edits_is_a_conflict(
    tmp_path: Path, bank: Bank, transport: Transport
) -> None:
    async with conversation(shop([bank.pay()]), tmp_path, transport) as chat:
        await chat.say("ann 1")
        before = list(chat.messages)
        [part] = chat.pending()
        asked = part["approval"]["id"]
        edits = {"recipient": "ann", "amount": 5}
        await chat.answer(edits=edits)
        assert bank.paid == [("ann", 5)]
        for others in ({**edits, "amount": 6}, {**edits, "amount": 1}):
            chat.messages = list(before)
            with pytest.raises(Refused) as refused:
                await chat.post(edits={asked: others})
            assert refused.value.code == "already_decided"
        chat.messages = list(before)
        message = await chat.post(edits={asked: edits})
        assert "the same" not in str(message)
        path = f"/api/approvals/{asked}"
        bodies: list[tuple[dict[str, Any], int]] = [
            ({"approved": True, "edits": edits}, 202),
            ({"approved": True, "edits": {**edits, "amount": 6}}, 409),
            ({"approved": True}, 409),
            ({"approved": True, "edits": edits, "remember": "chat"}, 409),
            ({"approved": False}, 409),
        ]
        for body, status in bodies:
            assert (await chat.http.post(path, json=body)).status_code == status
        assert bank.paid == [("ann", 5)]
