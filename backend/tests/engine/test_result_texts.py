"""The setting ``text_from_results``: results say what happened, live, resumed and stored."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.tools.function_tool import FunctionTool

from sluicegate.testing.message_comparison import comparable
from tests.engine.stage import calls, says, scripted, words
from tests.engine.talk import Talk

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluicegate.core.release.base import ApprovalStyle
    from sluicegate.core.release.policies import ReleasePolicy
    from sluicegate.engine.chat_engine import ChatEngine

    OpenEngine = Callable[..., AbstractAsyncContextManager[ChatEngine]]

SILENT = [calls(("pay", {"n": 1}), ("pay", {"n": 2})), calls(("pay", {"n": 3})), says()]


async def pay(n: int) -> dict[str, Any]:
    """Pay."""
    return {"message": f"Paid {n}.", "n": n}


@pytest.mark.parametrize("release", ["deferred", "preview", "progressive"])
@pytest.mark.parametrize("style", ["call", "confirmation"])
async def test_a_silent_model_leaves_the_messages_of_its_tools(
    open_engine: OpenEngine, release: ReleasePolicy, style: ApprovalStyle
) -> None:
    agent = scripted(SILENT, [FunctionTool(pay, require_confirmation=True)])
    options = {"approval_style": style, "text_from_results": True}
    async with open_engine(agent, **options) as engine:
        talk = Talk(engine, release)
        await talk.say("pay")
        await talk.approve()
        turn = await talk.approve()
        assert words(turn.message).replace("\n\n", "") == "Paid 1.Paid 2.Paid 3."
        stored = await talk.history()
        assert comparable(stored) == comparable(turn.message)
    # A stored answer stays as it was when the setting changes.
    async with open_engine(agent, approval_style=style) as engine:
        talk.engine = engine
        assert comparable(await talk.history()) == comparable(stored)
        await talk.say("again")
        await talk.approve()
        assert words((await talk.approve()).message) == ""
