"""Gated calls in sequence: the number of posts, and what each response contains (S2)."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sluicegate.testing.message_comparison import comparable
from sluicegate.testing.send_automatically_when import s2
from tests.engine.stage import Counted, calls, says, scripted, words
from tests.engine.talk import decide
from tests.transports.conversation import TRANSPORTS, Transport, conversation

if TYPE_CHECKING:
    from tests.transports.conversation import Conversation


def outcomes(talk: Conversation) -> list[str]:
    """The calls with an output in the last response, in its order."""
    chunks = talk.received
    return [c["toolCallId"] for c in chunks if c["type"] == "tool-output-available"]


def reasoning(talk: Conversation) -> str:
    """The reasoning in the last response."""
    return "".join(c["delta"] for c in talk.received if c["type"] == "reasoning-delta")


CASES: list[tuple[Transport, int]] = [
    *(("sse", count) for count in range(2, 11)),
    *((transport, count) for transport in TRANSPORTS[1:] for count in (2, 10)),
]


@pytest.mark.parametrize(("transport", "count"), CASES)
async def test_each_approval_of_a_sequence_takes_one_post(
    tmp_path: Path, transport: Transport, count: int
) -> None:
    counted = Counted()
    script = [*(calls(("pay", {"n": n})) for n in range(count)), says("All are paid.")]
    async with conversation(scripted(script, [counted.tool()]), tmp_path, transport) as talk:
        message = await talk.say("pay")
        identity, posts = message["id"], 1
        while talk.pending():
            assert outcomes(talk) == []
            assert words(message) == ""
            assert not s2(message)
            message = await talk.answer()
            posts += 1
        assert posts == count + 1
        assert counted.runs == list(range(count))
        assert message["id"] == identity
        assert words(message) == "All are paid."
        assert outcomes(talk) == [
            part["toolCallId"] for part in message["parts"] if "toolCallId" in part
        ]
        assert not s2(message)


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_the_last_decision_sent_twice_releases_everything_once(
    tmp_path: Path, transport: Transport
) -> None:
    counted = Counted()
    script = [*(calls(("pay", {"n": n}), text=f"{n}. ") for n in range(2)), says("Paid.")]
    async with conversation(scripted(script, [counted.tool()]), tmp_path, transport) as talk:
        await talk.say("pay")
        await talk.answer()
        [open_part] = talk.pending()
        decide(open_part, approved=True)
        decided = deepcopy(talk.messages[-1])
        message = await talk.post()
        released = outcomes(talk)
        talk.messages[-1] = decided
        again = await talk.post()
        assert comparable(again) == comparable(message)
        assert released == outcomes(talk)
        assert len(set(released)) == len(released) == 2
        assert counted.runs == [0, 1]
        chat = (await talk.http.get(f"/api/chats/{talk.chat_id}")).json()
        assert comparable(chat["messages"][-1]) == comparable(message)
        assert words(message) == "0. 1. Paid."


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_reasoning_between_approvals_is_shown_and_sends_no_less(
    tmp_path: Path, transport: Transport
) -> None:
    def thinks(about: str, response: dict[str, Any]) -> dict[str, Any]:
        return {**response, "parts": [{"thought": about}, *response["parts"]]}

    counted = Counted()
    script = [
        thinks("First.", calls(("pay", {"n": 1}))),
        thinks("Second.", calls(("pay", {"n": 2}))),
        thinks("Third.", says("Paid.")),
    ]
    async with conversation(scripted(script, [counted.tool()]), tmp_path, transport) as talk:
        message = await talk.say("pay")
        shown = []
        for _ in range(2):
            shown.append(reasoning(talk))
            assert words(message) == ""
            for part in talk.pending():
                decide(part, approved=True)
            assert s2(message)
            message = await talk.post()
        assert [*shown, reasoning(talk)] == ["First.", "Second.", "Third."]
        assert counted.runs == [1, 2]
        assert words(message) == "Paid."
