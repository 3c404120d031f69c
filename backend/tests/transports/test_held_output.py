"""Output held at its bound is never lost: it is shown with the error, and stored (S2-R27, D7)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sluicegate.engine.turn.running_turn import HELD_TOO_MUCH
from sluicegate.testing.message_comparison import comparable
from tests.engine.stage import Counted, calls, part_of, says, scripted, words
from tests.transports.conversation import TRANSPORTS, Conversation, Transport, conversation

if TYPE_CHECKING:
    from sluicegate.core.release.policies import ReleasePolicy
    from sluicegate.wire.ui_messages import UIMessage

HOLDING: list[ReleasePolicy] = ["deferred", "preview"]
BOUND = 2_000
LONG = "".join(f"word{number} " for number in range(900))
"""Several times as long as the bound."""

over_all_transports = pytest.mark.parametrize("transport", TRANSPORTS)
when_held = pytest.mark.parametrize("release", HOLDING)


async def stored(talk: Conversation, message: UIMessage) -> UIMessage:
    """The message as a reload shows it."""
    chat = (await talk.http.get(f"/api/chats/{talk.chat_id}")).json()
    [found] = [each for each in chat["messages"] if each["id"] == message["id"]]
    kept: UIMessage = found
    return kept


def check_error(talk: Conversation) -> None:
    assert talk.received[-1] == {"type": "error", "errorText": HELD_TOO_MUCH}


@over_all_transports
@when_held
@pytest.mark.parametrize("delta", [50, len(LONG)], ids=["deltas", "whole"])
async def test_text_held_at_its_bound_is_shown_and_stored(
    tmp_path: Path, transport: Transport, release: ReleasePolicy, delta: int
) -> None:
    agent = scripted([says(LONG, delta_chars=delta)], [Counted().tool()])
    async with conversation(agent, tmp_path, transport, release=release, held_bytes=BOUND) as talk:
        message = await talk.say("go")
        check_error(talk)
        # The text is everything that was held, and whole where it came in one piece.
        assert LONG.startswith(words(message))
        assert BOUND / 2 < len(words(message)) <= len(LONG)
        assert delta < len(LONG) or words(message) == LONG
        assert comparable(await stored(talk, message)) == comparable(message)


@over_all_transports
@when_held
async def test_text_and_results_around_an_approval_are_shown_and_stored_at_the_bound(
    tmp_path: Path, transport: Transport, release: ReleasePolicy
) -> None:
    counted = Counted()
    script = [calls(("pay", {"n": 1}), text="First. "), says(LONG, delta_chars=len(LONG))]
    agent = scripted(script, [counted.tool()])
    async with conversation(agent, tmp_path, transport, release=release, held_bytes=BOUND) as talk:
        await talk.say("pay")
        message = await talk.answer()
        check_error(talk)
        assert words(message) == "First. " + LONG
        assert part_of(message, "pay")["output"] == {"paid": 1}
        assert counted.runs == [1]
        assert comparable(await stored(talk, message)) == comparable(message)


@over_all_transports
@when_held
async def test_a_result_over_the_bound_is_shown_and_stored(
    tmp_path: Path, transport: Transport, release: ReleasePolicy
) -> None:
    async def report() -> str:
        """Return a long report."""
        return LONG

    script = [calls(("report", {}), text="Before. "), says("After.")]
    agent = scripted(script, [Counted().tool(), report])
    async with conversation(agent, tmp_path, transport, release=release, held_bytes=BOUND) as talk:
        message = await talk.say("report")
        check_error(talk)
        assert words(message) == "Before. "
        assert part_of(message, "report")["output"] == {"result": LONG}
        assert comparable(await stored(talk, message)) == comparable(message)


@over_all_transports
async def test_nothing_is_held_where_text_is_released_at_once(
    tmp_path: Path, transport: Transport
) -> None:
    agent = scripted([says(LONG)], [Counted().tool()])
    async with conversation(
        agent, tmp_path, transport, release="progressive", held_bytes=BOUND
    ) as talk:
        message = await talk.say("go")
        assert talk.received[-1]["type"] == "finish"
        assert words(message) == LONG
        assert comparable(await stored(talk, message)) == comparable(message)
