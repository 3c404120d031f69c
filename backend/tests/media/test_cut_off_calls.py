"""Models that stop in the middle of the arguments of a call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from google.adk.tools.function_tool import FunctionTool

from sluicegate.engine.models.cut_off_calls import CUT_OFF
from tests.engine.stage import words
from tests.engine.talk import Talk
from tests.media.making import made

if TYPE_CHECKING:
    from tests.media.conftest import Open
    from tests.media.families import Family

NAMES = ["openai", "claude", "claude-adk"]


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("name", NAMES)
async def test_a_call_that_is_cut_off_fails_and_the_turn_goes_on(
    families: dict[str, Family], open_with: Open, name: str, gated: bool
) -> None:
    ran: list[str] = []

    def make(kind: str = "green") -> Any:
        """Make something."""
        ran.append(kind)
        return made(kind)

    tool = FunctionTool(make, require_confirmation=gated)
    families[name].endpoint.refused.clear()
    async with open_with(families[name].make(), tools=[tool]) as engine:
        talk = Talk(engine, "progressive")
        turn = await talk.say("make cut")
        assert ran == []
        assert talk.pending() == []
        assert CUT_OFF in words(turn.message)
        [part] = [part for part in turn.message["parts"] if part["type"] == "tool-make"]
        assert (part["state"], part["errorText"]) == ("output-error", CUT_OFF)
        assert "error" not in turn.types

    assert families[name].endpoint.refused == []


@pytest.mark.parametrize("name", NAMES)
async def test_a_whole_call_beside_one_that_is_cut_off_does_not_run(
    families: dict[str, Family], open_with: Open, name: str
) -> None:
    ran: list[str] = []

    def make(kind: str = "green") -> str:
        """Make something."""
        ran.append(kind)
        return kind

    async with open_with(families[name].make(), tools=[make]) as engine:
        turn = await Talk(engine, "progressive").say("make green and cut")
    assert ran == []
    assert words(turn.message).count(CUT_OFF) == 2
