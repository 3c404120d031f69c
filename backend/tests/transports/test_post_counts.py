"""Gated calls in sequence: the number of posts, and what each response contains (S2)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sluicegate.testing.send_rules import s2
from tests.engine.stage import Counted, calls, says, scripted, words
from tests.transports.conversation import TRANSPORTS, Transport, conversation

if TYPE_CHECKING:
    from tests.transports.conversation import Conversation


def outcomes(talk: Conversation) -> list[str]:
    """The calls with an output in the last response, in its order."""
    chunks = talk.received
    return [c["toolCallId"] for c in chunks if c["type"] == "tool-output-available"]


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
